"""Run `pg_dump` and `pg_restore` on the database of the default connection.

The password goes through the environment: every user of a host can read a command line.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from django.db import connection
from psycopg.conninfo import make_conninfo

from medproc.embedded import EmbeddedError
from medproc.embedded.binaries import client_program
from pipeline.core.errors import UserError, UserErrorCode

_NOT_FOR_LIBPQ = frozenset({"pool", "server_side_binding", "isolation_level", "assume_role"})
"""Options of Django's connection that libpq does not know."""


def run_on_database(program: str, *arguments: str | Path) -> None:
    """Run `pg_dump` or `pg_restore`. Raises UserError with the first line of its complaint.

    A complaint of `pg_restore` can quote a row. Everything from the first quotation mark on is left
    out.
    """
    command = [str(_path_of(program)), "--no-password", f"--dbname={_address()}"]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env={**os.environ, "PGPASSWORD": str(connection.settings_dict["PASSWORD"])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "error" in line), "")
        reason = said.partition('"')[0].removeprefix(f"{program}: error: ").strip()[:200]
        raise UserError(
            f"{program} ended with exit code {done.returncode}: {reason or 'no reason given'}",
            code=UserErrorCode.BACKUP_FAILED,
        )


def _path_of(program: str) -> Path:
    try:
        return client_program(program)
    except EmbeddedError as error:
        raise UserError(str(error), code=UserErrorCode.BACKUP_FAILED) from None


def _address() -> str:
    """Return the address of the database without the password, in the form of libpq."""
    of = connection.settings_dict
    options = {name: value for name, value in of["OPTIONS"].items() if name not in _NOT_FOR_LIBPQ}
    named = {"dbname": of["NAME"], "user": of["USER"], "host": of["HOST"], "port": of["PORT"]}
    return make_conninfo(**{name: value for name, value in {**named, **options}.items() if value})
