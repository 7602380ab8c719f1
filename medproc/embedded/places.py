"""Where the embedded servers keep their data and sockets, and as whom they run.

Imports only the standard library. Everything here is a pure function of the data folder, its
`instance` file and the user, so that settings find the sockets without starting anything.
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
"""Where the data goes when root starts the servers: folders that any user can pass through."""
SERVER_USERS = ("medproc", "postgres", "nobody")
"""Whom root starts the servers as: the first of these that exists."""
MAX_SOCKET_PATH = 103
"""Bytes of a socket's path that every supported kernel takes (macOS: 104 with the final NUL)."""
LONGEST_SOCKET_NAME = ".s.PGSQL.5432.lock"


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """Whom a server runs as; `changes` tells that it is not the present user."""

    name: str
    uid: int
    gid: int
    changes: bool


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders of one pair of servers."""

    base: Path
    """Holds the others; ours."""
    sockets: Path
    """0700, short."""

    @property
    def postgres_data(self) -> Path:
        return self.base / "postgres"

    @property
    def valkey_data(self) -> Path:
        return self.base / "valkey"

    @property
    def binaries(self) -> Path:
        """Copies of binaries that the server's user cannot reach where they are installed."""
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
    """Give the user whom the servers run as: oneself, or for root an unprivileged one."""
    if os.geteuid() != 0:
        me = os.geteuid()
        try:
            name = pwd.getpwuid(me).pw_name
        except KeyError:
            raise EmbeddedError(
                f"PostgreSQL needs a user with a name, and user id {me} has none"
            ) from None
        return ServerUser(name=name, uid=me, gid=os.getegid(), changes=False)
    for name in SERVER_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid, changes=True)
    raise EmbeddedError(
        "PostgreSQL refuses to run as root, and there is no user " + " or ".join(SERVER_USERS)
    )


def places_of(data_dir: Path) -> Places:
    """Name the folders of the servers that belong to `data_dir`; makes only its instance file."""
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
    """Read or draw the random name of this installation.

    It is drawn and not derived from the path, so that a new clone in the place of an old one
    never finds the old one's records.
    """
    private.folder(data_dir)
    return private.kept_text(data_dir / "instance", lambda: secrets.token_hex(6))
