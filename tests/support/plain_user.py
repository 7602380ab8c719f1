"""Run a command as a user without rights, on a machine where the tests run as root."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from medproc import unprivileged
from medproc.env import PROJECT_ROOT, VARIABLES

_LEAVE = (
    "import os, sys; from pathlib import Path; from medproc import unprivileged\n"
    "reason = unprivileged.leave_root([*unprivileged.code_folders(), Path(sys.argv[1])])\n"
    "assert reason is None, reason\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


@contextmanager
def plain_folder() -> Iterator[Path]:
    """Provide a short folder that belongs to the user without rights."""
    with tempfile.TemporaryDirectory(prefix="mp-", dir="/tmp") as name:
        os.chown(name, *unprivileged.owner_of_data())
        yield Path(name)


def newcomer(data_dir: Path, **variables: str) -> dict[str, str]:
    """Return an environment in which only the data folder is set."""
    names = {*VARIABLES, "DJANGO_SETTINGS_MODULE"}
    environment = {name: value for name, value in os.environ.items() if name not in names}
    return {**environment, "MEDPROC_DATA_DIR": str(data_dir), **variables}


def as_plain_user(
    folder: Path, *arguments: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Python with `arguments`; the user can enter `folder` and the code."""
    return subprocess.run(
        [sys.executable, "-c", _LEAVE, str(folder), *arguments],
        cwd=PROJECT_ROOT,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
