"""A management command in a fork: its exit code, its output, and what it lets go of."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import django
import pytest

from medproc.env import PROJECT_ROOT

FORK = """
import fcntl, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "medproc.settings"
import django
django.setup()
from medproc.forked import fork_command
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
ours, theirs = os.pipe()
log = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
running = fork_command(*sys.argv[3:], log=log)
os.close(theirs)
os.close(lock)
# The end of the pipe shows that the command holds no copy of it.
at_end, session = os.read(ours, 1), os.getsid(running.pid)
print(running.pid, at_end, session == running.pid, flush=True)
sys.stdin.readline()
print(running.wait())
print(running.poll())
"""


def _forked(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", FORK, str(tmp_path / "lock"), str(tmp_path / "log"), *arguments],
        cwd=PROJECT_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["version"], 0, ""),
        (["nonsense"], 1, "Unknown command: 'nonsense'"),
        (["gemini_emulator", "--port", "x"], 2, "invalid int value: 'x'"),
    ],
)
def test_a_fork_ends_with_the_exit_code_of_its_command(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    said, _ = _forked(tmp_path, *arguments).communicate("\n")

    lines = said.splitlines()
    assert lines[-2:] == [str(code), str(code)]
    assert words in (tmp_path / "log").read_text()
    assert len(lines) == 3


def test_a_fork_has_its_own_session_and_holds_no_lock_and_no_pipe_of_its_parent(
    tmp_path: Path,
) -> None:
    parent = _forked(tmp_path, "gemini_emulator", "--port", "0")
    assert parent.stdout is not None
    number, pipe, is_apart = parent.stdout.readline().split()
    with (tmp_path / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    lives = parent.poll() is None and Path(f"/proc/{number}").exists()
    os.kill(int(number), signal.SIGKILL)
    said, _ = parent.communicate("\n")

    assert (is_apart, pipe, lives) == ("True", "b''", True)
    assert said.splitlines() == ["-9", "-9"]


HELD = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "medproc.settings"
import django
django.setup()
from medproc.forked import hold_command
log = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
done = sys.argv[2]
held = hold_command("version", log=log, prepare=lambda: open(done, "w").close())
while not os.path.exists(done):
    pass
print(held.poll(), os.fstat(log).st_size, flush=True)
if sys.argv[3] == "released":
    held.release()
else:
    # The kernel does this when the parent dies.
    os.close(held._gate)
print(held.wait())
"""


def test_a_held_command_prepares_itself_and_begins_when_it_is_released(tmp_path: Path) -> None:
    said = _held(tmp_path, "released")

    assert said == ["None 0", "0"]
    assert (tmp_path / "log").read_text().strip() == django.get_version()


def test_a_held_command_ends_without_a_start_when_its_parent_ends(tmp_path: Path) -> None:
    said = _held(tmp_path, "not released")

    assert said == ["None 0", "0"]
    assert (tmp_path / "log").read_text() == ""


def _held(tmp_path: Path, word: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-c", HELD, str(tmp_path / "log"), str(tmp_path / "prepared"), word],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
