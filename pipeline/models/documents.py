"""Submitted documents: patient, record (shell file), pages, and the cache of extractions."""

from __future__ import annotations

import secrets

from django.db import models

from pipeline.core.states import ShellFileStatus, Step
from pipeline.models import fields


def _new_pseudonym() -> str:
    return f"P-{secrets.token_hex(5).upper()}"


class Patient(models.Model):
    """A patient under a pseudonym; the row holds digests of identifiers, never a name."""

    id = fields.uuid_pk()
    pseudonym = models.TextField(unique=True, default=_new_pseudonym, editable=False)
    reference = fields.text(null=True, unique=True)
    """The caller's own reference (`process --patient-file FILE`)."""
    identity_digests = models.JSONField(default=dict, db_default={})
    """HMAC-SHA256 of the normalised name, birth date and record number, as far as known."""
    created_at = fields.created_at()

    class Meta:
        db_table = "user_profiles"
        db_table_comment = "Patients under a pseudonym. No name, birth date or number in the clear."

    def __str__(self) -> str:
        return f"patient {self.pseudonym}"


class ShellFile(models.Model):
    """One submitted record; its status is the last completed pass, never a failure."""

    id = fields.uuid_pk()
    patient = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="shell_files")
    status = fields.status(ShellFileStatus, ShellFileStatus.UPLOADED)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    media_type = fields.text()
    storage_key = fields.text()
    """Name in the file store, chosen by the server; several records can share the same bytes."""
    original_filename = fields.text(null=True)
    owner = fields.text(default="", db_default="")
    """Who submitted the record: `cli`, or `user:<id>` of the console. Results are reused within one
    owner only; a record without an owner reuses nothing and is no source."""
    forced = fields.flag()
    """Whether the record is extracted again although results could be reused (`--force`)."""
    page_count = fields.optional_count()
    pages_read = fields.count()
    language = fields.text(null=True)
    warnings = models.JSONField(default=list, db_default=[])
    """List of {code, message, pages}; the messages are free of document text."""
    idempotency_key = fields.text(null=True, unique=True)
    supersedes = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="superseded_by"
    )
    created_at = fields.created_at()
    updated_at = models.DateTimeField(auto_now=True, db_default=models.functions.Now())

    class Meta:
        verbose_name = "record"
        verbose_name_plural = "records"
        db_table = "shell_files"
        db_table_comment = (
            "One row per submitted record. status is the last completed pass, never a failure."
        )
        indexes = [
            models.Index(fields=["created_at", "id"], name="idx_shell_files_recent"),
            # The list of an API client's own records.
            models.Index(fields=["owner", "-created_at", "-id"], name="idx_shell_files_owner"),
            models.Index(fields=["sha256"], name="idx_shell_files_sha256"),
            # The sweep of stored files looks up whether a record names a file.
            models.Index(fields=["storage_key"], name="idx_shell_files_storage_key"),
        ]
        constraints = [
            fields.one_of("shell_files_status_check", "status", ShellFileStatus),
            fields.not_negative(
                "shell_files_counts_check", "size_bytes", "page_count", "pages_read"
            ),
        ]

    def __str__(self) -> str:
        return f"record {self.id}"


class PageSource(models.TextChoices):
    """The source of a page's text."""

    TEXT_LAYER = "text_layer"
    OCR = "ocr"
    MIXED = "mixed"
    """The text layer, with words that only OCR could read; these words have a confidence."""
    BLANK = "blank"
    DAMAGED = "damaged"
    """The page could not be read: its text is empty, and a warning reports the damage."""


