"""`python -m medproc.supervisor up|demo`: the whole service in the foreground.

The supervisor starts the embedded servers, migrates, and runs console, workers and scheduler as
children. Ctrl-C, SIGTERM or the death of a child ends all children. Servers that ran before keep
running.
"""

from __future__ import annotations

import argparse
import io
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import django
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import OperationalError

from medproc import absence, embedded, private, startup
from medproc.env import PROJECT_ROOT
from medproc.timing import scaled

GRACE_MARGIN_S = 15.0
"""Seconds that children get beyond a step's grace, to kill an overdue horse and to exit."""
POLL_S = 0.1
DEMO_USER = "demo"


@dataclass(frozen=True, kw_only=True)
class Child:
    """A command that runs as a child in its own session; Ctrl-C does not reach it."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


class ChildDiedError(Exception):
    """A child that should still run has ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m medproc.supervisor", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up_parser = verbs.add_parser("up", help="console, workers and scheduler until Ctrl-C")
    up_parser.add_argument("--port", type=int, default=8000)
    demo_parser = verbs.add_parser("demo", help="process files end to end and show one")
    demo_parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    os.chdir(PROJECT_ROOT)
    startup.refuse_wrong_environment()
    stopping = _stop_on_signals()
    try:
        if options.verb == "up":
            _refuse_taken(options.port)
        django.setup()
        call_command("check", stdout=io.StringIO())
        with _servers():
            call_command("migrate", verbosity=0, interactive=False)
            if options.verb == "up":
                return up(port=options.port, stopping=stopping)
            return demo(options.files, stopping=stopping)
    except (embedded.EmbeddedError, ChildDiedError, OSError, SystemCheckError) as error:
        _print_line(str(error), stream=sys.stderr)
    except OperationalError as error:
        line = absence.explain(error)
        if line is None:
            raise
        _print_line(line, stream=sys.stderr)
    return 1


def up(*, port: int, stopping: threading.Event) -> int:
    """Run console, workers and scheduler until a signal; print the address and the log-in."""
    with _children() as children:
        _start(children, "workers", "rqworker-pool")
        _start(children, "scheduler", "rqcron")
        # DEBUG is off, so Django serves the admin's stylesheets only with --insecure.
        _start(children, "console", "runserver", "--noreload", "--insecure", f"127.0.0.1:{port}")
        if not _wait_until_listening(port, children, stopping):
            return 0
        _print_line(f"Console: http://127.0.0.1:{port}/admin/")
        for line in _demo_login():
            _print_line(line)
        for child in children:
            _print_line(f"The {child.name}: process {child.process.pid}, log {child.log}")
        _print_line("Ctrl-C stops everything.")
        while not stopping.wait(POLL_S):
            _raise_if_died(children)
    return 0


def demo(files: Sequence[Path], *, stopping: threading.Event) -> int:
    """Process `files` with real workers, explain one record, and return the exit code."""
    names = [str(path) for path in files]
    with _children() as children:
        _start(children, "workers", "rqworker-pool")
        _start(children, "scheduler", "rqcron")
        code = _run_beside(children, stopping, "process", *names, "--force")
        record = _latest_record()
        if record is not None and not stopping.is_set():
            _print_line(f"\nmanage.py explain {record}\n")
            code = _run_beside(children, stopping, "explain", record) or code
    if stopping.is_set():
        return 130
    if code == 0:
        _print_line("\nThe console with these records: make up")
    return code


@contextmanager
def _servers() -> Iterator[None]:
    """Keep the embedded servers running; at the end stop the servers that this call started."""
    places = settings.EMBEDDED
    ours = settings.EMBEDDED_POSTGRES, settings.EMBEDDED_VALKEY
    were_running = any(found.running for found in embedded.status(places))
    if any(ours):
        embedded.up(places, with_postgres=ours[0], with_valkey=ours[1])
    try:
        yield
    finally:
        if any(ours) and not were_running:
            embedded.down(places)


@contextmanager
def _children() -> Iterator[list[Child]]:
    """Keep a list of children; at the end ask all of them to stop, and kill those that do not."""
    children: list[Child] = []
    try:
        yield children
    finally:
        for child in children:
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        grace_s = _grace_s()
        deadline = time.monotonic() + grace_s
        for child in children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _print_line(f"{child.name} did not stop within {grace_s:.0f} s; killed", sys.stderr)
                os.killpg(child.process.pid, signal.SIGKILL)
                child.process.wait()


def _grace_s() -> float:
    """Return the seconds that children get between SIGTERM and SIGKILL."""
    return scaled(settings.STOP_GRACE_S) + GRACE_MARGIN_S


def _start(children: list[Child], name: str, *arguments: str) -> None:
    folder = private.folder(settings.MEDPROC_DATA_DIR / "logs")
    log = folder / f"{name}.log"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            _manage(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    children.append(Child(name=name, process=process, log=log))


def _run_beside(children: list[Child], stopping: threading.Event, *arguments: str) -> int:
    """Run a command on this terminal to its end, or until a child dies."""
    process = subprocess.Popen(_manage(*arguments))
    try:
        while process.poll() is None:
            _raise_if_died(children)
            if stopping.wait(POLL_S):
                break
    finally:
        if process.poll() is None:
            process.terminate()
    return process.wait()


def _manage(*arguments: str) -> list[str]:
    return [sys.executable, str(PROJECT_ROOT / "manage.py"), *arguments]


def _raise_if_died(children: Sequence[Child]) -> None:
    for child in children:
        code = child.process.poll()
        if code is not None:
            raise ChildDiedError(f"The {child.name} ended with exit code {code}; see {child.log}")


def _stop_on_signals() -> threading.Event:
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise OSError(f"Port {port} is taken; choose another: make up PORT=8001") from None


def _wait_until_listening(port: int, children: Sequence[Child], stopping: threading.Event) -> bool:
    while not stopping.is_set():
        _raise_if_died(children)
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            stopping.wait(POLL_S)
        else:
            return True
    return False


def _demo_login() -> list[str]:
    """Create the demo user if the database is embedded; return lines that explain the log-in."""
    from django.contrib.auth import get_user_model

    if not settings.EMBEDDED_POSTGRES:
        return ["Log in as one of your own users (`manage.py createsuperuser` creates a user)."]
    path = settings.MEDPROC_DATA_DIR / "demo-password"
    password = private.kept_text(path, lambda: secrets.token_urlsafe(12))
    users = get_user_model()
    user = users.objects.filter(username=DEMO_USER).first()
    if user is None:
        user = users.objects.create_superuser(DEMO_USER, password=password)
    if not user.check_password(password):
        return [f"Log in as {DEMO_USER} with the password that you have set."]
    return [f"Log in as {DEMO_USER} with the password {password}"]


def _latest_record() -> str | None:
    from pipeline.models import ShellFile

    record = ShellFile.objects.order_by("-created_at").values_list("pk", flat=True).first()
    return None if record is None else str(record)


def _print_line(text: str, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
