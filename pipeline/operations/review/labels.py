"""Closed reviews as labelled data: one `<record>.truth.json` for each record, as `evaluate` reads.

A file holds the page texts and the entities that people accepted, corrected or added. Only records
whose review is closed are exported, because an undecided entity is no truth. Text that names, or
may belong to, another patient is left out. The files are PHI.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from pipeline.clinical.page_text.marks import blanked
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import RESULTS, Entity, Page, ReviewItem, ReviewStatus
from pipeline.models.selectors import held_spans

_FIELDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "medication": (
        ("dose", "dose"), ("strength", "strength"), ("route", "route"),
        ("frequency", "frequency"), ("step", "step"), ("status", "status"),
    ),
    "vital": (("value", "value"), ("unit", "unit")),
    "lab": (
        ("value", "value"), ("unit", "unit"), ("range", "reference_range"),
        ("flag", "abnormal_flag"),
    ),
    "allergy": (("reaction", "reaction"),),
}  # fmt: skip
"""Category → (field of the truth, column of the entity), as `evaluation.truths` compares."""


@dataclass(frozen=True, kw_only=True)
class ExportedLabels:
    """What an export has written."""

    records: int
    entities: int
    left_out: int
    """Entities whose quote runs over two pages; the format has no place for them."""


def export_labels(folder: Path) -> ExportedLabels:
    """Write the truth of every closed review into an empty or new folder of this user alone.

    Raises UserError (VALUE_INVALID) if the folder is not empty or cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(
                "the folder is not empty; name a new folder", code=UserErrorCode.VALUE_INVALID
            )
        folder.chmod(0o700)
        return _written(folder)
    except OSError as error:
        raise UserError(
            f"the folder cannot be written: {error.strerror}", code=UserErrorCode.VALUE_INVALID
        ) from None


def truth_of(shell_file_id: UUID) -> tuple[dict[str, Any], int]:
    """Return the truth of a reviewed record, and the number of entities that are left out. PHI."""
    held = held_spans(shell_file_id)
    pages = Page.objects.filter(shell_file_id=shell_file_id).values_list("page_number", "text")
    texts = {number: blanked(text, held.get(number, ())) for number, text in pages}
    encounters: dict[UUID, list[dict[str, Any]]] = {}
    left_out = 0
    rows = Entity.objects.filter(shell_file_id=shell_file_id, verdict__in=RESULTS)
    for entity in rows.order_by(
        "healthcare_encounter__encounter_index", "page_number", "char_start", "id"
    ):
        if entity.page_end is not None or entity.char_start is None or entity.char_end is None:
            left_out += 1
            continue
        stated = encounters.setdefault(entity.healthcare_encounter_id, [])
        stated.append(_stated(entity, texts.get(entity.page_number, "")))
    last = max(texts, default=0)
    truth = {
        "file": "",
        "text_layer": True,
        "pages": last,
        "page_texts": [texts.get(number, "") for number in range(1, last + 1)],
        "encounters": [{"entities": entities} for entities in encounters.values()],
    }
    return truth, left_out


def _written(folder: Path) -> ExportedLabels:
    records = entities = left_out = 0
    for shell_file_id in _closed():
        truth, without_place = truth_of(shell_file_id)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        path = folder / f"{shell_file_id}.truth.json"
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(truth, file, ensure_ascii=False)
        records += 1
        entities += sum(len(each["entities"]) for each in truth["encounters"])
        left_out += without_place
    return ExportedLabels(records=records, entities=entities, left_out=left_out)


def _closed() -> Iterator[UUID]:
    rows = ReviewItem.objects.filter(status=ReviewStatus.CLOSED).order_by("created_at", "id")
    return rows.values_list("shell_file_id", flat=True).iterator(500)


def _stated(entity: Entity, text: str) -> dict[str, Any]:
    start, end = entity.char_start or 0, entity.char_end or 0
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    stated: dict[str, Any] = {
        "category": entity.category,
        "page": entity.page_number,
        "quote": text[start:end],
        "line": text[first : last if last >= 0 else len(text)],
        "assertion": _assertion(entity),
    }
    for name, column in _FIELDS.get(entity.category, ()):
        value = getattr(entity, column)
        if value is not None:
            stated[name] = value
    return stated


def _assertion(entity: Entity) -> str:
    if entity.experiencer in ("family", "other"):
        return "family"
    if entity.negated:
        return "negated"
    if entity.certainty in ("possible", "hypothetical"):
        return "hypothetical"
    return "historical" if entity.temporality == "historical" else "present"