class Page(models.Model):
    """The text of one page; the offsets of every span and quote refer to `text`."""

    id = models.BigAutoField(primary_key=True)
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="pages", db_index=False
    )
    page_number = models.IntegerField()
    text = models.TextField()
    source = models.TextField(choices=PageSource.choices)
    ocr_confidence = models.FloatField(null=True, blank=True)
    is_blank = fields.flag()
    width = models.FloatField()
    height = models.FloatField()
    rotation = fields.count()
    words = models.JSONField(null=True, blank=True)
    """Words as [start, end, x0, y0, x1, y1, confidence]; boxes are fractions of the page."""
    regions = models.JSONField(default=list, db_default=[])
    """Parts of the page that need a look, as [kind, x0, y0, x1, y1]; the kinds are those of
    `reader.Region`."""
    suspects = models.JSONField(default=list, db_default=[])
    """Parts of the text in which a person checks every entity, as [flag, start, end]."""
    unread_share = models.FloatField(default=0.0, db_default=0.0)
    """Share of the page (0–1) with ink that nothing could read."""
    warnings = models.JSONField(default=list, db_default=[])
    created_at = fields.created_at()

    class Meta:
        db_table = "shell_file_pages"
        db_table_comment = "Text of each page as it was read, with OCR word boxes. PHI."
        constraints = [
            models.UniqueConstraint(fields=["shell_file", "page_number"], name="idx_pages_unique"),
            fields.one_of("pages_source_check", "source", PageSource),
            models.CheckConstraint(
                name="pages_number_check", condition=models.Q(page_number__gte=1)
            ),
            models.CheckConstraint(
                name="pages_unread_share_check",
                condition=models.Q(unread_share__gte=0, unread_share__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"page {self.page_number} of {self.shell_file_id}"


class ProcessedDocument(models.Model):
    """A pass of a record that has completed, with the conditions that its results depend on.

    A record with identical bytes of the same owner reuses the results of the pass, if all
    conditions are equal. A pass that only reused results has no row.
    """

    id = fields.uuid_pk()
    document_hash = models.CharField(max_length=64)
    owner = fields.text(db_default="", default="")
    step = models.TextField(choices=Step.choices)
    engine = fields.text()
    """The provider, with a digest of its address if the address is not the usual one; `reader` for
    the pages."""
    model_version = fields.text()
    """The model that the pass asks for; for the pages the version of the reader."""
    prompt_version = fields.text()
    schema_version = fields.text()
    zones = fields.flag()
    input_mode = fields.text()
    code_table_version = fields.text(db_default="", default="")
    plan = fields.text(db_default="", default="")
    """The settings that decide the sizes of chunks and batches."""
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    """The record that holds the results."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "extraction"
        verbose_name_plural = "extractions"
        db_table = "processed_documents"
        db_table_comment = "The conditions of each completed pass of a record (requirement 39)."
        indexes = [
            models.Index(
                fields=["document_hash", "owner", "step"], name="idx_processed_documents_key"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["shell_file", "step"], name="idx_processed_documents_once"
            ),
            fields.one_of("processed_documents_step_check", "step", Step),
        ]

    def __str__(self) -> str:
        return f"{self.step} of {self.document_hash[:12]}"


class FileSweep(models.Model):
    """One sweep of the stored files. A marker beside the files names the newest sweep."""

    id = fields.uuid_pk()
    files = fields.count()
    """Stored files of records."""
    orphaned_files = fields.count()
    """Files that no record names and that are older than the safe age, before the deletion."""
    orphaned_bytes = models.BigIntegerField(default=0, db_default=0)
    young_files = fields.count()
    """Files that no record names yet: a submission may be about to name them."""
    young_bytes = models.BigIntegerField(default=0, db_default=0)
    deleted_files = fields.count()
    deleted_bytes = models.BigIntegerField(default=0, db_default=0)
    missing_files = fields.count()
    """Records whose stored file does not exist."""
    held = fields.text(null=True)
    """The reason for which the sweep deleted nothing."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "sweep of stored files"
        verbose_name_plural = "sweeps of stored files"
        db_table = "file_sweeps"
        db_table_comment = "Sweeps of stored files: counts of files without a record and deletions."
        indexes = [models.Index(fields=["-created_at"], name="idx_file_sweeps_newest")]

    def __str__(self) -> str:
        return f"sweep {self.id}"
