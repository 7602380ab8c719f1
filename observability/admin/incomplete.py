"""The column of a list that states whether the record of a row is incomplete (requirement 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest

from pipeline.models import Encounter

if TYPE_CHECKING:
    from observability.admin.base import ReadOnlyAdmin as _Admin
else:
    _Admin = object


class StatesIncompleteRecord(_Admin):
    """Adds the column to the list and to the page of a table with a column `shell_file`."""

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns of the list, and the statement about the record."""
        return [*super().get_list_display(request), "record_incomplete"]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """Return the columns of the page, and the statement about the record first."""
        return ["record_incomplete", *super().get_fields(request, obj)]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Return the rows, each with two flags: its record has, and lacks, published encounters."""
        of_record = Encounter.objects.filter(shell_file_id=OuterRef("shell_file_id"))
        rows: QuerySet[Model] = super().get_queryset(request)
        annotated: QuerySet[Model] = rows.annotate(
            lacks=Exists(of_record.filter(entities_published_at=None)),
            has=Exists(of_record.filter(entities_published_at__isnull=False)),
        )
        return annotated

    @admin.display(description="record")
    def record_incomplete(self, row: Model) -> str:
        """Return `record incomplete` if only a part of the record's encounters is published."""
        is_partly = getattr(row, "has", False) and getattr(row, "lacks", False)
        return "record incomplete" if is_partly else "–"
