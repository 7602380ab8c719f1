#!/usr/bin/env python
"""Run a management command. One line reports a server that refuses; a closed pipe ends quietly.

A command that serves until it is stopped leaves root before it begins. The exit code is 1 if a
server refuses, 130 after Ctrl-C, and 141 if the reader of the output has closed the pipe.
"""

from __future__ import annotations

import os
import select
import sys

INTERRUPTED, PIPE_CLOSED = 130, 141
"""128 + SIGINT and 128 + SIGPIPE: the exit codes that a shell gives."""


def main() -> int:
    """Run the command of `sys.argv` and give its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    from medproc import serving_user

    serving_user.leave_root_to_serve(sys.argv)
    from django.core.management import execute_from_command_line
    from django.db import Error as DatabaseError
    from redis.exceptions import RedisError

    from pipeline.core.errors import PipelineError

    if not _asks_for_help(sys.argv[1:]):
        from medproc import startup

        startup.refuse_wrong_environment()
    try:
        execute_from_command_line(sys.argv)
    except (DatabaseError, RedisError, PipelineError) as error:
        from pipeline.core.server_faults import refusal_line

        line = refusal_line(error)
        if line is None and isinstance(error, DatabaseError) and sys.argv[1:2] != ["migrate"]:
            from pipeline.core.redaction import redacted

            # PostgreSQL's message can quote a row of a patient. A migration reads no row.
            line = f"PostgreSQL refused a statement: {redacted(error)}"
        if line is None:
            raise
        sys.stderr.write(f"{line}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _asks_for_help(arguments: list[str]) -> bool:
    """Return whether the command only prints help, which works in a wrong environment too."""
    return arguments[:1] in (["help"], ["version"], ["--version"]) or bool(
        {"--help", "-h"} & set(arguments)
    )


def _run() -> int | str | None:
    try:
        try:
            code: int | str | None = main()
        except SystemExit as end:
            code = end.code
        # Python flushes at its end, too late for this handler.
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        if not any(map(_is_closed, (sys.stdout.fileno(), sys.stderr.fileno()))):
            raise
        # The text that is left has no reader, and Python would complain about it at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            if _is_closed(stream.fileno()):
                os.dup2(nowhere, stream.fileno())
        return PIPE_CLOSED
    return code


def _is_closed(descriptor: int) -> bool:
    """Return whether the descriptor is a pipe whose reader has closed it."""
    looked = select.poll()
    looked.register(descriptor, select.POLLERR)
    return any(event & select.POLLERR for _, event in looked.poll(0))


if __name__ == "__main__":
    sys.exit(_run())
