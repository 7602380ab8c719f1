"""The shared parts of every list and page of the admin.

No row can be added, changed or deleted. A search finds exact ids only. No query reads a PHI column,
shows a PHI column or filters by a PHI column.
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
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

from medproc.reading import reading
from observability.admin.code_advice import code_column, meaning
from observability.permissions import Right

if TYPE_CHECKING:
    # Django's own class takes no parameter at run time.
    _ModelAdmin = admin.ModelAdmin[Model]
else:
    _ModelAdmin = admin.ModelAdmin

COUNTED = 10_001
"""The limit of a row count. A full count of five million rows takes a third of a second; a count up
to this limit takes two milliseconds (measured).
"""
OF_THE_SENDER = ("user_agent", "ip_address", "idempotency_key", "storage_key")
"""Columns about the sender of a record and its storage; they need the right to read PHI."""


_YES_OR_NO = (("1", "yes"), ("0", "no"))
"""The values that the filter of a column without choices sends."""


# Django's own class takes no parameter at run time.
class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts rows up to a limit; users narrow a longer list with a filter."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, at most `COUNTED`."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return int(rows.order_by().values("pk")[:COUNTED].count())
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
    """A list and a page that show the rows of a table and change nothing."""

    phi: ClassVar[tuple[str, ...]] = ()
    """Columns that the admin never shows."""
    heavy: ClassVar[tuple[str, ...]] = ()
    """Columns that the page of a row shows and that the list does not read."""
    id_fields: ClassVar[tuple[str, ...]] = ("pk",)
    """Columns that a search by id covers."""

    actions = None
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    search_help_text = "An exact id"
    search_fields = ("pk",)
    right: ClassVar[Right] = Right.VIEW
    """The right to see the table; one right covers all tables without PHI."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether the list of tables shows this table to the user."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether the user has the right of the console; there is no right for one table."""
        return request.user.has_perm(self.right.permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False, because only the pipeline adds rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False, because only the pipeline changes rows."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False, because only retention and erasure delete rows."""
        return False

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns of the list; an id shows its first digits."""
        ids = {field.attname for field in self.model._meta.fields if _is_id(field)}
        return [_short(each) if each in ids else each for each in self.list_display]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """Return all columns without PHI in the order of the table.

        The advice for a code follows its column.
        """
        hidden = {*self.phi, *self._hidden_from(request)}
        names = [f.name for f in self.model._meta.fields if f.name not in hidden]
        column = code_column(self.model)
        if column is not None:
            names.insert(names.index(column) + 1, "code_meaning")
        return names

    @admin.display(description="what it means")
    def code_meaning(self, row: Model) -> str:
        """Return the advice of the error table for the code of the row."""
        return meaning(row)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """Return all fields as read-only, also the status columns."""
        return self.get_fields(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Return the rows without the columns that are not shown."""
        match = request.resolver_match
        is_list = match is not None and str(match.url_name).endswith("_changelist")
        unread = (*self.heavy, *self._of_the_sender()) if is_list else self._hidden_from(request)
        return super().get_queryset(request).defer(*self.phi, *unread)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the lookups of the list's own filters and no other lookup.

        The stock admin filters by any column and shows the number of matches. This number would
        reveal a hidden column letter by letter.
        """
        name, _, kind = lookup.rpartition("__")
        if name not in self.list_filter:
            return False
        field = self.model._meta.get_field(name)
        if kind == "isnull":
            return field.null and value in {"True", "False"}
        values = {str(each) for each, _ in getattr(field, "flatchoices", None) or _YES_OR_NO}
        return kind == "exact" and value in values

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list in a read-only transaction with a time limit."""
        with reading():
            return _rendered(super().changelist_view(request, extra_context))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row in a read-only transaction with a time limit."""
        with reading():
            return _rendered(super().changeform_view(request, object_id, form_url, extra_context))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show Django's history of a row in a read-only transaction with a time limit."""
        with reading():
            return _rendered(super().history_view(request, object_id, extra_context))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Model], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        """Find rows by an exact id through an index; another text finds no row."""
        text = search_term.strip()
        if not text:
            return queryset, False
        try:
            wanted = UUID(text)
        except ValueError:
            return queryset.none(), False
        matches = reduce(or_, (Q(**{name: wanted}) for name in self.id_fields))
        return queryset.filter(matches), False

    def _hidden_from(self, request: HttpRequest) -> tuple[str, ...]:
        may = request.user.has_perm(Right.READ_PHI.permission)
        return () if may else self._of_the_sender()

    def _of_the_sender(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.model._meta.fields if f.name in OF_THE_SENDER)


def _rendered(response: HttpResponse) -> HttpResponse:
    """Render a page at once, because rendering also reads from the database."""
    return response.render() if isinstance(response, TemplateResponse) else response
