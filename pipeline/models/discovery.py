"""Pass 0.5: the search for encounters, from the discovery session down to each decision.

A chunk's reply is stored as soon as the chunk succeeds. All other rows are written in the one
transaction that publishes the pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import models
from django.db.models import Q

from pipeline.core.errors import ErrorCode
from pipeline.core.states import PassStatus, WorkStatus
from pipeline.models import fields
from pipeline.models.documents import ShellFile
from pipeline.models.encounters import Encounter
from pipeline.models.sessions import Session
from pipeline.models.work_item import PassMetrics, WorkItem


class DiscoverySession(models.Model):
    """Pass 0.5 of one record."""

    id = fields.uuid_pk()
    shell_file = models.OneToOneField(
        ShellFile, on_delete=models.CASCADE, related_name="discovery_session"
    )
    processing_session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    status = fields.status(PassStatus, PassStatus.PENDING)
    total_pages = models.IntegerField()
    total_chunks = models.IntegerField()
    chunks_succeeded = fields.count()
    chunks_failed = fields.count()
    encounters_found = fields.count()
    encounters_held = fields.count()
    total_input_tokens = fields.count()
    total_output_tokens = fields.count()
    started_at = fields.optional_time()
    completed_at = fields.optional_time()
    error_code = fields.text(null=True)
    error_message = fields.text(null=True)
    created_at = fields.created_at()

    class Meta:
        verbose_name = "discovery"
        verbose_name_plural = "discoveries"
        db_table = "pass05_progressive_sessions"
        db_table_comment = "Pass 0.5 of one record: chunks, encounters, tokens, times."
        constraints = [
            fields.one_of("pass05_session_status_check", "status", PassStatus),
            fields.not_negative(
                "pass05_session_counts_check",
                "total_pages",
                "total_chunks",
                "chunks_succeeded",
                "chunks_failed",
                "encounters_found",
                "encounters_held",
            ),
        ]

    def __str__(self) -> str:
        return f"discovery of {self.shell_file_id}"


class Chunk(WorkItem):
    """One run of pages that a single call searches."""

    discovery_session = models.ForeignKey(
        DiscoverySession, on_delete=models.CASCADE, related_name="chunks", db_index=False
    )
    processing_session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="chunks")
    chunk_index = models.IntegerField()
    context_page = models.IntegerField(null=True, blank=True)
    """The page before the first; shown because its text may continue across the edge."""
    encounters_detected = fields.optional_count()
    error_details = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "pass05_chunk_results"
        db_table_comment = "Per-chunk results of Pass 0.5: attempts, tokens, errors, stored reply."
        indexes = [
            models.Index(
                fields=["status"],
                name="idx_pass05_chunk_status",
                condition=Q(status__in=["pending", "processing", "failed"]),
            ),
            models.Index(
                fields=["started_at"],
                name="idx_pass05_chunk_stale",
                condition=Q(status=WorkStatus.PROCESSING),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["discovery_session", "chunk_index"], name="idx_pass05_chunk_unique"
            ),
            fields.one_of("pass05_chunk_status_check", "status", WorkStatus),
            fields.page_range("pass05_chunk_pages_check", "page_range_start", "page_range_end"),
            fields.not_negative(
                "pass05_chunk_counts_check", "attempt_count", "max_attempts", "rate_limit_waits"
            ),
            models.CheckConstraint(
                name="pass05_chunk_success_check",
                condition=~Q(status=WorkStatus.SUCCEEDED) | Q(completed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"chunk {self.chunk_index}"

    def fail(self, code: ErrorCode, message: str, at: datetime, *, split: str = "") -> None:
        """End the chunk as failed for good; also keep the error context in `error_details`."""
        super().fail(code, message, at, split=split)
        self.error_details = self.error_context

    def _set_counts(self, counts: Mapping[str, int]) -> None:
        self.encounters_detected = counts["encounters_detected"]

    def _clear_error(self) -> None:
        super()._clear_error()
        self.error_details = None


class CascadeChain(models.Model):
    """An encounter that crosses edges of chunks, with the chunks that it spans."""

    id = fields.uuid_pk()
    discovery_session = models.ForeignKey(
        DiscoverySession, on_delete=models.CASCADE, related_name="chains"
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, null=True, blank=True, related_name="chains"
    )
    chunk_first = models.IntegerField()
    chunk_last = models.IntegerField()
    links = models.JSONField()
    """One entry per edge: {chunk, next_chunk, rule, overlap}."""
    created_at = fields.created_at()

    class Meta:
        db_table = "pass05_cascade_chains"
        db_table_comment = "Encounters that cross chunk edges."

    def __str__(self) -> str:
        return f"chain over chunks {self.chunk_first}-{self.chunk_last}"


class PendingStatus(models.TextChoices):
    """The result of reconciliation for an encounter that a chunk reported."""

    PUBLISHED = "published"
    JOINED = "joined"
    """Part of an encounter that began in an earlier chunk."""
    HELD = "held"
    """Names, or may belong to, another patient; kept for review, never published."""
    DROPPED = "dropped"
    """Another chunk reports the encounter, or no text of it is left; the log names the reason."""


class PendingEncounter(models.Model):
    """An encounter as one chunk saw it, with the identifiers printed on its pages. PHI."""

    id = fields.uuid_pk()
    discovery_session = models.ForeignKey(
        DiscoverySession, on_delete=models.CASCADE, related_name="pending_encounters"
    )
    chunk = models.ForeignKey(Chunk, on_delete=models.CASCADE, related_name="pending_encounters")
    local_index = models.IntegerField()
    status = models.TextField(choices=PendingStatus.choices, editable=False)
    encounter_type = fields.text()
    facility_name = fields.text(null=True)
    clinician_name = fields.text(null=True)
    encounter_date_start = models.DateField(null=True, blank=True)
    encounter_date_end = models.DateField(null=True, blank=True)
    patient_name = fields.text(null=True)
    patient_birth_date = models.DateField(null=True, blank=True)
    patient_identifier = fields.text(null=True)
    spans = models.JSONField()
    """List of [page, start, end]."""
    open_at_start = fields.flag()
    open_at_end = fields.flag()
    split_rule = fields.text(null=True)
    cascade_chain = models.ForeignKey(
        CascadeChain, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.SET_NULL, null=True, blank=True, related_name="sightings"
    )
    error_code = fields.text(null=True)
    created_at = fields.created_at()

    class Meta:
        verbose_name = "sighting"
        verbose_name_plural = "sightings"
        db_table = "pass05_pending_encounters"
        db_table_comment = "Encounters as each chunk saw them, with the result of each. PHI."
        constraints = [
            models.UniqueConstraint(
                fields=["chunk", "local_index"], name="idx_pass05_pending_unique"
            ),
            fields.one_of("pass05_pending_status_check", "status", PendingStatus),
        ]

    def __str__(self) -> str:
        return f"sighting {self.local_index} of chunk {self.chunk_id}"


HELD_TEXT = "patient_mismatch"
"""The reason on text that is held because it names, or may belong to, another patient."""


class PageAssignment(models.Model):
    """The encounter that a run of characters belongs to; several encounters can share a page."""

    id = models.BigAutoField(primary_key=True)
    discovery_session = models.ForeignKey(
        DiscoverySession, on_delete=models.CASCADE, related_name="assignments", db_index=False
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, null=True, blank=True, related_name="assignments"
    )
    """Empty if the text belongs to no published encounter; `reason` then names the cause."""
    page_number = models.IntegerField()
    start_offset = models.IntegerField()
    end_offset = models.IntegerField()
    reason = fields.text(null=True)
    created_at = fields.created_at()

    class Meta:
        db_table = "pass05_page_assignments"
        db_table_comment = (
            "Every character of every page: its encounter, or the reason why it has none."
        )
        constraints = [
            models.UniqueConstraint(
                fields=["discovery_session", "page_number", "start_offset"],
                name="idx_pass05_assignment_unique",
            ),
            models.CheckConstraint(
                name="pass05_assignment_span_check",
                condition=Q(page_number__gte=1)
                & Q(start_offset__gte=0)
                & Q(end_offset__gte=models.F("start_offset")),
            ),
            models.CheckConstraint(
                name="pass05_assignment_reason_check",
                condition=Q(healthcare_encounter__isnull=False) | Q(reason__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"page {self.page_number} {self.start_offset}-{self.end_offset}"


class ReconciliationEntry(models.Model):
    """One decision of the reconciliation, in the order of the decisions."""

    id = fields.uuid_pk()
    discovery_session = models.ForeignKey(
        DiscoverySession, on_delete=models.CASCADE, related_name="decisions", db_index=False
    )
    decision_index = models.IntegerField()
    rule = fields.text()
    subjects = models.JSONField()
    """Keys of the sightings concerned: chunk and local index."""
    outcome = fields.text()
    reason = fields.text()
    created_at = fields.created_at()

    class Meta:
        verbose_name = "decision"
        verbose_name_plural = "decisions"
        db_table = "pass05_reconciliation_log"
        db_table_comment = "Audit trail of how chunk sightings became encounters. No PHI."
        constraints = [
            models.UniqueConstraint(
                fields=["discovery_session", "decision_index"], name="idx_pass05_decision_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"decision {self.decision_index}: {self.rule}"


class DiscoveryMetrics(PassMetrics):
    """The results and the cost of Pass 0.5 for one record."""

    shell_file = models.OneToOneField(
        ShellFile, on_delete=models.CASCADE, related_name="discovery_metrics"
    )
    encounters_detected = fields.count()
    encounters_held = fields.count()
    pages_total = fields.count()
    pages_unassigned = fields.count()
    characters_total = fields.count()
    characters_assigned = fields.count()
    chunks_total = fields.count()
    chunks_succeeded = fields.count()
    encounter_types_found = models.JSONField(default=list, db_default=[])
    ocr_model_used = fields.text(null=True)
    ocr_pages_processed = fields.count()

    class Meta:
        verbose_name = "Pass 0.5 totals"
        verbose_name_plural = "Pass 0.5 totals"
        db_table = "pass05_encounter_metrics"
        db_table_comment = "Totals of Pass 0.5 for one record."

    def __str__(self) -> str:
        return f"Pass 0.5 metrics of {self.shell_file_id}"
