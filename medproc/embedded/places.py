"""The folders, sockets and users of the embedded servers.

Everything is a pure function of the data folder, its `instance` file and the user. So the settings
find the sockets without starting a server.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from medproc import private, unprivileged
from medproc.embedded.errors import EmbeddedError
from medproc.unprivileged import ServerUser

SYSTEM_FOLDERS = (Path("/var/lib"), Path("/var/db"))
"""Data folders for servers that root starts; every user can traverse them."""
SUPERUSER = "medproc"
"""The role that initdb creates; it creates the database and the two roles of `roles.sql`."""
OWNER, APPLICATION = "medproc_owner", "medproc_app"
"""The roles of `roles.sql`: the owner of the tables, and the role of all processes."""
MAX_SOCKET_PATH = 103
"""The longest socket path in bytes that every supported kernel accepts (macOS: 104 with the
NUL)."""
LONGEST_SOCKET_NAME = ".s.PGSQL.5432.lock"


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
    def locks(self) -> Path:
        """The private folder of the locks, owned by the present user."""
        return self.base / "locks"

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def database_url(self) -> str:
        """The URL of the application role."""
        return self.url_of(APPLICATION, "medproc")

    @property
    def owner_url(self) -> str:
        """The URL of the role that owns the tables."""
        return self.url_of(OWNER, "medproc")

    def url_of(self, role: str, database: str) -> str:
        """Return the URL of a database for a role."""
        return f"postgresql://{role}@/{database}?host={quote(str(self.sockets))}"

    @property
    def redis_url(self) -> str:
        return f"unix://{quote(str(self.valkey_socket))}?db=0"


def server_user() -> ServerUser:
    """Return the user that runs the servers. Raises EmbeddedError if there is none."""
    try:
        return unprivileged.server_user()
    except unprivileged.NoUserError as error:
        raise EmbeddedError(str(error)) from None


def places_of(data_dir: Path) -> Places:
    """Return the folders of the servers of `data_dir`; creates only the files of its names.

    Raises OSError if the folder cannot be created, written or kept private.
    """
    uid, gid = unprivileged.owner_of_data()
    private.handed_over(data_dir, uid=uid, gid=gid)
    instance = _instance_id(data_dir)
    system = [folder / f"medproc-{instance}" for folder in SYSTEM_FOLDERS if folder.is_dir()]
    system = system or [Path("/var") / f"medproc-{instance}"]
    # A process that has left root finds the servers that root has started.
    of_root = next((base for base in system if _belongs_to_root(base)), None)
    if os.geteuid() == 0 or of_root is not None:
        base = of_root or system[0]
        return Places(base=base, sockets=base / "run")
    base = data_dir.resolve() / "servers"
    return Places(base=base, sockets=_short_sockets(data_dir, base / "run"))


def absent_places(data_dir: Path) -> Places:
    """Return places in a data folder that cannot be used; creates nothing."""
    base = data_dir / "servers"
    return Places(base=base, sockets=base / "run")


def unusable_path(places: Places) -> str | None:
    """Return why a server cannot work in these folders; None if it can."""
    text = str(places.base)
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        return "its path contains a line break or another control character"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "its path is not UTF-8"
    return None


def _short_sockets(data_dir: Path, sockets: Path) -> Path:
    """Return `sockets`, or a folder in /tmp if that path is too long or holds a comma.

    libpq takes a comma for the end of a host's name. The name in /tmp is random. If another user
    has taken the name, a new name is drawn.
    """
    short = len(os.fsencode(sockets / LONGEST_SOCKET_NAME)) <= MAX_SOCKET_PATH
    if short and "," not in str(sockets):
        return sockets
    kept = data_dir / "sockets-name"
    for _ in range(3):
        name = private.kept_text(kept, lambda: f"medproc-{os.geteuid()}-{secrets.token_hex(6)}")
        found = Path("/tmp") / name  # noqa: S108 - the folder is made private, and its owner checked
        if not os.path.lexists(found) or _is_ours(found):
            break
        kept.unlink(missing_ok=True)
    return found


def _belongs_to_root(base: Path) -> bool:
    try:
        status = base.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == 0


def _is_ours(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _instance_id(data_dir: Path) -> str:
    """Return the random name of this installation; draw it if there is none.

    The name is drawn and not derived from the path. So a new clone in the place of an old clone
    never finds the records of the old clone.
    """
    name = private.kept_text(data_dir / private.OUR_MARK, lambda: secrets.token_hex(6))
    # The name becomes a part of a path, and the file belongs to a user with fewer rights than root.
    if not re.fullmatch("[0-9a-f]{12}", name):
        raise PermissionError(f"{data_dir / private.OUR_MARK} does not hold a name of medproc")
    return name
