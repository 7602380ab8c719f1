"""Make one export: the rows of one snapshot, in one format, at one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from pipeline.exports.files.publish import MANIFEST, Pair, Publication, SingleFile, publish
from pipeline.exports.files.targets import target_of
from pipeline.exports.formats import TEXT_FORMATS, Format
from pipeline.exports.rows import RecordRow
from pipeline.exports.snapshot import snapshot


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was exported; free of PHI."""

    record_id: str
    format: str
    generation: str
    record_incomplete: bool
    reviewed: bool
    notices: tuple[str, ...]
    size_bytes: int

    @classmethod
    def of(cls, form: Format, record: RecordRow, size: int) -> Exported:
        """Describe the export of a record."""
        return cls(
            record_id=str(record.id),
            format=form.value,
            generation=str(record.generation),
            record_incomplete=record.is_incomplete,
            reviewed=record.is_review_closed,
            notices=record.notices,
            size_bytes=size,
        )

    def facts(self) -> dict[str, Any]:
        """Return the facts that the audit keeps."""
        left_out = ("record_id", "notices")
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def export_record(
    record_id: UUID,
    form: Format,
    *,
    output: Path | None = None,
    allow_incomplete: bool = False,
    audit: Callable[[Exported], None],
) -> tuple[Exported, Path]:
    """Export a record to a folder or file; return what was exported and the path of the file.

    `audit` is called before the file becomes visible; if it raises, nothing becomes visible. Raises
    UserError NOT_FOUND, RECORD_INCOMPLETE or OUTPUT_INVALID, and PipelineError STORAGE_FULL.
    """
    publication = _publication(form, output, record_id)
    generation = uuid4()
    made: list[Exported] = []

    def before_visible(record: RecordRow, size: int) -> None:
        made.append(Exported.of(form, record, size))
        audit(made[0])

    publish(
        publication,
        record_id,
        generation,
        snapshot(record_id, generation, allow_incomplete=allow_incomplete),
        before_visible,
    )
    return made[0], publication.target.path


def _publication(form: Format, output: Path | None, record_id: UUID) -> Publication:
    if form is Format.PAIR:
        return Pair(target_of(output, record_id, MANIFEST, is_pair=True))
    text = TEXT_FORMATS[form]
    return SingleFile(target_of(output, record_id, text.suffix, is_pair=False), text)
