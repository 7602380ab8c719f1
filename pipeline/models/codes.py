"""Code systems with their codes and terms, and the candidate codes of entities.

One load of a system replaces the system's codes in one transaction. Candidates hold the code's
text, not a foreign key, so that a new load never changes the results of a record.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from pipeline.models import fields
from pipeline.models.documents import ShellFile
from pipeline.models.encounters import Encounter
from pipeline.models.entities import Entity


class SystemKey(models.TextChoices):
    """The code systems that medproc can load."""

    ICD10CM = "ICD10CM", "ICD-10-CM"
    UNII = "UNII", "FDA UNII"
    LOINC = "LOINC", "LOINC"
    RXNORM = "RXNORM", "RxNorm"
    SNOMEDCT = "SNOMEDCT", "SNOMED CT"
    CVX = "CVX", "CVX"


class CodeSystem(models.Model):
    """One loaded code system, with its source."""

    key = models.TextField(primary_key=True, choices=SystemKey.choices)
    version = models.TextField()
    source = models.TextField()
    """Name of the package or file that the codes come from."""
    licence = models.TextField()
    digest = models.CharField(max_length=64)
    """SHA-256 of the loaded content; part of the code-table version."""
    code_count = fields.count()
    term_count = fields.count()
    index_revision = fields.count()
    """`codes.search.index.REVISION` at which the search index was filled; 0 without an index."""
    loaded_at = models.DateTimeField(db_default=models.functions.Now())

    class Meta:
        verbose_name = "code system"
        verbose_name_plural = "code systems"
        db_table = "code_systems"
        db_table_comment = "Loaded code systems with version, source and licence."
        constraints = [fields.one_of("code_systems_key_check", "key", SystemKey)]

    def __str__(self) -> str:
        return f"{self.key} {self.version}"


class Code(models.Model):
    """One code of a system."""

    id = models.BigAutoField(primary_key=True)
    system = models.ForeignKey(
        CodeSystem, on_delete=models.CASCADE, related_name="codes", db_index=False
    )
    code = models.TextField()
    display = models.TextField()
    parent = fields.text(null=True)
    """Code of the parent in the same system."""
    billable = models.BooleanField(null=True, blank=True)
    """Whether the code is valid for billing; None where the system has no billing."""
    kind = fields.text(default="", db_default="")
    """The system's own kind of concept (`chapter`, `IN`, `SCD`, `of`, `finding` …)."""
    properties = models.JSONField(default=dict, db_default={})
    """Facts of the source that the search or the units use."""

    class Meta:
        db_table = "codes"
        db_table_comment = "Codes of the loaded code systems."
        constraints = [
            models.UniqueConstraint(fields=["system", "code"], name="idx_codes_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.system_id}|{self.code}"


class CodeTerm(models.Model):
    """One term of a code: its display, an inclusion term or a synonym."""

    id = models.BigAutoField(primary_key=True)
    code = models.ForeignKey(Code, on_delete=models.CASCADE, related_name="terms")
    text = models.TextField()
    kind = fields.text(default="display", db_default="display")
    """`display`, `inclusion`, `synonym`, `brand` …"""

    class Meta:
        db_table = "code_terms"
        db_table_comment = "Terms of codes, as the search finds them."

    def __str__(self) -> str:
        return f"term of {self.code_id}"


class CodeCandidate(models.Model):
    """One code of the shortlist of an entity (Pass 1.5)."""

    id = models.BigAutoField(primary_key=True)
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    entity = models.ForeignKey(
        Entity, on_delete=models.CASCADE, related_name="candidates", db_index=False
    )
    rank = models.IntegerField()
    """1-based; the best candidate has rank 1."""
    system = models.TextField(choices=SystemKey.choices)
    system_version = models.TextField()
    search_version = fields.text(default="", db_default="")
    """The search that made the list: the revision of its index, and its embedder."""
    code = models.TextField()
    display = models.TextField()
    score = models.FloatField()
    """0 to 1."""
    reason = models.TextField()
    """Why the search offers the code; free of document text."""
    term = fields.text(default="", db_default="")
    """The source's own term that fits the text best; empty if no term fits better than the
    display."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "candidate code"
        verbose_name_plural = "candidate codes"
        db_table = "pass1_5_code_candidates"
        db_table_comment = "Ranked candidate codes of each entity (Pass 1.5)."
        indexes = [
            models.Index(fields=["shell_file"], name="idx_pass1_5_candidate_shell"),
            models.Index(fields=["healthcare_encounter"], name="idx_pass1_5_candidate_enc"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["entity", "rank"], name="idx_pass1_5_candidate_unique"),
            fields.one_of("pass1_5_candidate_system_check", "system", SystemKey),
            models.CheckConstraint(
                name="pass1_5_candidate_check",
                condition=Q(rank__gte=1) & Q(score__gte=0, score__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.system}|{self.code} for {self.entity_id}"
