"""The healthcare encounters that were found in a record and published.

Pass 0.5 inserts all rows of a record at once.
"""

from __future__ import annotations

from django.db import models

from pipeline.models import fields
from pipeline.models.documents import Patient, ShellFile


class Encounter(models.Model):
    """One visit, stay or report, with its pages in the record."""

    id = fields.uuid_pk()
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="encounters", db_index=False
    )
    patient = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="encounters")
    encounter_index = models.IntegerField()
    """1-based, in the order of the pages."""
    encounter_type = fields.text()
    facility_name = fields.text(null=True)
    clinician_name = fields.text(null=True)
    encounter_date_start = models.DateField(null=True, blank=True)
    encounter_date_end = models.DateField(null=True, blank=True)
    page_start = models.IntegerField()
    page_end = models.IntegerField()
    page_count = models.IntegerField()
    character_count = models.IntegerField()
    entities_published_at = fields.optional_time()
    """The time at which all batches had succeeded and all entities became visible together."""
    created_at = fields.created_at()

    class Meta:
        db_table = "healthcare_encounters"
        db_table_comment = "Encounters found by Pass 0.5. Pages need not be contiguous; see spans."
        constraints = [
            models.UniqueConstraint(
                fields=["shell_file", "encounter_index"], name="idx_encounters_unique"
            ),
            fields.page_range("encounters_pages_check", "page_start", "page_end"),
            fields.not_negative("encounters_counts_check", "page_count", "character_count"),
        ]

    def __str__(self) -> str:
        return f"encounter {self.encounter_index} of {self.shell_file_id}"
