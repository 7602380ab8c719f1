"""The entries of one code system in a temporary file, so that memory does not grow with the system.

`StagedEntries` takes the texts of the codes part by part and groups equal texts into entries.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from itertools import count, groupby
from operator import itemgetter
from typing import Any, TypeAlias

from django.db import connection

from pipeline.codes.search.facets import Facets
from pipeline.codes.search.families import Families, FamilyCode, sided_texts
from pipeline.codes.search.words import SearchWord, words

PART = 2_000
"""Rows in memory at a time."""
MAX_TERM = 250
"""Characters of a synonym that the index keeps; longer names are those of chemists."""


Staged: TypeAlias = tuple[list[SearchWord], list[int], list[str]]
"""An entry: its words, the ids of its codes, and the facets of each code."""


class StagedEntries:
    """The entries of one system, in a private file of SQLite that ends with the object.

    Workers may create no temporary tables in PostgreSQL (docs/security.md), so the file does the
    sort. Codes are public, so the file holds no PHI.
    """

    def __init__(self, system_key: str) -> None:
        self._file = sqlite3.connect("")
        self._file.executescript(_TABLE)
        self.words: set[str] = set()
        """The words of all entries."""
        families = Families(_sided(system_key), _tree(system_key))
        number = count()
        for part in parts(_CODES, {"system": system_key, "most": MAX_TERM}):
            self._file.executemany(_ADD, self._rows(families, part, number))

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def distinct(self) -> Iterator[list[SearchWord]]:
        """Yield the words of each entry, in any order."""
        for (key,) in self._file.execute("SELECT DISTINCT key FROM texts"):
            yield _words(key)

    def __iter__(self) -> Iterator[Staged]:
        """Yield the entries in the order in which the system names them first."""
        rows = self._file.execute(_ENTRIES)
        for _, group in groupby(rows, key=itemgetter(0)):
            found: dict[int, str] = {}
            for row in group:
                key = row[1]
                found.setdefault(row[2], row[3])
            yield _words(key), list(found), list(found.values())

    def _rows(
        self, families: Families, part: list[tuple[Any, ...]], number: Iterator[int]
    ) -> Iterator[tuple[int, str, int, str]]:
        keys: dict[str, str] = {}
        for row in map(_code_row, part):
            for text, code_id, facets in families.texts(row):
                if text not in keys:
                    of_text = words(text)
                    keys[text] = _key(of_text)
                    self.words.update(word.text for word in of_text)
                if keys[text]:
                    yield next(number), keys[text], code_id, _written(facets)


def parts(sql: str, params: dict[str, str | int]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a statement in parts, through a cursor of the server."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, params)
        while part := cursor.fetchmany(PART):
            yield part


@lru_cache(maxsize=4_096)
def _written(facets: Facets) -> str:
    """Return facets as a text; a system repeats each combination many times."""
    return str(facets)


def _sided(system_key: str) -> set[str]:
    displays = (display for part in parts(_SIDED, {"system": system_key}) for (display,) in part)
    return sided_texts(displays)


def _tree(system_key: str) -> Iterator[FamilyCode]:
    """Yield every code of a system that has headings, without terms; nothing of another system."""
    for part in parts(_TREE, {"system": system_key}):
        yield from map(_code_row, part)


def _code_row(row: tuple[Any, ...]) -> FamilyCode:
    id_, code, display, parent, billable, kind, specimens, terms = row
    return FamilyCode(
        id=id_,
        code=code,
        display=display,
        parent=parent,
        billable=billable,
        kind=kind,
        terms=tuple(terms),
        specimens=tuple(json.loads(specimens)),
    )


def _key(of_text: list[SearchWord]) -> str:
    """Return words as a text from which `_words` reads the same words; a word has no spaces."""
    return " ".join(
        f"{word.is_negated + 2 * word.is_optional + 4 * word.is_joined}{word.text}"
        for word in of_text
    )


def _words(key: str) -> list[SearchWord]:
    return [
        SearchWord(each[1:], bool(flags & 1), bool(flags & 2), bool(flags & 4))
        for each in key.split(" ")
        for flags in (int(each[0]),)
    ]


_TABLE = "CREATE TABLE texts (n INTEGER PRIMARY KEY, key TEXT, code INTEGER, facets TEXT)"
_ADD = "INSERT INTO texts VALUES (?, ?, ?, ?)"
_ENTRIES = """
SELECT first, key, code, facets
FROM (SELECT min(n) OVER (PARTITION BY key) AS first, n, key, code, facets FROM texts) AS placed
ORDER BY first, n
"""
_SIDED = """
SELECT display FROM codes WHERE system_id = %(system)s AND display ~* '(left|right|bilateral)'
"""
_TREE = """
SELECT c.id, c.code, c.display, c.parent, c.billable, c.kind,
  coalesce(c.properties -> 'specimens', '[]')::text, '{}'::text[]
FROM codes c
WHERE c.system_id = %(system)s AND EXISTS (
  SELECT FROM codes h
  WHERE h.system_id = %(system)s AND (h.billable IS FALSE OR h.kind IN ('chapter', 'section'))
)
ORDER BY c.id
"""
_CODES = """
SELECT c.id, c.code, c.display, c.parent, c.billable, c.kind,
  coalesce(c.properties -> 'specimens', '[]')::text,
  ARRAY(
    SELECT t.text FROM code_terms t
    WHERE t.code_id = c.id AND t.text <> c.display AND length(t.text) <= %(most)s ORDER BY t.id
  )
FROM codes c WHERE c.system_id = %(system)s ORDER BY c.id
"""
