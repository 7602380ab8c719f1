"""Patients, records, pages and cached extractions, without names, file names and page texts."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import FileSweep, Page, Patient, ProcessedDocument, ShellFile


@admin.register(Patient)
class PatientAdmin(ReadOnlyAdmin):
    """Pseudonyms."""

    phi = ("reference", "identity_digests")
    list_display = ("pseudonym", "id", "created_at")
    ordering = ("-created_at",)


@admin.register(ShellFile)
class ShellFileAdmin(ReadOnlyAdmin):
    """Records, with their last complete pass."""

    phi = ("original_filename",)
    heavy = ("warnings",)
    list_display = (
        "id",
        "status",
        "patient",
        "page_count",
        "media_type",
        "size_bytes",
        "created_at",
    )
    list_filter = ("status",)
    list_select_related = ("patient",)
    id_fields = ("pk", "patient_id")
    ordering = ("-created_at", "-id")


@admin.register(Page)
class PageAdmin(ReadOnlyAdmin):
    """Pages without their text."""

    phi = ("text", "words")
    heavy = ("warnings", "regions", "suspects")
    list_display = (
        "shell_file_id",
        "page_number",
        "source",
        "ocr_confidence",
        "unread_share",
        "is_blank",
    )
    list_filter = ("source",)
    id_fields = ("shell_file_id",)
    search_help_text = "The exact id of a record"
    ordering = ("-id",)


@admin.register(ProcessedDocument)
class ProcessedDocumentAdmin(ReadOnlyAdmin):
    """The conditions of each completed pass."""

    list_display = (
        "id",
        "shell_file_id",
        "step",
        "engine",
        "model_version",
        "prompt_version",
        "created_at",
    )
    id_fields = ("pk", "shell_file_id")
    ordering = ("-created_at",)


@admin.register(FileSweep)
class FileSweepAdmin(ReadOnlyAdmin):
    """Sweeps of the stored files, with their counts."""

    list_display = (
        "created_at", "files", "orphaned_files", "orphaned_bytes", "young_files", "deleted_files",
        "missing_files", "held",
    )  # fmt: skip
    ordering = ("-created_at",)
