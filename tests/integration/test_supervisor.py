"""`make up` starts everything together, and stops everything together."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from medproc import embedded, unprivileged
from medproc.embedded import places, processes
from medproc.env import PROJECT_ROOT, VARIABLES

pytestmark = [
    pytest.mark.xdist_group("supervisor"),
    pytest.mark.slow(reason="starts and ends everything that `make up` runs: 50 s"),
]

PATIENCE_S = 240
"""A busy machine may take minutes to stop three processes and two servers."""


def _free_port() -> int:
    """Return a port below those that the system gives to clients: no connection takes it later."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _get(url: str) -> str:
    with urlopen(url) as page:  # noqa: S310 - a loopback address of our own
        text: str = page.read().decode()
    return text


class _Up:
    """A running `make up` with a separate data folder."""

    def __init__(self, data_dir: Path) -> None:
        names = {*VARIABLES, "DJANGO_SETTINGS_MODULE"}
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


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a data folder; the first start fills it, and later starts find it filled."""
    folder = tmp_path_factory.mktemp("up") / "var"
    yield folder
    shutil.rmtree(places.places_of(folder).base, ignore_errors=True)


@pytest.fixture
def everything(data_dir: Path) -> Iterator[_Up]:
    started = _Up(data_dir)
    yield started
    if started.process.poll() is None:
        started.process.terminate()
    started.process.communicate(timeout=PATIENCE_S)
    embedded.down(places.places_of(data_dir))


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


def test_two_first_starts_share_the_servers_until_the_last_one_ends(tmp_path: Path) -> None:
    """Two terminals start at once; one stops, the other is killed."""
    data_dir = tmp_path / "var"
    both = [_Up(data_dir), _Up(data_dir)]
    try:
        first, second = both
        seen = [up.read_until("Ctrl-C stops everything") for up in both]
        found = places.places_of(data_dir)
        servers = [server.pid for server in embedded.status(found)]
        users = _real_users(_with_descendants(_children("".join(seen))))

        first.process.send_signal(signal.SIGINT)
        code = first.process.wait(timeout=PATIENCE_S)
        after_first = [server.pid for server in embedded.status(found)]
        _get(f"http://127.0.0.1:{second.port}/admin/")
        second.process.kill()
        second.process.wait()
        left = _with_descendants(_children(seen[1]))
        gone = processes.wait_for(
            lambda: not any(processes.command_line(pid) for pid in left), seconds=PATIENCE_S
        )
        after_kill = [server.pid for server in embedded.status(found)]
        with embedded.in_use(found):
            pass
    finally:
        for up in both:
            if up.process.poll() is None:
                up.process.terminate()
            up.process.communicate(timeout=PATIENCE_S)
        embedded.down(places.places_of(data_dir))
        shutil.rmtree(places.places_of(data_dir).base, ignore_errors=True)

    assert users == {unprivileged.owner_of_data()[0]}
    assert code == 0
    assert None not in servers
    assert servers == after_first == after_kill
    assert gone
    assert [server.pid for server in embedded.status(found)] == [None, None]


def _with_descendants(pids: list[int]) -> list[int]:
    """Return these processes and those that they started."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            facts = dict(line.split(":", 1) for line in status.read_text("ascii").splitlines())
            parents.setdefault(int(facts["PPid"]), []).append(int(facts["Pid"]))
    return pids + [found for pid in pids for found in _with_descendants(parents.get(pid, []))]


def _real_users(pids: list[int]) -> set[int]:
    """Return the real and effective users of these processes; a periodic task may have ended."""
    found: set[int] = set()
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
            (uids,) = (line.split()[1:] for line in lines if line.startswith("Uid:"))
            found |= {int(uid) for uid in uids}
    return found
