"""Each column that could hold a person's words has a decision: shown or hidden."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.db import models

from observability.admin.base import OF_THE_SENDER, ReadOnlyAdmin
from tests.integration.test_role_matrix import OUR_TABLES

WORDS = {
    "CharField", "TextField", "JSONField", "ArrayField", "BinaryField", "GenericIPAddressField",
}  # fmt: skip
SHOWN = {
    "ai_processing_sessions": (
        "ai_model_name error_code error_context error_message failure_pass model_config "
        "pass05_status pass1_5_status pass1_status pass2_status pass3_status processing_mode "
        "session_status session_type workflow_step"
    ),
    "ai_processing_summary": (
        "business_events error_code error_drill_down failure_stage processing_status"
    ),
    "api_clients": "created_by name",
    "api_idempotency_keys": "",
    "api_tokens": "created_by prefix revoked_by scopes",
    "api_webhook_deliveries": "event_type failure status subject_code subject_status",
    "api_webhook_endpoints": "disabled_reason events",
    "audit_checks": "fresh_hash full_hash problem",
    "audit_chain": "hash",
    "audit_events": "action actor facts reason result target_id target_kind",
    "periodic_task_runs": "name outcome",
    "code_terms": "kind text",
    "code_search_entries": "codes facets weights words",
    "code_search_vectors": "model",
    "code_search_words": "lexeme word",
    "code_systems": "digest key licence source version",
    "codes": "code display kind parent properties",
    "federated_identities": "issuer subject",
    "file_sweeps": "held",
    "healthcare_encounters": "encounter_type",
    "incident_jobs": "effect",
    "incidents": "evidence kind model provider state",
    "job_queue": (
        "current_step error_code error_details last_error park_reason status step_run_ms worker_id"
    ),
    "pass05_cascade_chains": "links",
    "pass05_chunk_results": (
        "ai_model_used error_code error_context error_details error_message status "
        "transient_error_history"
    ),
    "pass05_encounter_metrics": (
        "ai_model_used encounter_types_found error_code error_summary ocr_model_used"
    ),
    "pass05_page_assignments": "reason",
    "pass05_pending_encounters": "encounter_type error_code spans split_rule status",
    "pass05_progressive_sessions": "error_code error_message status",
    "pass05_reconciliation_log": "outcome reason rule subjects",
    "pass1_batch_results": (
        "ai_model_used error_code error_context error_message spans status transient_error_history"
    ),
    "pass1_encounter_results": "error_code error_summary status warnings zones",
    "pass1_entity_detections": "alignment category engine review_flags rule verdict zone_type",
    "pass1_entity_metrics": (
        "ai_model_used entity_types_found error_code error_summary ocr_model_used"
    ),
    "pass1_5_code_candidates": "search_version system system_version",
    "pass2_clinical_metrics": "ai_model_used error_code error_summary",
    "pass2_enriched_entities": "category code_system engine flags",
    "pass2_zone_results": (
        "ai_model_used entity_ids error_code error_context error_message spans status "
        "transient_error_history zone_type"
    ),
    "pass3_narrative_metrics": "ai_model_used error_code error_summary",
    "pass3_narrative_results": (
        "ai_model_used entity_ids error_code error_context error_message status "
        "transient_error_history"
    ),
    "pass3_narrative_sentences": "entity_ids",
    "record_list_items": "code_system encounter_ids entity_ids kind",
    "pauses": "end_reason ended_by model paused_by provider queue reason",
    "processed_documents": (
        "code_table_version document_hash engine input_mode model_version owner plan "
        "prompt_version schema_version step"
    ),
    "provider_calls": (
        "finish_reason message model model_version outcome prompt_version provider "
        "quota_id response_id schema_version split step"
    ),
    "extraction_flights": "document_hash owner",
    "kept_replies": "lookup model_version step",
    "record_reuses": "step",
    "review_items": (
        "claimed_by closed_by figures first_reviewer lane reason skipped_by sla status weighed_by"
    ),
    "review_decisions": "action category decided_by engine field prompt_version rule",
    "locked_fields": "category field",
    "provider_payloads": "prompt_sha256",
    "rate_limit_counts": "model provider",
    "metric_counts": "labels name",
    "sla_snapshots": "priority",
    "record_batches": "status",
    "shell_file_pages": "source regions suspects warnings",
    "shell_files": "language media_type owner sha256 status warnings",
    "user_profiles": "pseudonym",
}
"""Codes, counts, names of models and rules, and texts of operators, but no text of a document.
A new column must be here, or in `phi` of its table, before a page shows the column."""


@pytest.mark.parametrize("model", OUR_TABLES, ids=lambda model: str(model._meta.db_table))
def test_each_column_of_words_is_known_as_shown_or_as_hidden(model: type[models.Model]) -> None:
    of = admin.site.get_model_admin(model)
    assert isinstance(of, ReadOnlyAdmin)
    words = {field.name for field in model._meta.fields if field.get_internal_type() in WORDS}

    assert words - {*of.phi, *OF_THE_SENDER} == set(SHOWN[model._meta.db_table].split())
    assert set(of.phi) <= {field.name for field in model._meta.fields}
