"""Rehearse a restore: run the real commands in a throw-away installation, and remove it again.

The rehearsal needs no rights on the servers of the service, because it starts servers of its own.
The data goes to TMPDIR, which needs room for the whole database and for all stored files. After a
kill, the next rehearsal removes what the killed rehearsal left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from medproc import embedded
from medproc.env import PROJECT_ROOT
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.operations.backup.manifest import Manifest, read_manifest


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """The result of a rehearsal."""

    manifest: Manifest
    seconds: float
    """Time of the restore alone, without the start of the servers."""
    audit_events: int


def rehearse_restore(backup: Path) -> Rehearsed:
    """Restore a backup into a throw-away installation, and check the restored installation.

    Raises UserError with the line of the command that failed.
    """
    manifest = read_manifest(backup)
    try:
        with embedded.throw_away_servers() as places:
            # The files go with the folder of the servers, also after a kill.
            environment = _environment(places, places.base / "data")
            started = time.monotonic()
            _run(environment, "restore", str(backup.resolve()))
            seconds = time.monotonic() - started
            _run(environment, "migrate", "--check")
            # Exits 1 if the file of a record is missing.
            _run(environment, "sweep_files", "--dry-run", "--json")
            known = ("--head", manifest.audit_head) if manifest.audit_head else ()
            audit = json.loads(_run(environment, "verify_audit", "--json", *known))
    except embedded.EmbeddedError as error:
        raise UserError(str(error), code=UserErrorCode.BACKUP_FAILED) from None
    return Rehearsed(manifest=manifest, seconds=seconds, audit_events=audit["events"])


def _environment(places: embedded.Places, data: Path) -> dict[str, str]:
    """Return the environment of the commands; no variable leads to the servers of the service."""
    own = {
        "DATABASE_URL": places.database_url,
        "DATABASE_OWNER_URL": places.owner_url,
        "REDIS_URL": places.redis_url,
        "MEDPROC_DATA_DIR": str(data),
        "SECRET_KEY": str(settings.SECRET_KEY),
    }
    # The second place for the heads of the audit belongs to the service, and a variable must not
    # be set twice, by itself and by a file.
    left_out = {"AUDIT_HEADS_DIR", *(f"{name}_FILE" for name in own)}
    # So do the bucket and its key: the stored files of the rehearsal are in a folder.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in left_out and not name.startswith("STORAGE_")
    }
    return {**kept, **own}


def _run(environment: dict[str, str], *arguments: str) -> str:
    """Run a command of medproc; return what the command says. Raises UserError if it fails."""
    done = subprocess.run(
        [sys.executable, str(PROJECT_ROOT / "manage.py"), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise UserError(
            f"manage.py {arguments[0]} failed in the restored installation: {''.join(said)}",
            code=UserErrorCode.BACKUP_INVALID,
        )
    return done.stdout
