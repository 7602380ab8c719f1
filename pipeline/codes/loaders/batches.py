"""Writes rows into the tables in batches, each with one statement.

A code's own row comes before its terms and properties. Terms and properties of a code that the
system does not contain are left out: a source also names retired codes.
"""

from __future__ import annotations

import json
import unicodedata
from collections import defaultdict

from django.db import connection

from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode
from pipeline.codes.loaders.rows import CodeRow, PropertyRow, Row, TermRow
from pipeline.models.codes import SystemKey

BATCH = 5_000
"""Rows of one kind in a statement; at most twice as many are held in memory."""
LONGEST_CODE = 64
LONGEST_TEXT = 5_000

_INSERT_CODES = """
INSERT INTO codes (system_id, code, display, parent, billable, kind, properties)
SELECT %s, given.code, given.display, given.parent, given.billable, given.kind,
  given.properties::jsonb
FROM unnest(%s::text[], %s::text[], %s::text[], %s::boolean[], %s::text[], %s::text[])
  WITH ORDINALITY AS given (code, display, parent, billable, kind, properties, position)
ORDER BY given.position
ON CONFLICT (system_id, code) DO NOTHING
"""
# LIMIT in a lateral query makes the planner look each code up in the index. The statistics of a
# table that is being filled would make the planner read the whole table for each batch.
_OTHER_DISPLAY = """
SELECT given.code, given.display, stored.display
FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (code, display, position)
CROSS JOIN LATERAL (
  SELECT codes.display FROM codes WHERE codes.system_id = %s AND codes.code = given.code LIMIT 1
) AS stored
WHERE stored.display <> given.display
ORDER BY given.position
LIMIT 1
"""
_INSERT_TERMS = """
WITH first_of_each AS (
  SELECT DISTINCT ON (stored.id, lower(given.text)) stored.id, given.text, given.kind,
    given.position
  FROM unnest(%s::text[], %s::text[], %s::text[])
    WITH ORDINALITY AS given (code, text, kind, position)
  CROSS JOIN LATERAL (
    SELECT codes.id, codes.display FROM codes
    WHERE codes.system_id = %s AND codes.code = given.code LIMIT 1
  ) AS stored
  WHERE given.kind = 'display' OR lower(given.text) <> lower(stored.display)
  ORDER BY stored.id, lower(given.text), given.position
)
INSERT INTO code_terms (code_id, text, kind)
SELECT first_of_each.id, first_of_each.text, first_of_each.kind
FROM first_of_each
ORDER BY first_of_each.position
"""
_APPEND = """
WITH given_lists AS (
  SELECT given.code, jsonb_agg(given.value ORDER BY given.position) AS items
  FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (code, value, position)
  GROUP BY given.code
), numbered_lists AS (
  SELECT stored.id, given_lists.items
  FROM given_lists
  CROSS JOIN LATERAL (
    SELECT codes.id FROM codes
    WHERE codes.system_id = %s AND codes.code = given_lists.code LIMIT 1
  ) AS stored
)
UPDATE codes AS changed
SET properties = changed.properties || jsonb_build_object(
  %s::text, coalesce(changed.properties -> %s::text, '[]') || numbered_lists.items
)
FROM numbered_lists
WHERE changed.id = numbered_lists.id
"""
_FIRST_PARENT = """
UPDATE codes SET parent = properties -> 'parents' ->> 0
WHERE system_id = %s AND parent IS NULL AND properties ? 'parents'
"""


class Batches:
    """Collects the rows of one system and writes them."""

    def __init__(self, system: SystemKey, *, has_second_displays: bool) -> None:
        self._system = system
        self._has_second_displays = has_second_displays
        self._codes: list[CodeRow] = []
        self._terms: list[TermRow] = []
        self._properties: dict[str, list[PropertyRow]] = defaultdict(list)
        self._code_count = self._term_count = 0

    def add(self, row: Row) -> None:
        """Check a row and write the batch that the row completes."""
        match row:
            case CodeRow():
                _check_code(row.code)
                _check_text(row.code, row.display)
                # A batch ends between two codes, so that one statement sees all names of a code.
                if len(self._terms) >= BATCH:
                    self._write()
                self._codes.append(row)
                self._terms.append(TermRow(code=row.code, text=row.display, kind="display"))
            case TermRow():
                _check_text(row.code, row.text)
                self._terms.append(row)
            case PropertyRow():
                _check_text(row.code, row.value)
                self._properties[row.name].append(row)
                if len(self._properties[row.name]) >= BATCH:
                    self._write()
        if len(self._terms) >= 2 * BATCH:
            self._write()

    def finish(self) -> tuple[int, int]:
        """Write the last batches and return the number of codes and of terms."""
        self._write()
        with connection.cursor() as cursor:
            cursor.execute(_FIRST_PARENT, [self._system])
        return self._code_count, self._term_count

    def _write(self) -> None:
        with connection.cursor() as cursor:
            if self._codes:
                self._write_codes()
            if self._terms:
                terms = self._terms
                columns = [
                    [t.code for t in terms],
                    [t.text for t in terms],
                    [t.kind for t in terms],
                ]
                cursor.execute(_INSERT_TERMS, [*columns, self._system])
                self._term_count += cursor.rowcount
                self._terms = []
            for name, rows in self._properties.items():
                columns = [[row.code for row in rows], [row.value for row in rows]]
                cursor.execute(_APPEND, [*columns, self._system, name, name])
            self._properties.clear()

    def _write_codes(self) -> None:
        rows, self._codes = self._codes, []
        codes, displays = [row.code for row in rows], [row.display for row in rows]
        with connection.cursor() as cursor:
            cursor.execute(
                _INSERT_CODES,
                [
                    self._system,
                    codes,
                    displays,
                    [row.parent for row in rows],
                    [row.billable for row in rows],
                    [row.kind for row in rows],
                    [json.dumps(dict(row.properties)) for row in rows],
                ],
            )
            self._code_count += cursor.rowcount
            if cursor.rowcount == len(rows) or self._has_second_displays:
                return
            cursor.execute(_OTHER_DISPLAY, [codes, displays, self._system])
            other = cursor.fetchone()
        if other is not None:
            raise CodesError(
                f"Code {other[0]} occurs twice, as {other[2]!r} and as {other[1]!r}.",
                code=CodesErrorCode.CODES_DUPLICATE,
            )


def _check_code(code: str) -> None:
    if not code or len(code) > LONGEST_CODE or not code.isprintable() or code != code.strip():
        raise CodesError(
            f"The code {code[:LONGEST_CODE]!r} is empty, longer than {LONGEST_CODE} characters or"
            " not printable.",
            code=CodesErrorCode.CODES_ROW,
        )


def _check_text(code: str, text: str) -> None:
    if not text.strip() or len(text) > LONGEST_TEXT:
        raise CodesError(
            f"A name of code {code} is empty or longer than {LONGEST_TEXT} characters.",
            code=CodesErrorCode.CODES_ROW,
        )
    if not text.isprintable() and any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise CodesError(
            f"A name of code {code} holds a control character.", code=CodesErrorCode.CODES_ROW
        )
