#!/usr/bin/env python
"""Run a management command; a database or Redis that is away is said in one line."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command of `sys.argv` and return its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
