"""The user of the commands that serve: what they read and write, and their way out of root."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from medproc import env, private, secret_files, unprivileged

SERVING = frozenset({"rqworker", "rqworker-pool", "rqcron", "serve"})
"""Commands that serve until they are stopped; root leaves its rights before they begin."""
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


def leave_root_to_serve(arguments: Sequence[str]) -> None:
    """Leave root if the command in `arguments` serves; else say in one line why it stays root.

    A wrong environment changes nothing here, because the start is refused afterwards: a wrong
    folder, such as /tmp, must not be handed over to the service's user.
    """
    if os.geteuid() != 0 or not SERVING.intersection(arguments[1:2]):
        return
    _, problems = env.load()
    if problems:
        return
    reason = unprivileged.leave_root(needed_to_serve())
    if reason is not None:
        sys.stderr.write(f"{stays_root(reason)}\n")


def needed_to_serve() -> list[Path]:
    """Return the files and folders that a serving process reads or writes; makes the data folder.

    The settings report a data folder that cannot be made.
    """
    project = unprivileged.code_folders()[0]
    data = Path(os.environ.get("MEDPROC_DATA_DIR") or project / "var").absolute()
    uid, gid = unprivileged.owner_of_data()
    with suppress(OSError):
        private.handed_over(data, uid=uid, gid=gid)
    certificates = [Path(os.environ[name]) for name in _CERTIFICATES if os.environ.get(name)]
    secrets = secret_files.paths(env.SECRETS, os.environ)
    return [*unprivileged.code_folders(), data, *certificates, *secrets, *_heads(uid, gid)]


def _heads(uid: int, gid: int) -> list[Path]:
    """Return the second folder of the audit's heads if the service's user can write to it."""
    named = os.environ.get("AUDIT_HEADS_DIR")
    if not named or uid == 0:
        return []
    folder = Path(named).absolute()
    if not folder.exists():
        with suppress(OSError):
            private.folder(folder, uid=uid, gid=gid)
    writable = (
        folder.is_dir()
        and os.geteuid() == 0
        and unprivileged.lets_in(folder, unprivileged.server_user(), 0o7)
    )
    return [folder] if writable else []


def stays_root(reason: str) -> str:
    """Return the line that an operator reads if workers, scheduler or console stay root."""
    return f"medproc runs as root: {reason}. Move medproc and its data, or start medproc as a user."
