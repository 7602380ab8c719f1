"""The drill-down answers first, from any id, in few statements, and without PHI."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from observability.drilldown.explain import drill_down
from observability.drilldown.lookup import IdError
from observability.drilldown.nodes import Node, NodeKind
from observability.drilldown.summary import thousands
from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.labels import StatusWord, counted
from pipeline.models import Batch, Chunk, Encounter, Entity, PendingEncounter, ProviderCall
from pipeline.models import Job as JobRow
from pipeline.operations.preview import Selection, preview
from tests.support import records
from tests.support.databases import as_owner

# One worker of the suite runs the records of this module once.
pytestmark = pytest.mark.xdist_group("explain")

LIMITED = (
    {"fault": "bad-json", "kind": "entities", "page": 13},
    {"fault": "503", "kind": "entities", "page": 1, "attempt": 1},
)
"""On `LONG`, the first batch of the 30-page encounter fails, and one failed call is absorbed."""
STATEMENTS = 14
"""A page reads a table of work items only for a pass of the registry (`work_tables`)."""


@dataclass(frozen=True)
class ExplainedRecords:
    """The records of this module."""

    completed: UUID
    outage: UUID
    long: UUID
    unread: UUID


@pytest.fixture(scope="module")
def ran(module_db: str) -> ExplainedRecords:
    """Run one record to each outcome, in a database of their own."""
    return ExplainedRecords(
        completed=records.completed_record(records.TRAPS, patient_reference="Roe, Jane").id,
        outage=records.failed_record().id,
        long=records.failed_record(records.LONG, LIMITED).id,
        unread=records.failed_record(faults=[{"fault": "500", "kind": "discovery"}]).id,
    )


def _explain(of: object, *options: str) -> str:
    out = io.StringIO()
    call_command("explain", str(of), *options, stdout=out)
    return out.getvalue()


def _first_line(of: object) -> str:
    return _explain(of).splitlines()[0]


def test_the_first_line_says_what_failed_what_is_lost_and_what_to_do(ran: ExplainedRecords) -> None:
    line = _first_line(ran.long)

    assert line.startswith("Pass 1 failed: encounter 5, batch 1 of ")
    assert " (pages 13–" in line
    assert "the reply was not JSON (PARSE_JSON) 3 times over " in line
    assert "Nothing of encounter 5 is visible; encounters 1–4, 6–12 are complete." in line
    assert f"Advice: {ERRORS[ErrorCode.PARSE_JSON].advice}" in line
    assert "A retry costs about 1 call, " in line


def test_explain_and_the_preview_of_a_retry_estimate_the_same(ran: ExplainedRecords) -> None:
    for record in (ran.long, ran.outage):
        found = preview(Selection(record=record))
        calls, tokens = counted(found.calls, "call"), thousands(found.input_tokens)

        assert f"A retry costs about {calls}, {tokens} input tokens" in _first_line(record)


def test_many_failures_of_one_cause_are_called_an_outage(ran: ExplainedRecords) -> None:
    line = _first_line(ran.outage)

    assert line.startswith("Pass 1 failed: 7 of 8 batches failed; the first is encounter 1, ")
    assert "This looks like an outage of the provider (7 with API_5XX)." in line
    assert f"Advice: {ERRORS[ErrorCode.API_5XX].advice}" in line


def test_a_record_without_encounters_says_that_nothing_is_visible(ran: ExplainedRecords) -> None:
    line = _first_line(ran.unread)

    assert line.startswith("Pass 0.5 failed: chunk 1 of 1 (pages 1–5): the provider failed")
    assert "Nothing of the record is visible." in line


def test_a_completed_record_says_what_was_found_and_what_to_look_at(ran: ExplainedRecords) -> None:
    line = _first_line(ran.completed)

    assert line.startswith("Done in ")
    assert "5 encounters and " in line
    assert " from 10 pages; " in line
    assert "Look at: 2 rows not understood, published without a value; page" in line
    assert "These pages name another patient" in line


def test_equal_completed_rows_fold_into_one_row(ran: ExplainedRecords) -> None:
    folded, whole = _explain(ran.long), _explain(ran.long, "--all")

    assert "✓ 4 encounters done, " in folded
    assert "1 failed call absorbed" in folded
    assert "✓ 7 encounters done, " in folded
    assert "◌ Pass 1.5, Pass 2, Pass 3: not reached" in folded
    assert len(folded.splitlines()) < len(whole.splitlines()) / 2
    encounters = Encounter.objects.filter(shell_file_id=ran.long).values_list("id", flat=True)
    assert [i for i in encounters if str(i) not in whole] == []
    calls = ProviderCall.objects.filter(processing_session__shell_file_id=ran.long)
    assert [i for i in calls.values_list("id", flat=True) if str(i) not in whole] == []


def test_each_kind_of_id_leads_to_its_record(ran: ExplainedRecords) -> None:
    batch = Batch.objects.filter(
        pass1_encounter_result__shell_file_id=ran.long, status="failed"
    ).get()
    chunk = Chunk.objects.filter(discovery_session__shell_file_id=ran.long)[0]
    sighting = PendingEncounter.objects.filter(chunk=chunk)[0]
    entity = Entity.objects.filter(shell_file_id=ran.long)[0]
    job = JobRow.objects.get(shell_file_id=ran.long)
    call = ProviderCall.objects.filter(work_item_id=batch.id)[0]
    expected: list[tuple[Any, str, Any]] = [
        (ran.long, "record", ran.long),
        (job.id, "job", ran.long),
        (chunk.processing_session_id, "session", ran.long),
        (batch.healthcare_encounter_id, "encounter", batch.healthcare_encounter_id),
        (batch.pass1_encounter_result_id, "encounter result", batch.healthcare_encounter_id),
        (batch.id, "batch", batch.id),
        (chunk.id, "chunk", chunk.id),
        (sighting.id, "sighting", chunk.id),
        (entity.id, "entity", entity.healthcare_encounter_id),
        (call.id, "call", call.id),
    ]

    found = [drill_down(str(asked)) for asked, _, _ in expected]

    assert [(f.asked_kind, f.focus) for f in found] == [(k, str(n)) for _, k, n in expected]
    assert {f.root.id for f in found} == {str(ran.long)}
    assert {f.record_answer for f in found} == {found[0].answer}


def test_an_id_below_the_record_is_answered_for_itself_first(ran: ExplainedRecords) -> None:
    batch = Batch.objects.get(pass1_encounter_result__shell_file_id=ran.long, status="failed")

    first, second, *_ = _explain(batch.id).splitlines()

    assert first.startswith("Pass 1, encounter 5 (")
    assert "failed: the reply was not JSON (PARSE_JSON) 3 times" in first
    assert second.startswith("Pass 1 failed: ")


def test_a_prefix_of_six_digits_is_enough_where_it_is_unique(ran: ExplainedRecords) -> None:
    assert drill_down(str(ran.long)[:13]).asked == str(ran.long)
    assert drill_down(ran.long.hex[:14].upper()).asked == str(ran.long)


def test_an_ambiguous_prefix_names_its_candidates(ran: ExplainedRecords) -> None:
    first = UUID(int=0xABCDEF << 104)
    second = UUID(int=(0xABCDEF << 104) + 1)
    encounters = Encounter.objects.filter(shell_file_id=ran.completed).values()[0]
    for index, new in ((101, first), (102, second)):
        Encounter.objects.create(**{**encounters, "id": new, "encounter_index": index})

    with pytest.raises(IdError, match="Several ids begin with") as refused:
        drill_down("abcdef")
    with as_owner():
        Encounter.objects.filter(id__in=[first, second]).delete()

    assert str(first) in str(refused.value)
    assert str(second) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("00000000-0000-0000-0000-000000000000", "No object has the id"),
        ("abc", "at least 6 digits"),
        ("lab_5p_8enc.pdf", "hexadecimal"),
        ("0" * 33, "hexadecimal"),
    ],
)
def test_an_id_that_names_nothing_is_refused_in_one_line(
    ran: ExplainedRecords, text: str, said: str
) -> None:
    with pytest.raises(CommandError) as refused:
        _explain(text)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_number_of_statements_does_not_grow_with_the_record(ran: ExplainedRecords) -> None:
    asked = []
    for record in (ran.completed, ran.outage, ran.long, ran.unread):
        with CaptureQueriesContext(connection) as context:
            drill_down(str(record))
        asked.append(len(context))

    assert set(asked) == {STATEMENTS}


def test_json_carries_the_tree_with_codes_counts_and_costs(ran: ExplainedRecords) -> None:
    found = json.loads(_explain(ran.long, "--json"))

    assert found["answer"] == _first_line(ran.long)
    passes = {child["id"]: child for child in found["tree"]["children"]}
    assert list(passes) == ["pages", "pass05", "pass1", "pass1_5", "pass2", "pass3"]
    assert passes["pass1"]["status"] == "failed"
    assert passes["pass1"]["counts"]["encounter"] == 12
    broken = next(e for e in passes["pass1"]["children"] if e["status"] == "failed")
    batch = next(b for b in broken["children"] if b["status"] == "failed")
    assert batch["cause"]["root"] == "PARSE_JSON"
    assert batch["cause"]["advice"] == ERRORS[ErrorCode.PARSE_JSON].advice
    assert [call["facts"]["outcome"] for call in batch["children"]] == ["PARSE_JSON"] * 3
    assert batch["spent"]["input_tokens"] > 0
    assert float(batch["spent"]["cost_usd"]) > 0


def test_a_parents_tokens_are_those_of_the_calls_below_it(ran: ExplainedRecords) -> None:
    root = drill_down(str(ran.long)).root

    def calls_of(node: Node) -> int:
        return sum(n.spent.input_tokens for n in node.walk() if n.kind is NodeKind.CALL)

    for node in root.walk():
        if node.kind is not NodeKind.CALL:
            assert node.spent.input_tokens == calls_of(node), node.title


def test_no_status_contradicts_those_below_it(ran: ExplainedRecords) -> None:
    for record in (ran.completed, ran.outage, ran.long, ran.unread):
        for node in drill_down(str(record)).root.walk():
            below = {child.status for child in node.children if child.kind is not NodeKind.CALL}
            if node.status is StatusWord.DONE:
                assert below <= {StatusWord.DONE, StatusWord.SKIPPED}, node.title
            assert StatusWord.RUNNING not in below


def test_no_document_text_name_or_file_name_is_shown(ran: ExplainedRecords) -> None:
    truth = json.loads(records.TRAPS.with_suffix(".truth.json").read_text())
    secrets = {truth["patient"]["name"], truth["patient"]["identifier"], "traps_10p", "Roe"}
    secrets |= {e["facility"] for e in truth["encounters"] if e["facility"]}
    secrets |= {
        n["quote"] for e in truth["encounters"] for n in e["entities"] if len(n["quote"]) > 6
    }

    shown = _explain(ran.completed, "--all") + _explain(ran.completed, "--json")

    assert [secret for secret in secrets if secret in shown] == []


def test_every_code_has_advice_in_the_answer(ran: ExplainedRecords) -> None:
    assert [code for code in ErrorCode if not ERRORS[code].advice.endswith(".")] == []
