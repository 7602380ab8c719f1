"""The rows that Pass 1 would write for a text, in this process and without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from pipeline.core.states import Step
from pipeline.core.types import PageSlice, PageText
from pipeline.models import Batch, EncounterResult
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.stages.pass1.entity_rows import EncounterText, entity_rows
from pipeline.transitions import Lease

HEAD = "OFFICE VISIT\nPatient: Wrenfield, Odalys M.\nDate of Service: 01/05/2025\n\n"
ANY = UUID(int=1)
Row = Mapping[str, Any]


def published(text: str) -> Sequence[Row]:
    """Return the rows for a record of one page: an office visit with this text."""
    return read(text)[0]


def read(text: str) -> tuple[Sequence[Row], bool | None]:
    """Return the rows for a record of one page, and its statement about known allergies."""
    return read_page(HEAD + text)


def read_page(text: str) -> tuple[Sequence[Row], bool | None]:
    """Return the rows for a whole page text, and its statement about known allergies."""
    pages = {1: PageText(number=1, text=text)}
    slices = (PageSlice(page=1, start=0, text=text),)
    reply = detect(
        Question(kind="entities", item_token=ANY.hex, include_zones=False, slices=slices)
    )
    batch = Batch(batch_index=0, page_range_start=1, page_range_end=1, spans=[[1, 0, len(text)]])
    result = EncounterResult(healthcare_encounter_id=ANY, patient_id=ANY)
    lease = Lease(
        job_id=ANY, shell_file_id=ANY, session_id=ANY, step=Step.PASS1, gen=1, worker_id="judge"
    )
    rows = entity_rows(lease, result, [batch], [reply], EncounterText.of([batch], pages), pages)
    return rows, reply.no_known_allergies
