"""The Excludes1 notes of ICD-10-CM codes, with the notes of their parents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db import connection

from pipeline.models.codes import SystemKey

_NOTES = """
WITH RECURSIVE ancestors (origin, parent, notes) AS (
    SELECT code, parent, properties -> 'excludes1_codes'
    FROM codes
    WHERE system_id = %(system)s AND code = ANY (%(codes)s)
    UNION ALL
    SELECT ancestors.origin, codes.parent, codes.properties -> 'excludes1_codes'
    FROM ancestors
    JOIN codes ON codes.system_id = %(system)s AND codes.code = ancestors.parent
)
SELECT origin, jsonb_array_elements_text(notes)
FROM ancestors
WHERE jsonb_typeof(notes) = 'array'
"""


def excludes1_notes(codes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return code → the codes, prefixes and ranges that the code excludes. Runs one statement.

    A code without notes, or a code that is not loaded, has no entry.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(_NOTES, {"system": SystemKey.ICD10CM.value, "codes": sorted(set(codes))})
        for code, note in cursor:
            found[code].add(note)
    return {code: tuple(sorted(notes)) for code, notes in found.items()}
