"""Code systems and their codes, as `load_codes` has loaded them."""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from observability.admin.base import ReadOnlyAdmin
from pipeline.models import Code, CodeEntry, CodeSystem, CodeTerm, CodeVector, CodeWord
from pipeline.models.codes import SystemKey

LONGEST_NUMBER = 18
"""Digits of a number that fits into the column."""


@admin.register(CodeSystem)
class CodeSystemAdmin(ReadOnlyAdmin):
    """The loaded systems with version, source and licence."""

    list_display = (
        "key", "version", "source", "licence", "code_count", "term_count", "loaded_at",
    )  # fmt: skip
    search_help_text = "The exact key of a system, such as ICD10CM"
    ordering = ("key",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Model], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        """Find a system by its key."""
        text = search_term.strip().upper()
        return (queryset.filter(pk=text) if text else queryset), False


@admin.register(Code)
class CodeAdmin(ReadOnlyAdmin):
    """The codes of all systems."""

    list_display = ("code", "system_id", "display", "kind", "parent", "billable")
    heavy = ("properties",)
    search_help_text = "An exact code, such as E11.9"
    ordering = ("system_id", "code")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Model], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        """Find an exact code in every system, through the unique index."""
        text = search_term.strip()
        if not text:
            return queryset, False
        # The index begins with the system, so the systems are named.
        return queryset.filter(system_id__in=SystemKey.values, code=text), False


class _NumberedAdmin(ReadOnlyAdmin):
    """A table whose rows have numbers: a search finds an exact number of a named column."""

    number_fields: tuple[str, ...] = ("pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Model], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        """Find rows by a number through an index; another text finds no row."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if not text.isdecimal() or len(text) > LONGEST_NUMBER:
            return queryset.none(), False
        matches = reduce(or_, (Q(**{name: int(text)}) for name in self.number_fields))
        return queryset.filter(matches), False


@admin.register(CodeTerm)
class CodeTermAdmin(_NumberedAdmin):
    """The names of the codes."""

    list_display = ("id", "code_id", "text", "kind")
    number_fields = ("pk", "code_id")
    search_help_text = "The number of a term or of a code's row"
    ordering = ("pk",)


@admin.register(CodeEntry)
class CodeEntryAdmin(_NumberedAdmin):
    """The index of the code search: codes that differ only in facets share an entry."""

    list_display = ("id", "system_id", "weight")
    heavy = ("lexemes", "dimensions", "words", "weights", "codes", "facets")
    search_help_text = "The number of an entry"
    ordering = ("pk",)


@admin.register(CodeWord)
class CodeWordAdmin(_NumberedAdmin):
    """The words of the code search."""

    list_display = ("id", "system_id", "word", "lexeme", "entry_count", "length")
    heavy = ("grams",)
    search_help_text = "The number of a word"
    ordering = ("pk",)


@admin.register(CodeVector)
class CodeVectorAdmin(_NumberedAdmin):
    """The vectors of the optional embedder."""

    list_display = ("id", "model", "created_at")
    phi = ("digest", "vector")
    search_help_text = "The number of a vector"
    ordering = ("pk",)
