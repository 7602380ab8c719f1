"""The manifest of a backup, and the list of its files; both hold names, sizes and digests only."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import UUID

from django.conf import settings
from django.core.files import File
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.core.errors import UserError, UserErrorCode
from pipeline.documents.storage import FOLDER

FORMAT = 1
"""The version of the layout of a backup."""
MANIFEST, DUMP, FILE_LIST, FILES = "manifest.json", "database.dump", "files.jsonl", "files"
"""The names inside the folder of a backup."""
_BLOCK = 1 << 20


class StoredBytes(NamedTuple):
    """A stored file of a backup."""

    key: str
    """Its name in the file store."""
    sha256: str
    size_bytes: int


class Manifest(BaseModel):
    """What a backup contains."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    made_at: str
    """UTC, ISO 8601."""
    secret_key: str
    """A digest under SECRET_KEY: it tells another key, and nothing about the key."""
    migrations: dict[str, list[str]]
    """The applied migrations by application."""
    tables: dict[str, int]
    """Rows by table, in the snapshot of the dump."""
    records: int
    files: int
    files_bytes: int
    dump_sha256: str
    file_list_sha256: str
    audit_head: str | None
    """The last event of the audit as SEQ:HASH; None for an empty audit."""


def secret_key_digest() -> str:
    """Return the digest that recognises SECRET_KEY."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, b"medproc.backup", hashlib.sha256).hexdigest()[:16]


def read_manifest(backup: Path) -> Manifest:
    """Return the manifest of a backup. Raises UserError if the folder holds no usable backup."""
    try:
        found = Manifest.model_validate_json((backup / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise _invalid(
            f"the folder has no {MANIFEST}: it is no backup, or not a complete one"
        ) from None
    except (OSError, ValidationError) as error:
        raise _invalid(f"{MANIFEST} cannot be read: {type(error).__name__}") from None
    if found.format != FORMAT:
        raise _invalid(f"the backup has format {found.format}; this version reads {FORMAT}")
    return found


def check_contents(backup: Path, manifest: Manifest) -> None:
    """Read the dump and every file, and compare them with the manifest and with the list.

    Raises UserError for the first difference.
    """
    for name, expected in (
        (DUMP, manifest.dump_sha256),
        (FILE_LIST, manifest.file_list_sha256),
    ):
        if digest_of(backup / name) != expected:
            raise _invalid(f"{name} is damaged: its SHA-256 is not that of the manifest")
    for file in listed_files(backup):
        source = file_in(backup, file)
        if digest_of(source) != file.sha256:
            raise _invalid(f"{FILES}/{source.name} is damaged: its SHA-256 is not that of the list")


def listed_files(backup: Path) -> Iterator[StoredBytes]:
    """Yield the files of a backup, one line of the list after the other.

    Raises UserError for a line that names no stored file of medproc.
    """
    with (backup / FILE_LIST).open(encoding="utf-8") as lines:
        for line in lines:
            try:
                file = StoredBytes(**json.loads(line))
                folder, name = file.key.split("/")
                is_ours = folder == FOLDER and str(UUID(name)) == name
            except (AttributeError, TypeError, ValueError):
                is_ours = False
            if not is_ours:
                raise _invalid(f"{FILE_LIST} holds a line that names no stored file of medproc")
            yield file


def file_in(backup: Path, file: StoredBytes) -> Path:
    """Return the place of a stored file in the folder of a backup."""
    return backup / FILES / Path(file.key).name


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file. Raises UserError if the file does not exist."""
    try:
        with path.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except FileNotFoundError:
        raise _invalid(f"{path.name} is missing") from None


def copied(source: File[bytes], target: BinaryIO) -> tuple[str, int]:
    """Copy a stored file block by block; return its SHA-256 and its size in bytes."""
    digest, size = hashlib.sha256(), 0
    for block in source.chunks(_BLOCK):
        digest.update(block)
        size += target.write(block)
    return digest.hexdigest(), size


def _invalid(message: str) -> UserError:
    return UserError(message, code=UserErrorCode.BACKUP_INVALID)
