"""The column of a list that states whether the record of a row is incomplete (requirement 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import (
    BooleanField,
    Count,
    ExpressionWrapper,
    F,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
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
        """Return the rows, each with a flag: its record has, and lacks, published encounters."""
        # Two EXISTS would say the same. PostgreSQL then reads all encounters of the installation
        # into a hash table; an aggregate is looked up for each row that the page shows.
        is_partly = Q(published__gt=0, published__lt=F("every"))
        published, every = Count("entities_published_at"), Count("id")
        of_record = (
            Encounter.objects.filter(shell_file_id=OuterRef("shell_file_id"))
            .order_by()
            .values("shell_file_id")
            .annotate(published=published, every=every)
            .values_list(ExpressionWrapper(is_partly, output_field=BooleanField()))
        )
        rows: QuerySet[Model] = super().get_queryset(request)
        annotated: QuerySet[Model] = rows.annotate(
            is_partly=Subquery(of_record, output_field=BooleanField())
        )
        return annotated

    @admin.display(description="record")
    def record_incomplete(self, row: Model) -> str:
        """Return `record incomplete` if only a part of the record's encounters is published."""
        return "record incomplete" if getattr(row, "is_partly", False) else "–"
