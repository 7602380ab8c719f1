"""`make up` starts everything together, and stops everything together."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from medproc import children, embedded, ports
from medproc.embedded import places, processes
from medproc.env import PROJECT_ROOT, Environment

pytestmark = [
    pytest.mark.xdist_group("supervisor"),
    pytest.mark.slow(reason="starts and ends everything that `make up` runs: 27 s"),
]

PATIENCE_S = 240
"""A busy machine may take minutes to stop three processes and two servers."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _get(url: str) -> str:
    with urlopen(url) as page:  # noqa: S310 - a loopback address of our own
        text: str = page.read().decode()
    return text


class _Up:
    """A running `make up` with a separate data folder."""

    def __init__(self, data_dir: Path) -> None:
        names = {*Environment.model_fields, "DJANGO_SETTINGS_MODULE"}
        environment = {name: value for name, value in os.environ.items() if name not in names}
        self.port = _free_port()
        self.data_dir = data_dir
        self.process = subprocess.Popen(
            [sys.executable, "-m", "medproc.supervisor", "up", "--port", str(self.port)],
            cwd=PROJECT_ROOT,
            env={
                **environment,
                "MEDPROC_DATA_DIR": str(data_dir),
                "WORKER_CONCURRENCY": "1",
                "PAGES_CONCURRENCY": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def read_until(self, words: str) -> str:
        assert self.process.stdout is not None
        seen = ""
        for line in self.process.stdout:
            seen += line
            if words in line:
                return seen
        raise AssertionError(f"ended with {self.process.wait()} before {words!r}: {seen}")


def _children(seen: str) -> list[int]:
    return [int(number) for number in re.findall(r": process (\d+), log ", seen)]


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[_Up]:
    started = _Up(tmp_path / "var")
    yield started
    if started.process.poll() is None:
        started.process.terminate()
    started.process.communicate(timeout=PATIENCE_S)
    found = places.places_of(tmp_path / "var")
    embedded.down(found)
    shutil.rmtree(found.base, ignore_errors=True)


def test_up_serves_the_console_and_one_interrupt_ends_it_all(everything: _Up) -> None:
    seen = everything.read_until("Ctrl-C stops everything")
    started = _children(seen)
    console = f"http://127.0.0.1:{everything.port}"
    text = _get(f"{console}/admin/")
    _get(f"{console}/static/admin/css/base.css")

    everything.process.send_signal(signal.SIGINT)

    assert everything.process.wait(timeout=PATIENCE_S) == 0
    assert f"{console}/admin/" in seen
    password = (everything.data_dir / "demo-password").read_text("utf-8")
    assert re.search(rf"Log in as demo with the password {re.escape(password)}$", seen, re.M)
    assert 'name="password"' in text
    assert len(started) == 3
    assert [pid for pid in started if processes.command_line(pid)] == []
    servers = embedded.status(places.places_of(everything.data_dir))
    assert [server.pid for server in servers] == [None, None]


def test_the_death_of_a_child_is_reported_and_stops_the_others(everything: _Up) -> None:
    started = _children(everything.read_until("Ctrl-C stops everything"))

    os.kill(started[-1], signal.SIGKILL)

    everything.read_until("ended with exit code -9; see ")
    assert everything.process.wait(timeout=PATIENCE_S) == 1
    assert [pid for pid in started if processes.command_line(pid)] == []


def test_a_taken_port_is_reported_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(ports.PortError, match=f"^Port {port} is taken; choose another"):
            ports.refuse_unusable(port)


def test_children_have_as_long_as_a_step_may_take_to_drain(settings: Any) -> None:
    settings.TIME_SCALE = 1.0
    settings.STOP_GRACE_S = 120.0

    assert children.grace_s() == 135.0
