"""What the pipeline would publish for page texts: the engine's reply after the checks of Pass 1.

Everything happens in this process, without a database, a provider or a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pipeline.core.states import Step
from pipeline.core.types import PageSlice, PageText
from pipeline.documents.reader import PageRead, with_addresses
from pipeline.models import Batch, EncounterResult
from pipeline.providers.local.discovery.encounters import discover
from pipeline.providers.local.engine import detect
from pipeline.providers.local.local_reading import SecondReading
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import EntityReply
from pipeline.stages.pass1.entity_rows import EncounterText, entity_rows
from pipeline.transitions import Lease

ANY = UUID(int=1)
BATCH_PAGES = 10
"""Pages per request, like the planner's largest batch."""
_LEASE = Lease(
    job_id=ANY, shell_file_id=ANY, session_id=ANY, step=Step.PASS1, gen=1, worker_id="evaluation"
)
Row = Mapping[str, Any]
OcrWord = tuple[int, int, float]
Answer = Callable[[Sequence[PageText]], EntityReply]


@dataclass(frozen=True, kw_only=True)
class Published:
    """The entities of a record, and its statement about allergies."""

    rows: Sequence[Row] = field(default=(), repr=False)
    no_known_allergies: tuple[bool | None, ...] = ()
    """One statement per batch."""


@dataclass(frozen=True, kw_only=True)
class ReadText:
    """The text of a page, with start, end and confidence (0–100) of the words that OCR read."""

    text: str = field(repr=False)
    ocr_words: Sequence[OcrWord] = ()

    @classmethod
    def of(cls, page: PageRead) -> ReadText:
        """Take over what the reader returned."""
        words = [(w.start, w.end, w.confidence) for w in page.words if w.confidence is not None]
        return cls(text=page.text, ocr_words=words)


def publish(texts: Mapping[int, str | ReadText], reply: Answer | None = None) -> Published:
    """Read page texts, by 1-based number, as one encounter.

    `reply` answers a batch of pages as a model; the local engine is then the second reader.
    """
    reads = {n: ReadText(text=t) if isinstance(t, str) else t for n, t in sorted(texts.items())}
    reads = {number: read for number, read in reads.items() if read.text.strip()}
    pages = {number: _page_text(number, read) for number, read in reads.items()}
    numbers = list(pages)
    parts = [numbers[at : at + BATCH_PAGES] for at in range(0, len(numbers), BATCH_PAGES)]
    batches = [
        Batch(
            batch_index=index,
            page_range_start=part[0],
            page_range_end=part[-1],
            spans=[[number, 0, len(pages[number].text)] for number in part],
        )
        for index, part in enumerate(parts)
    ]
    asked = [[pages[number] for number in part] for part in parts]
    replies = [reply(part) if reply else _entities(part) for part in asked]
    rows = entity_rows(
        _LEASE,
        EncounterResult(healthcare_encounter_id=ANY, patient_id=ANY),
        batches,
        replies,
        EncounterText.of(batches, pages),
        pages,
        second=lambda index: SecondReading(_slices(asked[index])) if reply else None,
        ocr_words=lambda _, wanted: {number: list(reads[number].ocr_words) for number in wanted},
    )
    return Published(
        rows=rows, no_known_allergies=tuple(reply.no_known_allergies for reply in replies)
    )


def _page_text(number: int, read: ReadText) -> PageText:
    confidences = [confidence for *_, confidence in read.ocr_words]
    mean = sum(confidences) / len(confidences) if confidences else None
    page = PageRead(number=number, text=read.text, source="text_layer", width=0, height=0)
    return PageText(
        number=number,
        text=read.text,
        ocr_confidence=mean,
        suspects=tuple((s.flag, s.start, s.end) for s in with_addresses(page).suspects),
    )


def encounter_dates(texts: Mapping[int, str]) -> set[str]:
    """Return the dates, in ISO 8601, on which encounters begin."""
    slices = tuple(PageSlice(page=n, start=0, text=text) for n, text in sorted(texts.items()))
    found = discover(
        Question(kind="discovery", item_token=ANY.hex, include_zones=False, slices=slices)
    )
    return {encounter.date_start for encounter in found.encounters if encounter.date_start}


def _entities(pages: Sequence[PageText]) -> EntityReply:
    return detect(
        Question(kind="entities", item_token=ANY.hex, include_zones=False, slices=_slices(pages))
    )


def _slices(pages: Sequence[PageText]) -> tuple[PageSlice, ...]:
    return tuple(PageSlice(page=page.number, start=0, text=page.text) for page in pages)
