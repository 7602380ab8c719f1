"""Pass 1: encounter results, batches, published entities, and their totals.

All entities of an encounter appear in one transaction, after the whole encounter has succeeded.
Until then each batch keeps its output on its own row.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from pipeline.core.states import WorkStatus
from pipeline.models import fields
from pipeline.models.assertions import Certainty, Experiencer, MedicationStatus, Temporality
from pipeline.models.documents import Patient, ShellFile
from pipeline.models.encounters import Encounter
from pipeline.models.sessions import Session
from pipeline.models.work_item import PassMetrics, WorkItem


class EncounterResult(models.Model):
    """Pass 1 of one encounter, with the totals of its batches."""

    id = fields.uuid_pk()
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="encounter_results", db_index=False
    )
    healthcare_encounter = models.OneToOneField(
        Encounter, on_delete=models.CASCADE, related_name="pass1_result"
    )
    processing_session = models.ForeignKey(
        Session,
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="encounter_results",
    )
    patient = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="+")
    page_count = models.IntegerField()
    batching_used = fields.flag()
    batches_total = fields.count(1)
    status = fields.status(WorkStatus, WorkStatus.PENDING)
    batches_succeeded = fields.count()
    batches_failed = fields.count()
    total_retries_used = fields.count()
    started_at = fields.optional_time()
    completed_at = fields.optional_time()
    total_duration_ms = fields.optional_count()
    total_input_tokens = fields.count()
    total_output_tokens = fields.count()
    total_entities_detected = fields.count()
    total_zones_detected = fields.count()
    total_rows_not_understood = fields.count()
    """Rows that are published without a value, because a part of the row was not understood."""
    no_known_allergies = models.BooleanField(null=True, blank=True)
    zones = models.JSONField(null=True, blank=True)
    """Sections found, as [zone_type, page_start, page_end]; written at publication."""
    warnings = models.JSONField(default=list, db_default=[])
    failure_batch_index = models.IntegerField(null=True, blank=True)
    error_code = fields.text(null=True)
    error_summary = fields.text(null=True)
    created_at = fields.created_at()
    updated_at = models.DateTimeField(auto_now=True, db_default=models.functions.Now())

    class Meta:
        verbose_name = "encounter result"
        verbose_name_plural = "encounter results"
        db_table = "pass1_encounter_results"
        db_table_comment = (
            "Per-encounter processing results for Pass 1. Aggregates batch results and provides "
            "encounter-level status tracking."
        )
        indexes = [
            models.Index(fields=["shell_file"], name="idx_pass1_encounter_shell"),
            models.Index(fields=["status"], name="idx_pass1_encounter_status"),
            models.Index(
                fields=["shell_file"],
                name="idx_pass1_encounter_failed",
                condition=Q(status=WorkStatus.FAILED),
            ),
        ]
        constraints = [
            fields.one_of("pass1_encounter_status_check", "status", WorkStatus),
            fields.not_negative(
                "pass1_encounter_counts_check",
                "page_count",
                "batches_total",
                "batches_succeeded",
                "batches_failed",
                "failure_batch_index",
                "total_rows_not_understood",
            ),
            # All or nothing: an encounter cannot succeed while a batch is missing.
            models.CheckConstraint(
                name="pass1_encounter_whole_check",
                condition=~Q(status=WorkStatus.SUCCEEDED)
                | Q(batches_succeeded=models.F("batches_total"), batches_failed=0),
            ),
        ]

    def __str__(self) -> str:
        return f"Pass 1 of encounter {self.healthcare_encounter_id}"


class Batch(WorkItem):
    """One contiguous run of pages of one encounter, the subject of one call.

    After a split, several calls ask about the batch.
    """

    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, related_name="batches", db_index=False
    )
    pass1_encounter_result = models.ForeignKey(
        EncounterResult, on_delete=models.CASCADE, related_name="batches"
    )
    processing_session = models.ForeignKey(
        Session, on_delete=models.DO_NOTHING, null=True, blank=True, related_name="batches"
    )
    batch_index = models.IntegerField()
    """0-based, in page order within the encounter."""
    spans = models.JSONField()
    """List of [page, start, end]: the encounter's text in these pages."""
    estimated_input_tokens = fields.count()
    entities_detected = fields.optional_count()
    zones_detected = fields.optional_count()

    class Meta:
        verbose_name = "batch"
        verbose_name_plural = "batches"
        db_table = "pass1_batch_results"
        db_table_comment = (
            "Per-batch processing results for Pass 1 entity detection. Tracks retry attempts, "
            "errors, and metrics at batch granularity."
        )
        indexes = [
            models.Index(fields=["healthcare_encounter"], name="idx_pass1_batch_encounter"),
            models.Index(
                fields=["status"],
                name="idx_pass1_batch_status",
                condition=Q(status__in=["pending", "processing", "failed"]),
            ),
            models.Index(
                fields=["healthcare_encounter"],
                name="idx_pass1_batch_failed",
                condition=Q(status=WorkStatus.FAILED),
            ),
            models.Index(
                fields=["started_at"],
                name="idx_pass1_batch_stale",
                condition=Q(status=WorkStatus.PROCESSING),
            ),
            models.Index(
                fields=["healthcare_encounter"],
                name="idx_pass1_batch_transient",
                condition=Q(had_transient_failure=True),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["healthcare_encounter", "batch_index"], name="idx_pass1_batch_unique"
            ),
            fields.one_of("pass1_batch_status_check", "status", WorkStatus),
            fields.page_range("pass1_batch_pages_check", "page_range_start", "page_range_end"),
            fields.not_negative(
                "pass1_batch_counts_check",
                "batch_index",
                "attempt_count",
                "max_attempts",
                "rate_limit_waits",
                "entities_detected",
                "zones_detected",
            ),
            models.CheckConstraint(
                name="pass1_batch_success_check",
                condition=~Q(status=WorkStatus.SUCCEEDED) | Q(completed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"batch {self.batch_index} of encounter {self.healthcare_encounter_id}"

    @property
    def encounter_id(self) -> UUID | None:
        """The encounter that a failure of this batch names."""
        encounter_id: UUID = self.healthcare_encounter_id
        return encounter_id

    @property
    def number_in_encounter(self) -> int | None:
        """The 0-based number that a failure of this batch names."""
        number: int = self.batch_index
        return number

    def _set_counts(self, counts: Mapping[str, int]) -> None:
        self.entities_detected = counts["entities_detected"]
        self.zones_detected = counts["zones_detected"]


class AlignmentKind(models.TextChoices):
    """How an entity's quote was found on its page."""

    EXACT = "exact"
    LAYOUT = "layout"
    """Equal except for white space, line breaks, hyphens and case."""
    CONFUSABLE = "confusable"
    """Equal except for characters that OCR confuses; every digit is equal."""
    RELOCATED = "relocated"
    """Found on another page of the batch than the reply named."""
    UNALIGNED = "unaligned"
    """Found on no page; kept, but never counted as accepted."""


class ReviewVerdict(models.TextChoices):
    """What a reviewer decided about an entity; NULL before a decision."""

    ACCEPTED = "accepted"
    CORRECTED = "corrected"
    """A field was wrong, or the encounter; the row holds the right values now."""
    REJECTED = "rejected"
    """The record does not state the entity."""
    ADDED = "added"
    """The reviewer added the entity."""
    DISPUTED = "disputed"
    """Two reviewers disagree, so the entity counts as no result until a person settles it."""


RESULTS = (ReviewVerdict.ACCEPTED, ReviewVerdict.CORRECTED, ReviewVerdict.ADDED)
"""The verdicts with which an entity counts as a result."""


REVIEWER_ENGINE = "reviewer"
"""The engine of an entity that a reviewer added: a person, no machine."""


class Entity(models.Model):
    """One clinical entity of a published encounter, with its source text. PHI."""

    id = fields.uuid_pk()
    pass1_metrics = models.ForeignKey(
        "EntityMetrics", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="entities", db_index=False
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, related_name="entities", db_index=False
    )
    processing_session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    patient = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="+")
    entity_index = models.IntegerField()
    """0-based, in the order of the text within the encounter."""
    category = fields.text()
    name = models.TextField()
    page_number = models.IntegerField()
    char_start = models.IntegerField(null=True, blank=True)
    char_end = models.IntegerField(null=True, blank=True)
    page_end = models.IntegerField(null=True, blank=True)
    """Set only if the quote continues on the next page; `char_end` then counts on that page."""
    quote = models.TextField()
    alignment = models.TextField(choices=AlignmentKind.choices)
    accepted = fields.flag()
    """No review flag prevents it, or a reviewer decided so; only accepted entities count as
    results."""
    verdict = fields.text(null=True, choices=ReviewVerdict.choices)
    """The decision of a reviewer. A decided entity changes only by another decision."""
    value = fields.text(null=True)
    unit = fields.text(null=True)
    reference_range = fields.text(null=True)
    abnormal_flag = fields.text(null=True)
    strength = fields.text(null=True)
    """What the product contains."""
    dose = fields.text(null=True)
    """What is taken each time."""
    previous_dose = fields.text(null=True)
    route = fields.text(null=True)
    frequency = fields.text(null=True)
    status = fields.text(null=True, choices=MedicationStatus.choices, editable=False)
    step = models.IntegerField(null=True, blank=True)
    """1-based position in a taper or a split dose; None for a single dose."""
    reaction = fields.text(null=True)
    entity_date = models.DateField(null=True, blank=True)
    negated = models.BooleanField(null=True, blank=True)
    temporality = fields.text(null=True, choices=Temporality.choices)
    historical = models.GeneratedField(
        expression=models.ExpressionWrapper(
            Q(temporality=Temporality.HISTORICAL), output_field=models.BooleanField(null=True)
        ),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )
    """Whether `temporality` is `historical`; SQL of the source documents filters on it."""
    certainty = fields.text(null=True, choices=Certainty.choices)
    experiencer = fields.text(null=True, choices=Experiencer.choices)
    zone_type = fields.text(null=True)
    engine = fields.text()
    rule = fields.text(null=True)
    engine_confidence = models.FloatField()
    """How sure the rule or the model is, 0–1."""
    ocr_confidence = models.FloatField(null=True, blank=True)
    """Lowest confidence of the quote's words, 0–100; None if the text is not from OCR."""
    confidence = models.FloatField()
    """Alignment × OCR × engine confidence, 0–1."""
    review_flags = models.JSONField(default=list, db_default=[])
    """Reasons for a review, as `code` or `code:attribute` (`stages/pass1/review_flags.py`)."""
    second_reading = models.JSONField(null=True, blank=True)
    """The local engine's reading of a disputed entity: attribute → value."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "entity"
        verbose_name_plural = "entities"
        db_table = "pass1_entity_detections"
        db_table_comment = "Entities of published encounters, each with its verbatim quote. PHI."
        indexes = [models.Index(fields=["shell_file"], name="idx_pass1_entity_shell")]
        constraints = [
            models.UniqueConstraint(
                fields=["healthcare_encounter", "entity_index"], name="idx_pass1_entity_unique"
            ),
            fields.one_of("pass1_entity_alignment_check", "alignment", AlignmentKind),
            fields.one_of("pass1_entity_status_check", "status", MedicationStatus),
            fields.one_of("pass1_entity_temporality_check", "temporality", Temporality),
            fields.one_of("pass1_entity_certainty_check", "certainty", Certainty),
            fields.one_of("pass1_entity_experiencer_check", "experiencer", Experiencer),
            fields.one_of("pass1_entity_verdict_check", "verdict", ReviewVerdict),
            # A verdict overrules the review flags.
            models.CheckConstraint(
                name="pass1_entity_accepted_check",
                condition=Q(verdict__isnull=True)
                | Q(verdict__in=RESULTS, accepted=True)
                | Q(verdict__in=[ReviewVerdict.REJECTED, ReviewVerdict.DISPUTED], accepted=False),
            ),
            models.CheckConstraint(
                name="pass1_entity_step_check", condition=Q(step__gte=1) | Q(step__isnull=True)
            ),
            models.CheckConstraint(
                name="pass1_entity_span_check",
                condition=Q(page_number__gte=1)
                & (
                    Q(alignment=AlignmentKind.UNALIGNED, accepted=False)
                    | Q(char_start__gte=0, char_end__gt=0)
                ),
            ),
            models.CheckConstraint(
                name="pass1_entity_confidence_check",
                condition=Q(confidence__gte=0, confidence__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.category} on page {self.page_number}"


class EntityMetrics(PassMetrics):
    """The results and the cost of Pass 1 for one record."""

    shell_file = models.OneToOneField(
        ShellFile, on_delete=models.CASCADE, related_name="entity_metrics"
    )
    entities_detected = fields.count()
    rows_not_understood = fields.count()
    """Rows that are published without a value, because a part of the row was not understood."""
    ocr_model_used = fields.text(null=True)
    ocr_pages_processed = fields.count()
    entity_types_found = ArrayField(models.TextField(), default=list, db_default=[])
    encounters_total = fields.count()
    encounters_succeeded = fields.count()
    encounters_failed = fields.count()
    batches_total = fields.count()
    batches_succeeded = fields.count()
    confidence = models.FloatField(null=True, blank=True)
    """Mean of alignment × OCR × engine confidence, over the accepted entities."""
    failure_encounter = models.ForeignKey(
        Encounter, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        verbose_name = "Pass 1 totals"
        verbose_name_plural = "Pass 1 totals"
        db_table = "pass1_entity_metrics"
        db_table_comment = "Totals of Pass 1 for one record."
        constraints = [
            fields.not_negative(
                "pass1_metrics_counts_check",
                "entities_detected",
                "processing_time_ms",
                "encounters_total",
                "encounters_succeeded",
                "encounters_failed",
                "batches_total",
                "batches_succeeded",
                "input_tokens",
                "output_tokens",
                "rows_not_understood",
            ),
        ]

    def __str__(self) -> str:
        return f"Pass 1 metrics of {self.shell_file_id}"
