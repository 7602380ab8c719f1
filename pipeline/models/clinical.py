"""Pass 2 and Pass 3: work items, enriched entities, narrative sentences, and totals.

All enriched entities of an encounter appear in one transaction, and so do all sentences of a
narrative. Neither pass has a parent table.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from pipeline.core.states import WorkStatus
from pipeline.models import fields
from pipeline.models.documents import Patient, ShellFile
from pipeline.models.encounters import Encounter
from pipeline.models.entities import Entity
from pipeline.models.sessions import Session
from pipeline.models.work_item import PassMetrics, WorkItem


class ClinicalMetrics(PassMetrics):
    """The results and the cost of Pass 2 for one record."""

    shell_file = models.OneToOneField(
        ShellFile, on_delete=models.CASCADE, related_name="clinical_metrics"
    )
    encounters_total = fields.count()
    encounters_succeeded = fields.count()
    encounters_failed = fields.count()
    failure_encounter = models.ForeignKey(
        Encounter, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    entities_enriched = fields.count()
    entities_coded = fields.count()
    entities_flagged = fields.count()
    zones_total = fields.count()
    zones_succeeded = fields.count()

    class Meta:
        verbose_name = "Pass 2 totals"
        verbose_name_plural = "Pass 2 totals"
        db_table = "pass2_clinical_metrics"
        db_table_comment = "Totals of Pass 2 for one record."

    def __str__(self) -> str:
        return f"Pass 2 metrics of {self.shell_file_id}"


class ZoneResult(WorkItem):
    """One zone of one encounter in Pass 2."""

    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, related_name="zone_results", db_index=False
    )
    processing_session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    zone_index = models.IntegerField()
    """0-based, in the order of the text within the encounter."""
    zone_type = fields.text()
    """`batch` where the record has no zones."""
    entity_ids = ArrayField(models.UUIDField(), default=list, db_default=[])
    """The entities of the zone, in the order of the text; part `n` of the prompt is key `en`."""
    spans = models.JSONField(default=list, db_default=[])
    """List of [page, start, end]: the text that the prompt shows."""
    estimated_input_tokens = fields.count()
    entities_enriched = fields.optional_count()
    attributes_rejected = fields.optional_count()
    """Answers of the replies that named no entity of their question, or that contradicted."""

    class Meta:
        db_table = "pass2_zone_results"
        db_table_comment = "Per-zone results of Pass 2: attempts, tokens, errors."
        indexes = [
            models.Index(
                fields=["started_at"],
                name="idx_pass2_zone_stale",
                condition=Q(status=WorkStatus.PROCESSING),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["healthcare_encounter", "zone_index"], name="idx_pass2_zone_unique"
            ),
            fields.one_of("pass2_zone_status_check", "status", WorkStatus),
            fields.page_range("pass2_zone_pages_check", "page_range_start", "page_range_end"),
        ]

    def __str__(self) -> str:
        return f"zone {self.zone_index} of encounter {self.healthcare_encounter_id}"

    @property
    def encounter_id(self) -> UUID | None:
        """The encounter that a failure of this zone names."""
        encounter_id: UUID = self.healthcare_encounter_id
        return encounter_id

    @property
    def number_in_encounter(self) -> int | None:
        """The 0-based number that a failure of this zone names."""
        number: int = self.zone_index
        return number

    def _set_counts(self, counts: Mapping[str, int]) -> None:
        self.entities_enriched = counts["entities_enriched"]
        self.attributes_rejected = counts["attributes_rejected"]


class EnrichedEntity(models.Model):
    """The structured attributes of one entity, with its code. PHI."""

    id = fields.uuid_pk()
    entity = models.OneToOneField(Entity, on_delete=models.CASCADE, related_name="enriched")
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="enriched_entities", db_index=False
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, related_name="enriched_entities", db_index=False
    )
    zone_result = models.ForeignKey(
        ZoneResult, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    patient = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="+")
    category = fields.text()
    attributes = models.JSONField()
    """The model of the category in `clinical.attributes`."""
    code_system = fields.text(null=True)
    code = fields.text(null=True)
    """One code of the entity's shortlist, or NULL."""
    code_display = fields.text(null=True)
    flags = models.JSONField(default=list, db_default=[])
    """Reasons for a review (`clinical.enrichment_flags`)."""
    second_reading = models.JSONField(null=True, blank=True)
    """The local engine's reading of disputed attributes: attribute → value."""
    engine = fields.text()
    created_at = fields.created_at()

    class Meta:
        verbose_name = "enriched entity"
        verbose_name_plural = "enriched entities"
        db_table = "pass2_enriched_entities"
        db_table_comment = "Structured attributes and code of each entity (Pass 2). PHI."
        indexes = [
            models.Index(fields=["shell_file"], name="idx_pass2_enriched_shell"),
            models.Index(fields=["healthcare_encounter"], name="idx_pass2_enriched_encounter"),
        ]
        constraints = [
            models.CheckConstraint(
                name="pass2_enriched_code_check",
                condition=Q(code__isnull=True, code_system__isnull=True)
                | Q(code__isnull=False, code_system__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"attributes of entity {self.entity_id}"


class RecordListKind(models.TextChoices):
    """The lists of a record across its encounters."""

    PROBLEM = "problem"
    MEDICATION = "medication"
    ALLERGY = "allergy"
    LAB_SERIES = "lab_series"


class RecordListItem(models.Model):
    """One entry of a list across encounters: a problem, medication, allergy or lab series. PHI."""

    id = fields.uuid_pk()
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="list_items", db_index=False
    )
    patient = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="+")
    kind = models.TextField(choices=RecordListKind.choices)
    item_index = models.IntegerField()
    """0-based within the kind."""
    name = models.TextField()
    code_system = fields.text(null=True)
    code = fields.text(null=True)
    summary = models.JSONField()
    """What the entry says, by kind (`clinical.record_lists`)."""
    entity_ids = ArrayField(models.UUIDField())
    """Every entity that supports the entry."""
    encounter_ids = ArrayField(models.UUIDField())
    """Every encounter that supports the entry."""
    contradictions = models.JSONField(default=list, db_default=[])
    """Statements that exclude each other, as [{kind, message, entity_ids}]; never resolved."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "list entry"
        verbose_name_plural = "list entries"
        db_table = "record_list_items"
        db_table_comment = "Problems, medications, allergies and lab series of a record. PHI."
        constraints = [
            models.UniqueConstraint(
                fields=["shell_file", "kind", "item_index"], name="idx_record_list_unique"
            ),
            fields.one_of("record_list_kind_check", "kind", RecordListKind),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.item_index} of {self.shell_file_id}"


class NarrativeResult(WorkItem):
    """The narrative of one encounter, or of the whole record, in Pass 3."""

    healthcare_encounter = models.ForeignKey(
        Encounter,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="narratives",
        db_index=False,
    )
    """None for the narrative of the whole record."""
    processing_session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="narratives"
    )
    narrative_index = models.IntegerField()
    """0-based: the encounters in order, then the record."""
    entity_ids = ArrayField(models.UUIDField(), default=list, db_default=[])
    """The entities that the narrative may cite, in order; part `n` of the prompt is key `en`."""
    estimated_input_tokens = fields.count()
    sentences_supported = fields.optional_count()
    sentences_unsupported = fields.optional_count()

    class Meta:
        verbose_name = "narrative"
        verbose_name_plural = "narratives"
        db_table = "pass3_narrative_results"
        db_table_comment = "Per-narrative results of Pass 3: attempts, tokens, errors."
        indexes = [
            models.Index(
                fields=["started_at"],
                name="idx_pass3_narrative_stale",
                condition=Q(status=WorkStatus.PROCESSING),
            ),
            models.Index(fields=["healthcare_encounter"], name="idx_pass3_narrative_encounter"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["processing_session", "narrative_index"], name="idx_pass3_narrative_unique"
            ),
            fields.one_of("pass3_narrative_status_check", "status", WorkStatus),
            fields.page_range("pass3_narrative_pages_check", "page_range_start", "page_range_end"),
        ]

    def __str__(self) -> str:
        return f"narrative {self.narrative_index} of session {self.processing_session_id}"

    @property
    def encounter_id(self) -> UUID | None:
        """The encounter that a failure of this narrative names; None for the record's narrative."""
        encounter_id: UUID | None = self.healthcare_encounter_id
        return encounter_id

    def _set_counts(self, counts: Mapping[str, int]) -> None:
        self.sentences_supported = counts["sentences_supported"]
        self.sentences_unsupported = counts["sentences_unsupported"]


class NarrativeSentence(models.Model):
    """One sentence of a narrative, with the entities that it cites. PHI."""

    id = fields.uuid_pk()
    narrative = models.ForeignKey(
        NarrativeResult, on_delete=models.CASCADE, related_name="sentences", db_index=False
    )
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="narrative_sentences", db_index=False
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    """None for a sentence about the whole record."""
    sentence_index = models.IntegerField()
    """0-based within the narrative."""
    text = models.TextField()
    entity_ids = ArrayField(models.UUIDField())
    """The cited entities."""
    supported = fields.flag()
    """Whether the cited entities state everything in the sentence; only such a sentence is shown
    as part of the summary."""
    reasons = models.JSONField(default=list, db_default=[])
    """Why the sentence is not supported, as `code:word` (`clinical.narrative`)."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "sentence"
        verbose_name_plural = "sentences"
        db_table = "pass3_narrative_sentences"
        db_table_comment = "Sentences of the narratives (Pass 3), each with its entities. PHI."
        indexes = [models.Index(fields=["shell_file"], name="idx_pass3_sentence_shell")]
        constraints = [
            models.UniqueConstraint(
                fields=["narrative", "sentence_index"], name="idx_pass3_sentence_unique"
            ),
            # A sentence without a source supports nothing.
            models.CheckConstraint(
                name="pass3_sentence_cites_check",
                condition=Q(supported=False) | ~Q(entity_ids=[]),
            ),
        ]

    def __str__(self) -> str:
        return f"sentence {self.sentence_index} of narrative {self.narrative_id}"


class NarrativeMetrics(PassMetrics):
    """The results and the cost of Pass 3 for one record."""

    shell_file = models.OneToOneField(
        ShellFile, on_delete=models.CASCADE, related_name="narrative_metrics"
    )
    encounters_total = fields.count()
    encounters_succeeded = fields.count()
    encounters_failed = fields.count()
    failure_encounter = models.ForeignKey(
        Encounter, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    narratives_written = fields.count()
    sentences_supported = fields.count()
    sentences_unsupported = fields.count()

    class Meta:
        verbose_name = "Pass 3 totals"
        verbose_name_plural = "Pass 3 totals"
        db_table = "pass3_narrative_metrics"
        db_table_comment = "Totals of Pass 3 for one record."

    def __str__(self) -> str:
        return f"Pass 3 metrics of {self.shell_file_id}"
