"""The embedded PostgreSQL 18: created, started, stopped and recovered.

The server listens only on a socket in a 0700 folder. It trusts every user who can reach that
folder: its owner and root. The application role can append to the audit and owns no table.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
from pathlib import Path

import psycopg

from medproc import private
from medproc.embedded import binaries
from medproc.embedded.errors import EmbeddedError
from medproc.embedded.places import APPLICATION, SUPERUSER, Places
from medproc.embedded.processes import (
    command_line,
    detach,
    refusal,
    run,
    size,
    stop,
    wait_for,
)
from medproc.unprivileged import ServerUser

START_S = 60.0
STOP_S = 60.0
ROLES = Path(__file__).parent.parent / "roles.sql"
_NO_PROCESS = 2**22 + 1
"""One above the greatest process id of Linux, so no process has it."""

DURABLE = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # An error's text can quote a row or a value, and a statement or its parameters can hold a
    # patient's data. So the log has the server's own messages, and no error of a session.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
}
_VECTOR = "CREATE EXTENSION IF NOT EXISTS vector"
_HAS_VECTOR = "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
THROW_AWAY = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_wal_size": "4GB",
}


def start(places: Places, user: ServerUser, *, throw_away: bool = False) -> None:
    """Start the server unless it runs; create missing data and database first."""
    if running_pid(places) is None:
        programs = binaries.postgres_binaries(places, user)
        private.folder(places.sockets, uid=user.uid, gid=user.gid)
        _make_data(places, user, programs, durable=not throw_away)
        _launch(places, user, programs, {**DURABLE, **(THROW_AWAY if throw_away else {})})
    _make_database(places)


def shut_down(places: Places) -> bool:
    """Stop the server and disconnect its clients; return whether the server ran."""
    pid = running_pid(places)
    if pid is None:
        return False
    if not (stop(pid, signal.SIGINT, seconds=STOP_S) or stop(pid, signal.SIGQUIT, seconds=5)):
        raise EmbeddedError(f"PostgreSQL (process {pid}) does not stop")
    return True


def running_pid(places: Places) -> int | None:
    """Return the process id of the live server of this data folder.

    The id in `postmaster.pid` may belong to a dead process, or by now to another program.
    """
    recorded = _recorded_pid(places)
    if recorded is None:
        return None
    arguments = command_line(recorded)
    return recorded if str(places.postgres_data) in arguments else None


def is_ready(places: Places) -> bool:
    """Return whether the server runs and accepts connections."""
    if running_pid(places) is None:
        return False
    lines = _lock_lines(places)
    return len(lines) > 7 and lines[7].strip() == "ready"


def _make_data(places: Places, user: ServerUser, programs: Path, *, durable: bool) -> None:
    if (places.postgres_data / "PG_VERSION").is_file():
        return
    if set(str(programs)) & set('"$`\\\n'):
        # initdb passes the path of `postgres` to a shell in double quotes.
        raise EmbeddedError(
            f"PostgreSQL's initdb cannot run in {str(programs)!r}: the path contains a quote, $, "
            "a backtick or a backslash; move medproc, or set DATABASE_URL"
        )
    # A killed initdb leaves an incomplete folder. So initdb writes to another name, and the
    # complete folder is renamed.
    partial = places.postgres_data.with_name("postgres.partial")
    shutil.rmtree(partial, ignore_errors=True)
    private.folder(partial, uid=user.uid, gid=user.gid)
    run(
        [
            programs / "initdb",
            # A relative path, because initdb passes the path to a shell.
            f"--pgdata={partial.name}",
            f"--username={SUPERUSER}",
            "--auth-local=trust",
            "--auth-host=reject",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
            *(() if durable else ("--no-sync",)),
        ],
        user=user,
        cwd=places.base,
    )
    partial.rename(places.postgres_data)


def _launch(places: Places, user: ServerUser, programs: Path, options: dict[str, str]) -> None:
    _disown_stale_locks(places, user)
    log = places.postgres_data / "server.log"
    arguments: list[str | Path] = [programs / "postgres", "-D", places.postgres_data]
    arguments += ["-k", places.sockets]
    for name, value in options.items():
        arguments += ["-c", f"{name}={value}"]
    # The workers of a killed postmaster take a moment to exit; until then a new one refuses to
    # start.
    log_before = size(log)
    for _ in range(3):
        pid = detach(arguments, user=user, cwd=places.base, log=log)
        # B023: the lambda is no longer used when `pid` changes.
        wait_for(lambda: is_ready(places) or not command_line(pid), seconds=START_S)  # noqa: B023
        if is_ready(places):
            return
        wait_for(lambda: False, seconds=1.0)
    raise refusal("PostgreSQL", log, log_before)


def _make_database(places: Places) -> None:
    with psycopg.connect(places.url_of(SUPERUSER, "postgres"), autocommit=True) as server:
        if server.execute("SELECT 1 FROM pg_database WHERE datname = 'medproc'").fetchone() is None:
            # Only a superuser can create the extension, so later databases inherit it.
            with psycopg.connect(places.url_of(SUPERUSER, "template1")) as template:
                template.execute(_VECTOR)
            server.execute("CREATE DATABASE medproc")
        # One transaction creates both roles, so neither exists without the other.
        found = server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [APPLICATION])
        has_roles = found.fetchone() is not None
    with psycopg.connect(places.url_of(SUPERUSER, "medproc"), autocommit=True) as database:
        if not has_roles:
            database.execute(ROLES.read_bytes())
        elif not database.execute(_HAS_VECTOR).fetchone():
            # An earlier version created this database.
            database.execute(_VECTOR)


def _disown_stale_locks(places: Places, user: ServerUser) -> None:
    """Let PostgreSQL take over lock files whose process id now belongs to another program.

    The files stay, with an id that no process has: PostgreSQL still checks their shared memory for
    surviving workers of the old server. Raises PermissionError for a link.
    """
    socket_lock = places.sockets / ".s.PGSQL.5432.lock"
    for path in (places.postgres_data / "postmaster.pid", socket_lock):
        try:
            descriptor = _opened_lock(path, user)
        except FileNotFoundError:
            continue
        with os.fdopen(descriptor, "r+", encoding="utf-8") as lock:
            try:
                first, *others = lock.read().splitlines()
            except ValueError:
                path.unlink(missing_ok=True)
                continue
            if str(places.postgres_data) in command_line(_number(first)):
                continue
            lock.seek(0)
            lock.truncate()
            lock.write("\n".join([str(_NO_PROCESS), *others]) + "\n")


def _opened_lock(path: Path, user: ServerUser) -> int:
    """Open a lock file of the server's user for a change.

    Root opens files in a folder of a user with fewer rights. A link there could lead root to any
    file of the system.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise PermissionError(f"{path} is a link") from None
    status = os.fstat(descriptor)
    is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    if not is_plain or status.st_uid not in (user.uid, os.geteuid()):
        os.close(descriptor)
        raise PermissionError(f"{path} is a link or belongs to another user")
    return descriptor


def _recorded_pid(places: Places) -> int | None:
    lines = _lock_lines(places)
    return (_number(lines[0]) or None) if lines else None


def _lock_lines(places: Places) -> list[str]:
    try:
        return (places.postgres_data / "postmaster.pid").read_text("utf-8").splitlines()
    except OSError:
        return []


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0
