"""Write an export, and make it visible by one rename.

A single file replaces the file of its name. A pair has two files with the generation in their
names and a manifest that names both; the rename of the manifest switches from the old pair to the
new. A kill or a full disk at any moment leaves the old manifest with its two files.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol
from uuid import UUID

from medproc.files import sync_folder
from pipeline.core.errors import ErrorCode, PipelineError, UserError, UserErrorCode
from pipeline.documents.storage import NO_ROOM
from pipeline.exports.files.drafts import (
    PART,
    DraftFile,
    delete_unused,
    draft_name,
    drafts,
    folder_lock,
    switch,
)
from pipeline.exports.files.targets import Target
from pipeline.exports.formats import TextFormat
from pipeline.exports.pair import JSON, PARQUET, json_file, pair_name, write_parquet_file
from pipeline.exports.rows import RecordRow
from pipeline.exports.source import RecordSource

MANIFEST = ".pair.json"
"""Ending of the manifest of a pair."""
_UNUSABLE = frozenset(
    {
        errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR,
        errno.ENAMETOOLONG, errno.ELOOP,
    }
)  # fmt: skip
"""Errors of a folder that refuses, or that is gone."""


class Publication(Protocol):
    """The files of one export."""

    @property
    def target(self) -> Target:
        """The folder, and the name that becomes visible last."""

    def names(self, record_id: UUID, generation: UUID) -> Sequence[str]:
        """Return the names of the drafts."""

    def write(self, opened: Sequence[DraftFile], source: RecordSource) -> int:
        """Write the content to the disk; return its size in bytes."""

    def publish(self, opened: Sequence[DraftFile], record: RecordRow) -> None:
        """Make the content visible."""


@dataclass(frozen=True)
class SingleFile:
    """One text file."""

    target: Target
    form: TextFormat

    def names(self, record_id: UUID, generation: UUID) -> Sequence[str]:
        """Return the name of the draft."""
        return (draft_name(record_id, generation, self.form.suffix),)

    def write(self, opened: Sequence[DraftFile], source: RecordSource) -> int:
        """Write the text to the disk; return its size in bytes."""
        (draft,) = opened
        write_text(draft.file, self.form.pieces(source))
        return draft.settle()

    def publish(self, opened: Sequence[DraftFile], record: RecordRow) -> None:
        """Rename the draft to the target."""
        del record
        (draft,) = opened
        switch(draft, self.target.path)
        sync_folder(self.target.folder)


@dataclass(frozen=True)
class Pair:
    """A Parquet file, a JSON file, and the manifest that names both; the target is the manifest."""

    target: Target

    def names(self, record_id: UUID, generation: UUID) -> Sequence[str]:
        """Return the names of the drafts."""
        return [draft_name(record_id, generation, each) for each in (PARQUET, JSON, MANIFEST)]

    def write(self, opened: Sequence[DraftFile], source: RecordSource) -> int:
        """Write pair and manifest to the disk; return the size of the pair in bytes."""
        parquet, text, manifest = opened
        write_parquet_file(source, parquet.file)
        write_text(text.file, json_file(source))
        sizes = {PARQUET: parquet.settle(), JSON: text.settle()}
        write_text(manifest.file, [_manifest(source.record, sizes)])
        manifest.settle()
        return sum(sizes.values())

    def publish(self, opened: Sequence[DraftFile], record: RecordRow) -> None:
        """Name both files, then switch the manifest, then delete the files of the old pair."""
        parquet, text, manifest = opened
        folder = self.target.folder
        parquet.rename(folder / pair_name(record, PARQUET))
        text.rename(folder / pair_name(record, JSON))
        sync_folder(folder)
        with folder_lock(folder):
            switch(manifest, self.target.path, parquet, text)
            sync_folder(folder)
            delete_unused(_other_generations(folder, record))


def publish(
    publication: Publication,
    record_id: UUID,
    generation: UUID,
    snapshot: AbstractContextManager[RecordSource],
    before_visible: Callable[[RecordRow, int], None],
) -> None:
    """Write the files of an export, and make them visible after `before_visible` has returned.

    `before_visible` gets the record and the size in bytes; the snapshot is closed by then. Raises
    PipelineError STORAGE_FULL or UserError OUTPUT_INVALID, without the path. After any error
    nothing new is visible, and no draft is left.
    """
    folder = publication.target.folder
    with named_refusals():
        # Killed exports of the record have left these.
        delete_unused(folder.glob(f".{record_id}.*{PART}"))
        with drafts(folder, *publication.names(record_id, generation)) as opened:
            with snapshot as source:
                size = publication.write(opened, source)
                record = source.record
            before_visible(record, size)
            publication.publish(opened, record)


def write_text(file: BinaryIO, pieces: Iterable[str]) -> None:
    """Write a text in UTF-8, piece by piece."""
    for piece in pieces:
        file.write(piece.encode())


@contextmanager
def named_refusals() -> Iterator[None]:
    """Name the reason if the disk is full or the folder refuses."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise PipelineError(
                "The disk of the output is full. An earlier export there is still whole; free some"
                " space, then export again.",
                code=ErrorCode.STORAGE_FULL,
            ) from None
        if error.errno not in _UNUSABLE:
            raise
        raise UserError(
            f"The output cannot be written: {error.strerror}. Name another folder.",
            code=UserErrorCode.OUTPUT_INVALID,
        ) from None


def _manifest(record: RecordRow, sizes: dict[str, int]) -> str:
    about = {
        "generation": str(record.generation),
        "record_id": str(record.id),
        "taken_at": record.taken_at.isoformat(),
        "record_incomplete": record.is_incomplete,
        "notice": " ".join(record.notices),
        "parquet": pair_name(record, PARQUET),
        "json": pair_name(record, JSON),
        "parquet_bytes": sizes[PARQUET],
        "json_bytes": sizes[JSON],
    }
    return f"{json.dumps(about, indent=2, ensure_ascii=False)}\n"


def _other_generations(folder: Path, record: RecordRow) -> Iterator[Path]:
    """Yield the files of other pairs of the record: their manifest is replaced."""
    own = {pair_name(record, suffix) for suffix in (PARQUET, JSON)}
    for suffix in (PARQUET, JSON):
        for path in folder.glob(f"{record.id}.????????-*{suffix}"):
            if path.name not in own:
                yield path
