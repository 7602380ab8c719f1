#!/usr/bin/env python
"""Run a management command; report a missing database or Redis in one line.

A command that serves until it is stopped leaves root before it begins.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command of `sys.argv` and give its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    from medproc import unprivileged

    unprivileged.leave_root_to_serve(sys.argv)
    from django.core.management import execute_from_command_line
    from django.db import OperationalError
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import TimeoutError as RedisTimeoutError

    if not _asks_for_help(sys.argv[1:]):
        from medproc import startup

        startup.refuse_wrong_environment()
    try:
        execute_from_command_line(sys.argv)
    except (OperationalError, RedisConnectionError, RedisTimeoutError) as error:
        from medproc import absence

        line = absence.explain(error)
        if line is None:
            raise
        sys.stderr.write(f"{line}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _asks_for_help(arguments: list[str]) -> bool:
    """Return whether the command only explains itself, which a wrong environment never prevents."""
    return arguments[:1] in (["help"], ["version"], ["--version"]) or bool(
        {"--help", "-h"} & set(arguments)
    )


if __name__ == "__main__":
    sys.exit(main())
