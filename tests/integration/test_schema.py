"""The database enforces the rules, and real records fill every column that has a use.

The columns are read after records of every outcome: completed, completed after failed calls, held
back, failed in each pass with calls. All passes run, with a part of ICD-10-CM.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.test import override_settings

from pipeline.models import LockedField, PendingEncounter, ReviewDecision
from tests.support import code_rows, records
from tests.support.records import rows

# One worker of the suite runs the records of this module once.
pytestmark = pytest.mark.xdist_group("schema")

MODELS = sorted(apps.get_app_config("pipeline").get_models(), key=lambda m: m._meta.db_table)
OF_THE_API = [*apps.get_app_config("api").get_models()]
TABLES = {
    "processed_documents", "shell_files", "job_queue", "ai_processing_sessions",
    "ai_processing_summary", "pass05_progressive_sessions", "pass05_chunk_results",
    "pass05_pending_encounters", "pass05_page_assignments", "pass05_encounter_metrics",
    "pass05_cascade_chains", "pass05_reconciliation_log", "healthcare_encounters",
    "pass1_entity_metrics", "pass1_encounter_results", "pass1_batch_results",
    "pass1_entity_detections", "pass2_clinical_metrics", "pass2_zone_results",
    "pass3_narrative_metrics", "provider_calls", "provider_payloads", "user_profiles",
    "periodic_task_runs", "incident_jobs", "incidents", "pauses", "record_batches",
    "rate_limit_counts", "file_sweeps", "metric_counts",
}  # fmt: skip
"""The tables of the source documents, with the calls and the patient."""

NO_RECORD = {
    "periodic_task_runs", "incident_jobs", "incidents", "pauses", "record_batches",
    "rate_limit_counts", "file_sweeps", "metric_counts",
}  # fmt: skip
"""Tables that providers, operators or the scheduler fill, and a single record does not."""

ZERO_BASED = {"failure_batch_index", "chunk_first", "decision_index"}
"""Columns in which 0 is a value of its own."""
_NO_CLIENT = "the command line is no web client"
_NO_RETRY = "the suite lets no job be retried by itself"
_NOT_PARKED = "filled while a job is parked, and cleared when it goes on"
_FLIGHT = "a row lives only while its job does"
_NO_DEATH = "no worker died"
_PART = "the test inserts a part of the system, and the loader counts"
_SUPPORTED = "the local engine writes only sentences that its entities support"
_WORDS_ALONE = "the embedder is off, which is the default"
_NO_REVIEWER = "no person reviews these records"
_NOT_USED = "the emulator reports none, as the model does unless it is asked to think or to cache"
UNFILLED: dict[str, str] = {
    "ai_processing_sessions.max_retries": _NO_RETRY,
    "ai_processing_sessions.retry_count": _NO_RETRY,
    "ai_processing_summary.ip_address": _NO_CLIENT,
    "ai_processing_summary.user_agent": _NO_CLIENT,
    "code_search_vectors.created_at": _WORDS_ALONE,
    "code_search_vectors.digest": _WORDS_ALONE,
    "code_search_vectors.id": _WORDS_ALONE,
    "code_search_vectors.model": _WORDS_ALONE,
    "code_search_vectors.vector": _WORDS_ALONE,
    "code_systems.code_count": _PART,
    "code_systems.term_count": _PART,
    "extraction_flights.id": _FLIGHT,
    "extraction_flights.document_hash": _FLIGHT,
    "extraction_flights.job_id": _FLIGHT,
    "extraction_flights.owner": _FLIGHT,
    "extraction_flights.renewed_at": _FLIGHT,
    "record_reuses.cost_saved_usd": "the local engine costs nothing",
    "provider_calls.split": "empty for a call about a whole batch or chunk",
    "job_queue.cancel_requested_at": "no test cancels these jobs",
    "job_queue.crash_count": _NO_DEATH,
    "job_queue.dead_letter_at": _NO_DEATH,
    "job_queue.lease_expires_at": "cleared when a step ends",
    "job_queue.hung_at": "set when a step hung, and cleared when the step completes",
    "job_queue.preempted_at": "set by a large record that made room, and cleared when it goes on",
    "job_queue.incident_id": _NOT_PARKED,
    "job_queue.park_reason": _NOT_PARKED,
    "job_queue.parked_until": _NOT_PARKED,
    "job_queue.pause_id": _NOT_PARKED,
    "job_queue.max_retries": _NO_RETRY,
    "job_queue.record_batch_id": "each of these records was submitted alone",
    "job_queue.retry_count": _NO_RETRY,
    "job_queue.step_deadline_at": "set while a step runs; these have ended",
    "job_queue.worker_id": "cleared when a step ends",
    "pass05_chunk_results.output": "cleared by the publication",
    "pass05_encounter_metrics.ip_address": _NO_CLIENT,
    "pass05_encounter_metrics.user_agent": _NO_CLIENT,
    "pass1_encounter_results.warnings": "every encounter of the samples has entities",
    "pass1_entity_detections.page_end": "no quote of the samples runs over a page's edge",
    "pass1_entity_detections.second_reading": "the local engine has no second reader",
    "pass1_entity_metrics.ip_address": _NO_CLIENT,
    "pass1_entity_metrics.user_agent": _NO_CLIENT,
    "pass2_clinical_metrics.ip_address": _NO_CLIENT,
    "pass2_clinical_metrics.user_agent": _NO_CLIENT,
    "pass2_enriched_entities.second_reading": "the emulator reads as the local engine does",
    "pass2_zone_results.attributes_rejected": "the emulator answers about the entities asked for",
    "pass2_zone_results.output": "cleared by the publication",
    "pass3_narrative_metrics.ip_address": _NO_CLIENT,
    "pass3_narrative_metrics.user_agent": _NO_CLIENT,
    "pass3_narrative_metrics.sentences_unsupported": _SUPPORTED,
    "pass3_narrative_results.output": "cleared by the publication",
    "pass3_narrative_results.sentences_unsupported": _SUPPORTED,
    "pass3_narrative_sentences.reasons": _SUPPORTED,
    "provider_calls.cached_tokens": _NOT_USED,
    "provider_calls.thinking_tokens": _NOT_USED,
    "shell_file_pages.regions": "no text page of the samples has unexplained ink",
    "shell_file_pages.suspects": "no page of the samples hides text or addresses a model",
    "shell_file_pages.unread_share": "no text page of the samples has unexplained ink",
    "shell_file_pages.warnings": "no page of the samples is damaged or hides text",
    "shell_files.supersedes_id": "nothing re-extracts yet",
    "pass1_entity_detections.verdict": _NO_REVIEWER,
    **dict.fromkeys(
        (
            f"review_items.{column}"
            for column in (
                "claimed_by",
                "claimed_until",
                "closed_at",
                "closed_by",
                "first_reviewer",
                "skipped_by",
            )
        ),
        _NO_REVIEWER,
    ),
    "review_items.is_double": "this test has no double reviews",
    **dict.fromkeys(
        (
            f"{model._meta.db_table}.{field.column}"
            for model in (ReviewDecision, LockedField)
            for field in model._meta.concrete_fields
        ),
        _NO_REVIEWER,
    ),
}
"""Column -> the reason why no row of these records fills the column."""

SEED_INDEXES = {
    "idx_pass1_batch_encounter": None,
    "idx_pass1_batch_status": "status",
    "idx_pass1_batch_failed": "failed",
    "idx_pass1_batch_stale": "processing",
    "idx_pass1_batch_transient": "had_transient_failure",
    "idx_pass1_batch_unique": None,
    "idx_pass1_encounter_shell": None,
    "idx_pass1_encounter_status": None,
    "idx_pass1_encounter_failed": "failed",
}
"""Index names of the source document; a partial index with a word of its condition."""
ON_DELETE: dict[Any, str] = {
    models.CASCADE: "c",
    models.SET_NULL: "n",
    models.PROTECT: "r",
    models.DO_NOTHING: "a",
}
FAULTS = (
    {"fault": "bad-json", "kind": "entities", "page": 13},
    {"fault": "500", "kind": "discovery", "attempt": 1},
    {"fault": "429", "kind": "discovery", "attempt": 2, "retry_after_s": 0.01},
    {"fault": "429", "kind": "entities", "page": 1, "attempt": 1, "retry_after_s": 0.01},
)
LATE_FAULTS = (
    {"fault": "500", "kind": "enrichment", "page": 1, "attempt": 1},
    {"fault": "429", "kind": "enrichment", "page": 2, "attempt": 1, "retry_after_s": 0.01},
    {"fault": "500", "kind": "narrative", "page": 2, "attempt": 1},
    {"fault": "429", "kind": "narrative", "page": 2, "attempt": 2, "retry_after_s": 0.01},
    {"fault": "bad-json", "kind": "narrative", "page": 1},
)
"""Pass 2 completes after failed calls, and Pass 3 fails."""


@pytest.fixture(scope="module")
def ran(module_db: str) -> None:
    """Run a record to each outcome, in a separate database."""
    code_rows.load_icd_part()
    with override_settings(SKIPPED_PASSES=()):
        _run_records()


def _run_records() -> None:
    records.failed_record(records.LONG, FAULTS)
    records.completed_record(records.SCAN, patient_reference="ref-1", priority=2)
    records.completed_record(records.TRAPS, idempotency_key="key-1", owner="cli")
    records.completed_record(records.TRAPS, owner="cli")
    records.completed_record(records.TRAPS, owner="cli", is_forced=True)
    records.failed_record(records.LAB, records.OUTAGE)
    records.failed_record(records.LAB, [{"fault": "bad-json", "kind": "discovery"}])
    records.failed_record(records.LAB, [{"fault": "bad-json", "kind": "enrichment", "page": 2}])
    records.failed_record(records.LAB, LATE_FAULTS)


def _columns() -> list[tuple[str, str]]:
    return [
        (model._meta.db_table, str(field.column))
        for model in MODELS
        for field in model._meta.local_concrete_fields
        if model._meta.db_table not in NO_RECORD
    ]


def _is_filled(table: str, column: str) -> bool:
    empty = "'', 'false', 'f', '[]', '{}'"
    if column not in ZERO_BASED:
        empty += ", '0', '0.000000'"
    found = rows(
        f'SELECT 1 FROM "{table}" WHERE "{column}" IS NOT NULL'  # noqa: S608 - names of models
        f' AND "{column}"::text NOT IN ({empty}) LIMIT 1'
    )
    return bool(found)


def test_every_column_is_filled_or_has_its_reason(ran: None) -> None:
    empty = {f"{t}.{c}" for t, c in _columns() if not _is_filled(t, c)}

    assert empty - set(UNFILLED) == set()
    assert set(UNFILLED) - empty == set()


@pytest.mark.django_db
def test_the_tables_of_the_documents_are_there() -> None:
    found = {row["tablename"] for row in rows("SELECT tablename FROM pg_tables")}

    assert found >= TABLES
    assert {model._meta.db_table for model in MODELS} >= TABLES


@pytest.mark.django_db
def test_every_table_says_what_it_holds() -> None:
    comments = {
        row["relname"]: row["comment"]
        for row in rows(
            "SELECT relname, obj_description(oid, 'pg_class') AS comment FROM pg_class"
            " WHERE relkind = 'r'"
        )
    }

    tables = [m._meta.db_table for m in (*MODELS, *OF_THE_API)]
    assert [table for table in tables if not comments[table]] == []


@pytest.mark.django_db
def test_foreign_keys_delete_in_the_database_as_in_the_models() -> None:
    found = {
        (row["child"], row["attname"]): row["rule"]
        for row in rows(
            "SELECT c.conrelid::regclass::text AS child, a.attname, c.confdeltype::text AS rule"
            " FROM pg_constraint c JOIN pg_attribute a"
            " ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] WHERE c.contype = 'f'"
        )
    }
    wanted = {
        (model._meta.db_table, str(field.column)): ON_DELETE[field.remote_field.on_delete]
        for model in MODELS
        for field in model._meta.local_fields
        if isinstance(field, models.ForeignKey)
    }

    assert len(wanted) > 40
    assert {key: found.get(key) for key in wanted} == wanted


@pytest.mark.django_db
def test_every_status_column_has_a_check_of_all_its_values() -> None:
    checks = _checks()
    columns = [
        (model._meta.db_table, field)
        for model in MODELS
        for field in model._meta.local_concrete_fields
        if field.name.endswith("status") and field.choices
    ]

    missing = [
        f"{table}.{field.column}"
        for table, field in columns
        if not any(
            f"({field.column} = ANY" in check and all(f"'{v}'" in check for v in _values(field))
            for check in checks[table]
        )
    ]
    assert len(columns) >= 14
    assert missing == []


@pytest.mark.django_db
def test_every_constraint_of_a_model_is_in_the_database() -> None:
    found = {row["name"] for row in rows("SELECT conname AS name FROM pg_constraint")}
    found |= {row["name"] for row in rows("SELECT relname AS name FROM pg_class")}
    tables = (*MODELS, *OF_THE_API)
    wanted = {constraint.name for model in tables for constraint in model._meta.constraints} | {
        index.name for model in tables for index in model._meta.indexes
    }

    assert wanted - found == set()


@pytest.mark.django_db
def test_the_indexes_of_the_documents_are_there_and_partial_where_they_should_be() -> None:
    found = {
        row["name"]: row["condition"]
        for row in rows(
            "SELECT c.relname AS name, pg_get_expr(i.indpred, i.indrelid) AS condition"
            " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        )
    }

    for name, word in SEED_INDEXES.items():
        assert name in found
        assert (found[name] is None) if word is None else (word in found[name]), name


@pytest.mark.django_db
def test_an_encounter_has_one_result() -> None:
    found = rows(
        "SELECT 1 AS one FROM pg_index i JOIN pg_attribute a"
        " ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
        " WHERE i.indisunique AND i.indnatts = 1"
        " AND i.indrelid = 'pass1_encounter_results'::regclass"
        " AND a.attname = 'healthcare_encounter_id'"
    )

    assert found == [{"one": 1}]


def test_identifiers_are_kept_with_sightings_alone(ran: None) -> None:
    columns = {
        (model._meta.db_table, field.name)
        for model in MODELS
        for field in model._meta.fields
        if field.name.startswith("patient_") and field.name != "patient_id"
    }

    assert {table for table, _ in columns} == {PendingEncounter._meta.db_table}


def _checks() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {model._meta.db_table: [] for model in MODELS}
    for row in rows(
        "SELECT conrelid::regclass::text AS relname, pg_get_constraintdef(oid) AS definition"
        " FROM pg_constraint WHERE contype = 'c'"
    ):
        found.setdefault(row["relname"], []).append(row["definition"])
    return found


def _values(field: Any) -> list[str]:
    return [value for value, _ in field.choices]
