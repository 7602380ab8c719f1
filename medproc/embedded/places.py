"""The folders, sockets and users of the embedded servers.

Everything is a pure function of the data folder, its `instance` file and the user. So the settings
find the sockets without starting a server.
"""

from __future__ import annotations

import os
import pwd
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from medproc import private
from medproc.embedded.errors import EmbeddedError

SYSTEM_FOLDERS = (Path("/var/lib"), Path("/var/db"))
"""Data folders for servers that root starts; every user can traverse them."""
SERVER_USERS = ("medproc", "postgres", "nobody")
"""Users for servers that root starts; the first existing user is taken."""
MAX_SOCKET_PATH = 103
"""The longest socket path in bytes that every supported kernel accepts (macOS: 104 with the
NUL)."""
LONGEST_SOCKET_NAME = ".s.PGSQL.5432.lock"


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """The user that runs a server; `changes` is True if it is not the present user."""

    name: str
    uid: int
    gid: int
    changes: bool


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders of one pair of servers."""

    base: Path
    """The parent of the other folders, owned by the present user."""
    sockets: Path
    """Mode 0700; a short path."""

    @property
    def postgres_data(self) -> Path:
        return self.base / "postgres"

    @property
    def valkey_data(self) -> Path:
        return self.base / "valkey"

    @property
    def binaries(self) -> Path:
        """Copies of binaries that the server's user cannot reach at their installed place."""
        return self.base / "binaries"

    @property
    def lock(self) -> Path:
        return self.base / "lock"

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def database_url(self) -> str:
        return f"postgresql://medproc@/medproc?host={quote(str(self.sockets))}"

    @property
    def redis_url(self) -> str:
        return f"unix://{quote(str(self.valkey_socket))}?db=0"


def server_user() -> ServerUser:
    """Return the user that runs the servers: the present user, or an unprivileged user for root."""
    if os.geteuid() != 0:
        me = os.geteuid()
        try:
            name = pwd.getpwuid(me).pw_name
        except KeyError:
            raise EmbeddedError(
                f"PostgreSQL needs a user with a name, but the user id {me} has no name"
            ) from None
        return ServerUser(name=name, uid=me, gid=os.getegid(), changes=False)
    for name in SERVER_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid, changes=True)
    raise EmbeddedError(
        "PostgreSQL refuses to run as root, and none of these users exists: "
        + " or ".join(SERVER_USERS)
    )


def places_of(data_dir: Path) -> Places:
    """Return the folders of the servers of `data_dir`; creates only the instance file."""
    instance = _instance_id(data_dir)
    if os.geteuid() == 0:
        system = next((folder for folder in SYSTEM_FOLDERS if folder.is_dir()), Path("/var"))
        base = system / f"medproc-{instance}"
        return Places(base=base, sockets=base / "run")
    base = data_dir.resolve() / "servers"
    sockets = base / "run"
    if len(os.fsencode(sockets / LONGEST_SOCKET_NAME)) > MAX_SOCKET_PATH:
        sockets = Path("/tmp") / f"medproc-{os.geteuid()}-{instance}"  # noqa: S108 - 0700, checked
    return Places(base=base, sockets=sockets)


def _instance_id(data_dir: Path) -> str:
    """Return the random name of this installation; draw it if there is none.

    The name is drawn and not derived from the path. So a new clone in the place of an old clone
    never finds the records of the old clone.
    """
    private.folder(data_dir)
    return private.kept_text(data_dir / "instance", lambda: secrets.token_hex(6))
