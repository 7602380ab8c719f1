"""An export as one temporary file without a name, for a download.

The file is whole before its first byte is sent: a reader of half a table could not tell that the
rest is missing. A killed process leaves nothing, because the file has no name.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from dataclasses import dataclass
from typing import BinaryIO, cast
from uuid import UUID, uuid4

from django.conf import settings

from pipeline.exports.export import Exported
from pipeline.exports.files.publish import named_refusals, write_text
from pipeline.exports.formats import TEXT_FORMATS, Format
from pipeline.exports.pair import JSON, PARQUET, json_file, pair_name, write_parquet_file
from pipeline.exports.snapshot import snapshot
from pipeline.exports.source import RecordSource


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file at its beginning, with its name and type; the caller closes the file."""

    exported: Exported
    file: BinaryIO
    name: str
    media_type: str


def download(record_id: UUID, form: Format, *, allow_incomplete: bool = False) -> Download:
    """Write the export of a record to a temporary file. A pair is a zip archive of both files.

    Raises UserError NOT_FOUND or RECORD_INCOMPLETE, and PipelineError STORAGE_FULL.
    """
    text, generation = TEXT_FORMATS.get(form), uuid4()
    with named_refusals():
        # The response closes the file after its last byte.
        made = tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 - the response closes the file
        file = cast(BinaryIO, made)
        try:
            with snapshot(record_id, generation, allow_incomplete=allow_incomplete) as source:
                if text is None:
                    _write_archive(file, source)
                else:
                    write_text(file, text.pieces(source))
                record = source.record
            file.flush()
        except BaseException:
            file.close()
            raise
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    return Download(
        exported=Exported.of(form, record, size),
        file=file,
        name=f"{record.id}{text.suffix if text else '.zip'}",
        media_type=text.media_type if text else "application/zip",
    )


def _write_archive(file: BinaryIO, source: RecordSource) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(pair_name(source.record, PARQUET), "w", force_zip64=True) as parquet:
            write_parquet_file(source, cast(BinaryIO, parquet))
        with archive.open(pair_name(source.record, JSON), "w", force_zip64=True) as text:
            write_text(cast(BinaryIO, text), json_file(source))
