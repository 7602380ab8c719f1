"""`python -m medproc.supervisor up|demo|codes`: the whole service, or one load, in the foreground.

The supervisor starts the embedded servers, migrates, and runs console, workers and scheduler as
children. Ctrl-C, SIGTERM, the death of a child and the death of the supervisor end all children.
The last supervisor stops the servers, unless `manage.py services up` started them.
"""

from __future__ import annotations

import argparse
import errno
import io
import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import OperationalError

from medproc import embedded, ports, private, startup
from medproc.children import (
    POLL_S,
    ChildDiedError,
    Children,
    HeldChild,
    SurvivorsError,
    children,
    held_child,
    refuse_beside_survivors,
)
from medproc.env import PROJECT_ROOT
from medproc.forked import fork_command
from medproc.stop_signal import StopSignal
from pipeline.core.errors import MedprocError
from pipeline.core.server_faults import refusal_line

DEMO_USER = "demo"
_REPORTED = (embedded.EmbeddedError, ChildDiedError, SurvivorsError, ports.PortError)
FIRST_STEPS_LOCK = int.from_bytes(b"medproc1", "big") >> 1
"""Key of the advisory lock that a start holds while it migrates and creates the first user."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m medproc.supervisor", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up_parser = verbs.add_parser("up", help="console, workers and scheduler until Ctrl-C")
    up_parser.add_argument("--port", default="8000")
    demo_parser = verbs.add_parser("demo", help="process files end to end and show one")
    demo_parser.add_argument("files", nargs="+", type=Path)
    codes_parser = verbs.add_parser("codes", help="load code systems from their packages")
    codes_parser.add_argument("systems", nargs="+")
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    os.chdir(PROJECT_ROOT)
    startup.refuse_wrong_environment()
    stopping = StopSignal()
    stopping.catch()
    try:
        port = ports.port_number(options.port) if options.verb == "up" else 0
        django.setup()
        call_command("check", tags=["environment"], stdout=io.StringIO())
        refuse_beside_survivors(stopping)
        if options.verb == "up":
            ports.refuse_unusable(port)
        if options.verb == "codes":
            return _load(options.systems)
        from pipeline.operations.service_hooks import serving

        # The workers load their modules while the servers start and migrate.
        with held_child("workers", "rqworker-pool", prepare=_warm) as workers, _servers():
            with _alone():
                call_command("migrate", verbosity=0, interactive=False)
                _load_codes()
                _create_demo_user()
            # The last head is recorded after the end of all children, before the server stops.
            with serving("medproc", level=logging.DEBUG):
                if options.verb == "up":
                    return up(workers, port=port, login=_demo_login(), stopping=stopping)
                return demo(workers, options.files, stopping=stopping)
    except (OSError, SystemCheckError, CommandError, MedprocError, *_REPORTED) as error:
        _print_line(_reason(error), stream=sys.stderr)
    except OperationalError as error:
        line = refusal_line(error)
        if line is None:
            raise
        _print_line(line, stream=sys.stderr)
    return 1


def up(workers: HeldChild, *, port: int, login: Sequence[str], stopping: StopSignal) -> int:
    """Run console, workers and scheduler until a signal; print the address and the log-in."""
    with children() as running:
        running.release(workers)
        running.start("scheduler", "rqcron")
        running.start("console", "serve", f"127.0.0.1:{port}")
        if not _wait_until_listening(port, running, stopping):
            return 0
        _print_line(f"Console: http://127.0.0.1:{port}/admin/")
        for line in login:
            _print_line(line)
        for child in running.started:
            _print_line(f"The {child.name}: process {child.process.pid}, log {child.log}")
        _print_line("Ctrl-C stops everything.")
        while not stopping.wait(POLL_S):
            running.raise_if_died()
    return 0


def demo(workers: HeldChild, files: Sequence[Path], *, stopping: StopSignal) -> int:
    """Process `files` with real workers, explain one record, and return the exit code."""
    names = [str(path) for path in files]
    with children() as running:
        running.release(workers)
        running.start("scheduler", "rqcron")
        code = _run_beside(running, stopping, "process", *names, "--force")
        # The results are complete: the workers leave while the results are printed.
        running.ask_to_stop()
        records = _latest_records(len(names))
        if records and not stopping.is_set():
            _print_line("\nmanage.py summary ID… --lines 3\n")
            code = _run_here("summary", *records, "--lines", "3") or code
        if records and not stopping.is_set():
            _print_line(f"\nmanage.py explain {records[-1]}\n")
            code = _run_here("explain", records[-1]) or code
    if stopping.is_set():
        return 130
    if code == 0:
        _print_line("\nThe console with these records: make up")
    return code


@contextmanager
def _servers() -> Iterator[None]:
    """Keep the embedded servers running; the last supervisor stops them at the end."""
    ours = settings.EMBEDDED_POSTGRES, settings.EMBEDDED_VALKEY
    if not any(ours):
        yield
        return
    with embedded.in_use(settings.EMBEDDED, with_postgres=ours[0], with_valkey=ours[1]):
        yield


@contextmanager
def _alone() -> Iterator[None]:
    """Let one start at a time take the first steps: two migrations at once break each other."""
    try:
        session = psycopg.connect(settings.DATABASE_URL, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise OperationalError(str(error)) from error
    with session:
        session.execute("SELECT pg_advisory_lock(%s)", [FIRST_STEPS_LOCK])
        yield


def _run_beside(running: Children, stopping: StopSignal, *arguments: str) -> int:
    """Run a command on this terminal to its end, or until a child dies."""
    process = fork_command(*arguments)
    try:
        while process.poll() is None:
            running.raise_if_died()
            if stopping.wait(POLL_S):
                break
    finally:
        process.terminate()
    return process.wait()


def _run_here(*arguments: str) -> int:
    """Run a short command in this process, which has loaded Django; return the exit code."""
    try:
        call_command(*arguments)
    except CommandError as error:
        _print_line(_reason(error), stream=sys.stderr)
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _warm() -> None:
    """Load the modules of the workers, in the fork that becomes the pool of workers."""
    from pipeline.workers.warming import warm

    warm()


def _wait_until_listening(port: int, running: Children, stopping: StopSignal) -> bool:
    while not stopping.is_set():
        running.raise_if_died()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            stopping.wait(POLL_S)
        else:
            return True
    return False


def _load_codes() -> None:
    """Load the code systems that medproc carries, unless they are loaded."""
    from pipeline.codes.loaders import ensure_loaded
    from pipeline.models import SystemKey

    ensure_loaded([SystemKey.ICD10CM, SystemKey.LOINC], before=_say_load)


def _load(systems: Sequence[str]) -> int:
    """Start the servers, migrate, and load code systems; return 0."""
    with _servers(), _alone():
        call_command("migrate", verbosity=0, interactive=False)
        return _load_packages(systems)


def _load_packages(systems: Sequence[str]) -> int:
    """Load systems from their packages; codes from the user's own file stay. Return 0."""
    from pipeline.codes.loaders import ensure_loaded, own_file

    for system in systems:
        kept = own_file(system)
        if kept is None:
            _say_load(system)
            call_command("load_codes", system)
        else:
            _print_line(
                f"{system}: your own codes stay, from {kept}."
                f" For the codes of the package: manage.py load_codes {system}"
            )
    ensure_loaded([], before=_say_load)
    return 0


