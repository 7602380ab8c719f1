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
from pipeline.models import Batch, EncounterResult
from pipeline.providers.local.discovery import discover
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import EntityReply
from pipeline.stages.pass1.entity_rows import EncounterText, entity_rows
from pipeline.transitions import Lease

ANY = UUID(int=1)
BATCH_PAGES = 10
"""Pages per request, like the planner's largest batch."""
Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Published:
    """The entities of a record, and its statement about allergies."""

    rows: Sequence[Row] = field(default=(), repr=False)
    no_known_allergies: tuple[bool | None, ...] = ()
    """One statement per batch."""


def publish(
    texts: Mapping[int, str], reply: Callable[[Sequence[PageText]], EntityReply] | None = None
) -> Published:
    """Read page texts, by 1-based number, as one encounter.

    `reply` answers a batch of pages; the default is the local engine.
    """
    ask = reply or _entities
    numbers = [number for number in sorted(texts) if texts[number].strip()]
    pages = {number: PageText(number=number, text=texts[number]) for number in numbers}
    batches, replies = [], []
    for index, first in enumerate(range(0, len(numbers), BATCH_PAGES)):
        part = numbers[first : first + BATCH_PAGES]
        batches.append(
            Batch(
                batch_index=index,
                page_range_start=part[0],
                page_range_end=part[-1],
                spans=[[number, 0, len(texts[number])] for number in part],
            )
        )
        replies.append(ask([pages[number] for number in part]))
    return Published(
        rows=_rows(batches, replies, pages),
        no_known_allergies=tuple(reply.no_known_allergies for reply in replies),
    )


def encounter_dates(texts: Mapping[int, str]) -> set[str]:
    """Return the dates, in ISO 8601, on which encounters begin."""
    slices = tuple(PageSlice(page=n, start=0, text=text) for n, text in sorted(texts.items()))
    found = discover(
        Question(kind="discovery", item_token=ANY.hex, include_zones=False, slices=slices)
    )
    return {encounter.date_start for encounter in found.encounters if encounter.date_start}


def _entities(pages: Sequence[PageText]) -> EntityReply:
    slices = tuple(PageSlice(page=page.number, start=0, text=page.text) for page in pages)
    return detect(Question(kind="entities", item_token=ANY.hex, include_zones=False, slices=slices))


def _rows(
    batches: Sequence[Batch], replies: Sequence[EntityReply], pages: Mapping[int, PageText]
) -> Sequence[Row]:
    lease = Lease(
        job_id=ANY, shell_file_id=ANY, session_id=ANY, step=Step.PASS1, gen=1, worker_id="judge"
    )
    result = EncounterResult(healthcare_encounter_id=ANY, patient_id=ANY)
    return entity_rows(lease, result, batches, replies, EncounterText.of(batches, pages), pages)
