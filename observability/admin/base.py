"""What every list and page of the admin shares.

Imports Django's admin and the console's rights. A row is looked at, never added, changed or
deleted; a search is for an exact id; columns that hold PHI are neither shown nor read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet, UUIDField
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

from observability.admin.meaning import code_column, meaning
from observability.rights import Right

if TYPE_CHECKING:
    # Django's own class takes no parameter at run time.
    _ModelAdmin = admin.ModelAdmin[Model]
else:
    _ModelAdmin = admin.ModelAdmin

COUNTED = 10_001
"""A list counts no further: a full count of five million rows takes a third of a second, one that
stops here two milliseconds (`design.md` §9)."""


# Django's own class takes no parameter at run time.
class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts rows up to a cap; a longer list is narrowed by a filter, not leafed through."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, at most `COUNTED`."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return int(rows.order_by()[:COUNTED].count())
        return len(rows)


def _is_id(field: Any) -> bool:
    key = field.related_model._meta.pk if field.related_model else field
    return isinstance(key, UUIDField)


def _short(name: str) -> Callable[[Model], SafeString | str]:
    """Return a column that shows the beginning of an id."""

    @admin.display(description=name.removesuffix("_id").replace("_", " "), ordering=name)
    def shown(row: Model) -> SafeString | str:
        whole = getattr(row, name)
        if whole is None:
            return "–"
        return format_html('<code title="{}">{}</code>', whole, str(whole)[:8])

    return shown


class ReadOnlyAdmin(_ModelAdmin):
    """A list and a page that show a table's rows and change nothing."""

    phi: ClassVar[tuple[str, ...]] = ()
    """Columns that nobody sees here."""
    heavy: ClassVar[tuple[str, ...]] = ()
    """Columns that are shown on a row's page but not read for the list."""
    id_fields: ClassVar[tuple[str, ...]] = ("pk",)
    """Columns that a search for an id looks in."""

    actions = None
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    search_help_text = "An exact id"
    search_fields = ("pk",)
    right: ClassVar[Right] = Right.VIEW
    """What a user needs to see the table; one right covers all that hold no PHI."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the table in the list of tables to whoever may see it."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Ask for the console's right, not for one of each table."""
        return request.user.has_perm(self.right.permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows are made by the pipeline."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are changed by the pipeline."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are deleted by retention and erasure."""
        return False

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns of the list; an id shows its beginning, and the whole as its title."""
        ids = {field.attname for field in self.model._meta.fields if _is_id(field)}
        return [_short(each) if each in ids else each for each in self.list_display]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """Return every column but those that hold PHI, in the order of the table.

        Behind a code stands what it means.
        """
        names = [f.name for f in self.model._meta.fields if f.name not in self.phi]
        column = code_column(self.model)
        if column is not None:
            names.insert(names.index(column) + 1, "code_meaning")
        return names

    @admin.display(description="what it means")
    def code_meaning(self, row: Model) -> str:
        """Return what the error table says of the row's code."""
        return meaning(row)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """Return the same: all is read-only, status columns, which forms leave out, included."""
        return self.get_fields(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Return the rows without the columns that are not shown."""
        match = request.resolver_match
        is_list = match is not None and str(match.url_name).endswith("_changelist")
        return super().get_queryset(request).defer(*self.phi, *(self.heavy if is_list else ()))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Model], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        """Find rows by an exact id, which an index answers; anything else finds nothing."""
        text = search_term.strip()
        if not text:
            return queryset, False
        try:
            wanted = UUID(text)
        except ValueError:
            return queryset.none(), False
        matches = reduce(or_, (Q(**{name: wanted}) for name in self.id_fields))
        return queryset.filter(matches), False
