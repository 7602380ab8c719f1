"""The refusal of a wrong environment, at the start of every process.

Each wrong variable is one line on stderr, which never holds the value. Nothing else starts.
"""

from __future__ import annotations

import sys

from django.conf import settings

WRONG_ENVIRONMENT = 1
WEB_SERVER_GIVES_UP = 3
"""The exit code at which a pre-forking web server stops instead of starting the worker again."""


def refuse_wrong_environment(exit_code: int = WRONG_ENVIRONMENT) -> None:
    """Print one line per wrong variable and exit; return if the environment is right."""
    if not settings.ENVIRONMENT_PROBLEMS:
        return
    for problem in settings.ENVIRONMENT_PROBLEMS:
        sys.stderr.write(f"{problem.line}\n")
    sys.stderr.flush()
    raise SystemExit(exit_code)
