"""`PASS_INPUT=pdf` end to end: what is sent of a record, and that it is read as its text would be.

Through the real client and the emulator, whose model sees the attached pages and not the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from pipeline.models import Batch, Chunk, Encounter, Entity, PageAssignment, ProviderCall, ShellFile
from pipeline.provider.emulator import LogLine
from tests import records
from tests.running import astray

TEXT_SAMPLES = (records.LAB, records.VISITS, records.TRAPS)


def entities(record: ShellFile) -> list[tuple[Any, ...]]:
    """Give what was found, without ids and times."""
    return sorted(
        Entity.objects.filter(shell_file=record).values_list(
            "category", "name", "value", "unit", "dose", "page_number", "char_start", "accepted"
        ),
        key=repr,
    )


def encounters(record: ShellFile) -> list[tuple[Any, ...]]:
    """Give each encounter with the runs of its text."""
    return [
        (
            e.encounter_type,
            e.encounter_date_start,
            sorted(
                PageAssignment.objects.filter(healthcare_encounter=e).values_list(
                    "page_number", "start_offset", "end_offset"
                )
            ),
        )
        for e in Encounter.objects.filter(shell_file=record).order_by("encounter_index")
    ]


@pytest.fixture
def as_pages() -> Iterator[None]:
    with override_settings(PASS_INPUT="pdf"):
        yield


def by_page(path: Path, **options: Any) -> tuple[ShellFile, list[LogLine]]:
    """Run a record whose pages are sent; give it and what was asked."""
    received = records.submit(path)
    with override_settings(PASS_INPUT="pdf"), records.through_emulator(**options) as emulator:
        return records.run_record(received), emulator.log()


def by_text(path: Path) -> ShellFile:
    received = records.submit(path)
    with records.through_emulator():
        return records.run_record(received)


@pytest.mark.parametrize("path", TEXT_SAMPLES, ids=lambda path: path.stem)
@pytest.mark.django_db
def test_the_same_is_found_in_pages_as_in_their_text(path: Path) -> None:
    told = by_text(path)

    shown, log = by_page(path)

    assert shown.status == "pass1_complete"
    assert encounters(shown) == encounters(told)
    assert entities(shown) == entities(told)
    assert not astray(shown)
    assert any(line.attached_pages for line in log if line.kind == "entities") or path == records.LAB
