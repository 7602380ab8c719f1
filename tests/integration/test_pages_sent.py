"""`PASS_INPUT=pdf` sends the right pages, and the results equal those from text.

The real client sends to the emulator, whose model reads the attached pages instead of the text.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db.models import Count
from django.test import override_settings

from gemini_emulator import LogLine
from gemini_emulator.recorded_rows import prove_log
from pipeline.models import Encounter, Entity, PageAssignment, ShellFile
from tests.support import hostile_files, records
from tests.support.record_runs import astray

TEXT_SAMPLES = (records.LAB, records.VISITS, records.TRAPS)


def entities(record: ShellFile) -> list[tuple[Any, ...]]:
    """Return the entities without ids and times."""
    return sorted(
        Entity.objects.filter(shell_file=record).values_list(
            "category", "name", "value", "unit", "dose", "page_number", "char_start", "accepted"
        ),
        key=repr,
    )


def encounters(record: ShellFile) -> list[tuple[Any, ...]]:
    """Return each encounter with its spans."""
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


def by_page(path: Path, **options: Any) -> tuple[ShellFile, list[LogLine]]:
    """Run a record with attached pages, and return the record and its requests."""
    received = records.submit(path)
    with override_settings(PASS_INPUT="pdf"), records.through_emulator(**options) as emulator:
        return records.run_record(received), emulator.log()


def by_text(path: Path) -> ShellFile:
    received = records.submit(path)
    with records.through_emulator():
        return records.run_record(received)


def alone(record: ShellFile, pages: list[int]) -> int:
    """Count the pages that belong to one encounter alone."""
    shared = set(
        PageAssignment.objects.filter(discovery_session__shell_file=record)
        .values("page_number")
        .annotate(runs=Count("id"))
        .filter(runs__gt=1)
        .values_list("page_number", flat=True)
    )
    return len(set(pages) - shared)


@pytest.mark.django_db
def test_the_limiter_reckons_with_attached_pages_and_learns_of_them_apart_from_text(
    redis_db: redis.Redis,
) -> None:
    by_text(records.VISITS)
    by_page(records.VISITS)

    key = f"medproc:gate:{{gemini:{settings.GEMINI_MODEL}}}:ratios"
    learned: dict[bytes, bytes] = redis_db.hgetall(key)  # type: ignore[assignment]
    ratios = {name.decode(): float(kept.split()[0]) for name, kept in learned.items()}
    modes = ("pass05-3-text", "pass05-3-pdf", "pass1-3-text", "pass1-3-pdf")
    assert sorted(ratios) == sorted(modes)
    assert all(0.8 < ratios[mode] < 1.25 for mode in modes), ratios


@pytest.mark.parametrize("path", TEXT_SAMPLES, ids=lambda path: path.stem)
@pytest.mark.django_db
def test_the_same_is_found_in_pages_as_in_their_text(path: Path) -> None:
    told = by_text(path)

    shown, log = by_page(path)

    assert shown.status == "pass1_complete"
    assert encounters(shown) == encounters(told)
    assert entities(shown) == entities(told)
    assert not astray(shown)
    batches = [line for line in log if line.kind == "entities"]
    assert {line.outcome for line in batches} == {"ok"}
    assert [line.attached_pages for line in batches] == [alone(shown, b.pages) for b in batches]
    assert sum(line.attached_pages for line in batches) > 0


@pytest.mark.django_db
def test_a_scan_in_a_tiff_is_sent_as_images(tmp_path: Path) -> None:
    path = tmp_path / "fax.tiff"
    note = (*hostile_files.NOTE, "Date of Service: 03/11/2024")
    frames = [
        hostile_files.scan(note),
        hostile_files.scan(["Plan", "Continue metformin 500 mg daily."]),
    ]
    frames[0].save(path, "TIFF", save_all=True, append_images=frames[1:], dpi=(200, 200))

    shown, log = by_page(path)

    assert shown.status == "pass1_complete"
    assert sum(line.attached_pages for line in log if line.kind == "entities") == 2
    assert Entity.objects.filter(shell_file=shown, name__iexact="metformin").count() == 2
    assert not astray(shown)


@pytest.mark.django_db
def test_the_request_log_of_a_record_proves_it_whole() -> None:
    faults = [
        {"fault": "wrong-token", "kind": "entities", "page": 2, "attempt": 1},
        {"fault": "503", "kind": "entities", "page": 3, "attempt": 1},
    ]

    record, log = by_page(records.LAB, faults=faults)
    proof = prove_log(log)

    assert record.status == "pass1_complete"
    assert proof.findings == []
    assert proof.counts["items"] == proof.counts["accepted calls"] == 9
    assert kinds_without_a_reply(log) == {"swapped", "lost"}


def kinds_without_a_reply(log: list[LogLine]) -> set[str]:
    """Return the findings of the proof after a swap of two replies and the removal of a reply."""
    good = [line for line in log if line.outcome == "ok" and line.kind == "entities"]
    ids = {good[0].number: good[1].response_id, good[1].number: good[0].response_id}
    spoilt = [
        replace(line, response_id=ids.get(line.number, line.response_id))
        for line in log
        if line.number != good[2].number
    ]
    return {finding.partition(":")[0] for finding in prove_log(spoilt).findings}
