"""A command whose output has no reader any more ends quietly, as with `| head`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from medproc.env import PROJECT_ROOT
from tests.support.rows import a_job

PIPE_CLOSED = 128 + 13


def into_a_closed_pipe(*arguments: str) -> tuple[int, str]:
    """Run `manage.py` with a standard output that has no reader; return exit code and stderr."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT_ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("command", ["explain", "health", "help"])
def test_a_closed_pipe_ends_a_command_quietly(
    command: str, cloned_db: str, redis_db: object
) -> None:
    arguments = [str(a_job().id)] if command == "explain" else []

    assert into_a_closed_pipe(command, *arguments) == (PIPE_CLOSED, "")
