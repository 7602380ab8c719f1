"""The pair of embedded servers: up, in use, down, status, and a throw-away pair for tests.

`up` and `in_use` may be called twice, or by several processes at once.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from medproc import private
from medproc.embedded import postgres, valkey
from medproc.embedded.errors import EmbeddedError, no_room
from medproc.embedded.places import Places, server_user, unusable_path
from medproc.embedded.processes import command_line, exclusive, is_free, open_lock, share
from medproc.unprivileged import ServerUser

_PREFIX = "medproc-throw-away-"
_START, _USERS, _KEPT = "start", "users", "kept"
"""Files in the folder of the locks. `start` is locked during a start or stop, each user shares the
lock of `users`, and `kept` exists while `up` keeps the servers running."""


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """The present state of one server."""

    name: str
    running: bool
    """The server accepts connections."""
    pid: int | None
    url: str
    data: Path


def up(
    places: Places,
    *,
    with_postgres: bool = True,
    with_valkey: bool = True,
    throw_away: bool = False,
) -> None:
    """Start the servers that do not run yet; idempotent. They run until `down`.

    Raises EmbeddedError with a one-line message; the servers that this call started are stopped.
    """
    with _starting(places) as user:
        _start(places, user, with_postgres, with_valkey, throw_away=throw_away)
        (places.locks / _KEPT).touch(0o600)


@contextmanager
def in_use(
    places: Places, *, with_postgres: bool = True, with_valkey: bool = True
) -> Iterator[None]:
    """Keep the servers running during the block; the last user stops them.

    Each user shares a file lock, which the kernel releases when the user is killed. Servers that
    `up` started keep running. Raises EmbeddedError as `up` does.
    """
    with _starting(places) as user:
        lock = open_lock(places.locks / _USERS)
        try:
            if is_free(lock) and not any(server.pid for server in status(places)):
                # The servers that `up` started are gone, for example with the host's last boot.
                (places.locks / _KEPT).unlink(missing_ok=True)
            _start(places, user, with_postgres, with_valkey)
            share(lock)
        except BaseException:
            os.close(lock)
            raise
    try:
        yield
    finally:
        with exclusive(places.locks / _START):
            last = is_free(lock)
            os.close(lock)
            if last and not (places.locks / _KEPT).exists():
                _stop(places)


def down(places: Places) -> list[str]:
    """Stop the running servers and return their names."""
    if not places.base.is_dir():
        return []
    private.folder(places.locks)
    with exclusive(places.locks / _START):
        (places.locks / _KEPT).unlink(missing_ok=True)
        return _stop(places)


def status(places: Places) -> tuple[ServerStatus, ServerStatus]:
    """Return the state of PostgreSQL and Valkey, without changing anything."""
    return (
        ServerStatus(
            name="PostgreSQL",
            running=postgres.is_ready(places),
            pid=postgres.running_pid(places),
            url=places.database_url,
            data=places.postgres_data,
        ),
        ServerStatus(
            name="Valkey",
            running=valkey.is_ready(places),
            pid=valkey.running_pid(places),
            url=places.redis_url,
            data=places.valkey_data,
        ),
    )


def throw_away_places() -> Places:
    """Create a new folder for a pair of throw-away servers.

    First removes pairs whose process was killed before it could remove them.
    """
    user = server_user()
    folder = _short_temporary_folder(user)
    for left in folder.glob(f"{_PREFIX}*"):
        # Another process may sweep, or throw away its own folder, at the same moment.
        with suppress(FileNotFoundError):
            if left.stat().st_uid == os.geteuid() and not _owner_lives(left):
                throw_away(_at(left))
    base = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
    (base / "owner").write_text(str(os.getpid()), "utf-8")
    return _at(base)


def throw_away(places: Places) -> None:
    """Stop the servers at `places` and remove all their files."""
    down(places)
    shutil.rmtree(places.base, ignore_errors=True)


@contextmanager
def throw_away_servers() -> Iterator[Places]:
    """Run a pair of servers without durability; remove them and their data at the end."""
    places = throw_away_places()
    try:
        up(places, throw_away=True)
        yield places
    finally:
        throw_away(places)


@contextmanager
def _starting(places: Places) -> Iterator[ServerUser]:
    """Create the folders, and hold the lock of starts and stops.

    Raises EmbeddedError for a full disk.
    """
    reason = unusable_path(places)
    if reason is not None:
        raise EmbeddedError(f"PostgreSQL and Valkey cannot use {str(places.base)!r}: {reason}")
    user = server_user()
    try:
        # The parent folder is private, or only traversable for the servers' user. The locks are
        # in a private folder: another user could hold a lock that they can open.
        uid, gid = os.geteuid(), os.getegid()
        private.folder(places.base, uid=uid, gid=gid, mode=0o711 if user.changes else 0o700)
        private.folder(places.locks, uid=uid, gid=gid)
        with exclusive(places.locks / _START):
            yield user
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise no_room(places.base) from None
        raise


def _start(
    places: Places,
    user: ServerUser,
    with_postgres: bool,
    with_valkey: bool,
    *,
    throw_away: bool = False,
) -> None:
    started: list[Callable[[Places], bool]] = []
    try:
        if with_valkey and valkey.running_pid(places) is None:
            started.append(valkey.shut_down)
        if with_valkey:
            valkey.start(places, user, throw_away=throw_away)
        if with_postgres and postgres.running_pid(places) is None:
            started.append(postgres.shut_down)
        if with_postgres:
            postgres.start(places, user, throw_away=throw_away)
    except BaseException:
        for shut_down in reversed(started):
            with suppress(EmbeddedError):
                shut_down(places)
        raise


def _stop(places: Places) -> list[str]:
    stopped = []
    try:
        if postgres.shut_down(places):
            stopped.append("PostgreSQL")
    finally:
        if valkey.shut_down(places):
            stopped.append("Valkey")
    return stopped


def _at(base: Path) -> Places:
    return Places(base=base, sockets=base / "run")


def _owner_lives(base: Path) -> bool:
    try:
        owner = int((base / "owner").read_text("utf-8"))
    except (OSError, ValueError):
        # The folder is being created or removed at this moment.
        return True
    return bool(command_line(owner))


def _short_temporary_folder(user: ServerUser) -> Path:
    """Return a temporary folder with a short path that the server's user can traverse."""
    ours = Path(tempfile.gettempdir())
    passable = all(folder.stat().st_mode & 0o001 for folder in (ours, *ours.parents))
    short = len(os.fsencode(ours)) <= 60
    return ours if short and (passable or not user.changes) else Path("/tmp")  # noqa: S108 - mkdtemp