def _say_load(system: str) -> None:
    """Say what takes minutes."""
    _print_line(f"Loading {system} and its search index ...")


def _create_demo_user() -> None:
    """Create the demo user at the first start only.

    A demo user that was deleted or changed stays deleted or changed. So a file remembers the first
    start, and a database with any user counts as started.
    """
    created = settings.MEDPROC_DATA_DIR / "demo-created"
    if not settings.EMBEDDED_POSTGRES or created.exists():
        return
    from django.contrib.auth import get_user_model

    users = get_user_model().objects
    if not users.exists():
        password_file = settings.MEDPROC_DATA_DIR / "demo-password"
        password = private.kept_text(password_file, lambda: secrets.token_urlsafe(12))
        users.create_superuser(DEMO_USER, password=password)
    private.kept_text(created, lambda: "The user demo was created and is never created again.")


def _demo_login() -> list[str]:
    """Return lines that explain the log-in. The check of a password takes half a second of CPU."""
    from django.contrib.auth import get_user_model

    others = ["Log in as one of your own users (`manage.py createsuperuser` creates a user)."]
    if not settings.EMBEDDED_POSTGRES:
        return others
    password_file = settings.MEDPROC_DATA_DIR / "demo-password"
    user = get_user_model().objects.filter(username=DEMO_USER, is_active=True).first()
    if user is None or not password_file.exists():
        return others
    password = password_file.read_text("utf-8")
    if not user.check_password(password):
        return [f"Log in as {DEMO_USER} with the password that you have set."]
    return [f"Log in as {DEMO_USER} with the password {password}"]


def _reason(error: Exception) -> str:
    """Return the message of an error in one line, without the traceback."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return str(embedded.no_room(settings.MEDPROC_DATA_DIR))
    return str(error)


def _latest_records(number: int) -> list[str]:
    """Return the ids of the newest records, the oldest of them first."""
    from pipeline.models import ShellFile

    newest = ShellFile.objects.order_by("-created_at").values_list("pk", flat=True)[:number]
    return [str(record) for record in newest][::-1]


def _print_line(text: str, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
