"""Pass 2 and Pass 3: zone results and the totals of both passes.

No stage writes these tables yet; requirement 15 asks for them. Pass 2 has work items and totals,
and Pass 3 has totals only. Neither pass has a parent table.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.db import models
from django.db.models import Q

from pipeline.core.states import WorkStatus
from pipeline.models import fields
from pipeline.models.documents import ShellFile
from pipeline.models.encounters import Encounter
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
    zone_type = fields.text()
    entities_enriched = fields.optional_count()

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

    def _set_counts(self, counts: Mapping[str, int]) -> None:
        self.entities_enriched = counts["entities_enriched"]


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

    class Meta:
        verbose_name = "Pass 3 totals"
        verbose_name_plural = "Pass 3 totals"
        db_table = "pass3_narrative_metrics"
        db_table_comment = "Totals of Pass 3 for one record."

    def __str__(self) -> str:
        return f"Pass 3 metrics of {self.shell_file_id}"
