#!/usr/bin/env python
"""Run a management command; report a missing database or Redis in one line."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command of `sys.argv` and give its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import TimeoutError as RedisTimeoutError

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


if __name__ == "__main__":
    sys.exit(main())
