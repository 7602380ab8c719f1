"""The pair of embedded servers: up, down, status, and a throw-away pair for tests.

`up` may be called twice, or by two processes at once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from medproc import private
from medproc.embedded import postgres, valkey
from medproc.embedded.places import Places, ServerUser, server_user
from medproc.embedded.processes import command_line, exclusive

_PREFIX = "medproc-throw-away-"


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
    """Start the servers that do not run yet; idempotent.

    Raises EmbeddedError with a one-line message.
    """
    user = server_user()
    _make_base(places, user)
    with exclusive(places.lock):
        if with_valkey:
            valkey.start(places, user, throw_away=throw_away)
        if with_postgres:
            postgres.start(places, user, throw_away=throw_away)


def down(places: Places) -> list[str]:
    """Stop the running servers and return their names."""
    if not places.base.is_dir():
        return []
    with exclusive(places.lock):
        stopped = []
        if postgres.shut_down(places):
            stopped.append("PostgreSQL")
        if valkey.shut_down(places):
            stopped.append("Valkey")
    return stopped


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


def _make_base(places: Places, user: ServerUser) -> None:
    """Create the parent folder: 0700, or only traversable for another user."""
    private.folder(places.base, mode=0o711 if user.changes else 0o700)


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
