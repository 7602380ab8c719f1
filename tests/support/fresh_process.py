"""A fresh interpreter of the project, for what happens once per process."""

from __future__ import annotations

import os
import subprocess
import sys

from medproc.env import PROJECT_ROOT


def printed_by(code: str) -> str:
    """Run Python code in a new process, and return what the code has printed."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT_ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "medproc.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
