"""The rows that Pass 1 would write for a reply, in this process and without a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pipeline.core.states import Step
from pipeline.core.types import PageSlice, PageText
from pipeline.models import Batch, EncounterResult
from pipeline.providers.local.local_reading import SecondReading
from pipeline.providers.schemas import EntityReply, FoundEntity
from pipeline.stages.pass1.entity_rows import EncounterText, entity_rows
from pipeline.transitions import Lease

ANY = UUID(int=1)


def rows_of(
    entities: Sequence[FoundEntity], *texts: str, read_twice: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of one batch whose pages have these texts.

    With `read_twice`, the local engine is the second reader, as for a model's reply.
    """
    pages = {n: PageText(number=n, text=text) for n, text in enumerate(texts, start=1)}
    batch = Batch(
        batch_index=0,
        page_range_start=1,
        page_range_end=len(texts),
        spans=[[n, 0, len(page.text)] for n, page in pages.items()],
    )
    lease = Lease(
        job_id=ANY, shell_file_id=ANY, session_id=ANY, step=Step.PASS1, gen=1, worker_id="test"
    )
    slices = [PageSlice(page=n, start=0, text=page.text) for n, page in pages.items()]
    reading = SecondReading(slices) if read_twice else None
    return entity_rows(
        lease,
        EncounterResult(healthcare_encounter_id=ANY, patient_id=ANY),
        [batch],
        [EntityReply(item_token=ANY.hex, entities=list(entities))],
        EncounterText.of([batch], pages),
        pages,
        lambda index: reading,
    )
