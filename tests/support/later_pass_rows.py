"""The rows of Passes 1.5 to 3 as proofs need them: partly visible, in the wrong place, compared.

The statements read the tables and not the pipeline's own selectors, which are under test too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import connection

PARTIAL = """
SELECT count(*) FROM (
  SELECT 1 FROM pass2_enriched_entities e
  GROUP BY e.healthcare_encounter_id
  HAVING count(*) <> (
      SELECT count(*) FROM pass1_entity_detections d
      WHERE d.healthcare_encounter_id = e.healthcare_encounter_id)
    OR EXISTS (
      SELECT 1 FROM pass2_zone_results z
      WHERE z.healthcare_encounter_id = e.healthcare_encounter_id
        AND (z.status <> 'succeeded' OR z.output IS NOT NULL))
  UNION ALL
  SELECT 1 FROM pass3_narrative_sentences s
  JOIN pass3_narrative_results n ON n.id = s.narrative_id
  GROUP BY n.id
  HAVING n.status <> 'succeeded' OR n.output IS NOT NULL
    OR count(*) <> n.sentences_supported + n.sentences_unsupported
) partly_visible
"""
"""Encounters of which some entities are enriched, and narratives of which some sentences exist."""

MISPLACED: dict[str, str] = {
    "candidates of an entity of another record or encounter": """
        SELECT count(*) FROM pass1_5_code_candidates c JOIN pass1_entity_detections d
          ON d.id = c.entity_id
        WHERE c.shell_file_id = ANY(%(files)s) AND (c.shell_file_id <> d.shell_file_id
          OR c.healthcare_encounter_id <> d.healthcare_encounter_id)""",
    "enriched entities of another record, encounter, patient, category or zone": """
        SELECT count(*) FROM pass2_enriched_entities e
        JOIN pass1_entity_detections d ON d.id = e.entity_id
        JOIN shell_files f ON f.id = e.shell_file_id
        LEFT JOIN pass2_zone_results z ON z.id = e.zone_result_id
        WHERE (e.shell_file_id = ANY(%(files)s) OR d.shell_file_id = ANY(%(files)s))
          AND (e.shell_file_id <> d.shell_file_id OR e.patient_id <> f.patient_id
            OR e.healthcare_encounter_id <> d.healthcare_encounter_id OR e.category <> d.category
            OR z.id IS NULL OR z.healthcare_encounter_id <> e.healthcare_encounter_id
            OR NOT d.id = ANY(z.entity_ids))""",
    "codes outside the shortlist of their entity": """
        SELECT count(*) FROM pass2_enriched_entities e
        WHERE e.shell_file_id = ANY(%(files)s) AND e.code IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM pass1_5_code_candidates c
          WHERE c.entity_id = e.entity_id AND c.system = e.code_system AND c.code = e.code)""",
    "entities in no zone, in two zones, or in the zone of another encounter": """
        SELECT count(*) FROM (
          SELECT d.id FROM pass1_entity_detections d
          LEFT JOIN (
            SELECT z.healthcare_encounter_id, unnest(z.entity_ids) AS entity_id
            FROM pass2_zone_results z) asked ON asked.entity_id = d.id
          WHERE d.shell_file_id = ANY(%(files)s) AND EXISTS (
            SELECT 1 FROM pass2_zone_results z
            WHERE z.healthcare_encounter_id = d.healthcare_encounter_id)
          GROUP BY d.id, d.healthcare_encounter_id
          HAVING count(asked.entity_id) <> 1
            OR bool_or(asked.healthcare_encounter_id <> d.healthcare_encounter_id)) wrong""",
    "sentences that cite an entity outside their narrative, encounter or record": """
        SELECT count(*) FROM pass3_narrative_sentences s
        JOIN pass3_narrative_results n ON n.id = s.narrative_id
        JOIN ai_processing_sessions a ON a.id = n.processing_session_id
        WHERE s.shell_file_id = ANY(%(files)s) AND (NOT s.entity_ids <@ n.entity_ids
          OR a.shell_file_id <> s.shell_file_id
          OR s.healthcare_encounter_id IS DISTINCT FROM n.healthcare_encounter_id
          OR EXISTS (
            SELECT 1 FROM unnest(s.entity_ids) cited
            LEFT JOIN pass1_entity_detections d ON d.id = cited
            WHERE d.id IS NULL OR d.shell_file_id <> s.shell_file_id
              OR d.healthcare_encounter_id
                 <> COALESCE(s.healthcare_encounter_id, d.healthcare_encounter_id)))""",
    "list entries with an entity or encounter of another record": """
        SELECT count(*) FROM record_list_items i JOIN shell_files f ON f.id = i.shell_file_id
        WHERE i.shell_file_id = ANY(%(files)s) AND (i.patient_id <> f.patient_id
          OR EXISTS (
            SELECT 1 FROM unnest(i.entity_ids) listed
            LEFT JOIN pass1_entity_detections d ON d.id = listed
            WHERE d.id IS NULL OR d.shell_file_id <> i.shell_file_id
              OR NOT d.healthcare_encounter_id = ANY(i.encounter_ids))
          OR EXISTS (
            SELECT 1 FROM unnest(i.encounter_ids) listed
            LEFT JOIN healthcare_encounters h ON h.id = listed
            WHERE h.id IS NULL OR h.shell_file_id <> i.shell_file_id))""",
    "accepted calls of one zone or narrative, or of one split, beyond the first": """
        SELECT count(*) FROM (
          SELECT 1 FROM provider_calls p
          JOIN ai_processing_sessions a ON a.id = p.processing_session_id
          WHERE a.shell_file_id = ANY(%(files)s) AND p.accepted AND p.step IN ('pass2', 'pass3')
          GROUP BY p.work_item_id, p.split HAVING count(*) > 1) doubled""",
    "succeeded zones and narratives without an accepted call": """
        SELECT count(*) FROM (
          SELECT id, processing_session_id, status FROM pass2_zone_results
          UNION ALL SELECT id, processing_session_id, status FROM pass3_narrative_results) item
        JOIN ai_processing_sessions a ON a.id = item.processing_session_id
        WHERE a.shell_file_id = ANY(%(files)s) AND item.status = 'succeeded' AND NOT EXISTS (
          SELECT 1 FROM provider_calls p WHERE p.work_item_id = item.id AND p.accepted)""",
    "reviews too many or too few": """
        SELECT count(*) FROM job_queue j WHERE j.shell_file_id = ANY(%(files)s)
          AND (SELECT count(*) FROM review_items r WHERE r.shell_file_id = j.shell_file_id)
            <> (j.status IN ('completed', 'failed', 'dead', 'cancelled'))::int""",
    "ended jobs that still hold the place of their file": """
        SELECT count(*) FROM extraction_flights e JOIN job_queue j ON j.id = e.job_id
        WHERE j.shell_file_id = ANY(%(files)s)
          AND j.status IN ('completed', 'failed', 'dead', 'cancelled')""",
    "passes of completed records that no later record can reuse": """
        SELECT count(*) FROM job_queue j JOIN shell_files f ON f.id = j.shell_file_id
        CROSS JOIN unnest(ARRAY['pages', 'pass05', 'pass1', 'pass2', 'pass3']) AS pass (step)
        WHERE f.id = ANY(%(files)s) AND j.status = 'completed' AND f.owner <> '' AND NOT EXISTS (
            SELECT 1 FROM record_reuses r WHERE r.shell_file_id = f.id)
          AND NOT EXISTS (
            SELECT 1 FROM processed_documents p WHERE p.shell_file_id = f.id AND p.step = pass.step)
        """,
    "succeeded items of an owner without a kept reply": """
        SELECT count(*) FROM (
          SELECT id, processing_session_id, status FROM pass1_batch_results
          UNION ALL SELECT id, processing_session_id, status FROM pass2_zone_results
          UNION ALL SELECT id, processing_session_id, status FROM pass3_narrative_results) item
        JOIN ai_processing_sessions a ON a.id = item.processing_session_id
        JOIN shell_files f ON f.id = a.shell_file_id
        WHERE f.id = ANY(%(files)s) AND item.status = 'succeeded' AND f.owner <> '' AND NOT EXISTS (
            SELECT 1 FROM record_reuses r WHERE r.shell_file_id = f.id)
          AND NOT EXISTS (SELECT 1 FROM kept_replies k WHERE k.work_item_id = item.id)""",
}
"""What must not be there, each with a statement that counts it for some records."""

CODED = """
SELECT h.encounter_index, d.page_number, d.char_start, d.name, c.rank, c.system, c.code, c.score
FROM pass1_5_code_candidates c JOIN healthcare_encounters h ON h.id = c.healthcare_encounter_id
JOIN pass1_entity_detections d ON d.id = c.entity_id WHERE c.shell_file_id = %s
"""
ENRICHED = """
SELECT h.encounter_index, d.page_number, d.char_start, d.name, e.category, e.attributes::text,
  e.code_system, e.code, e.flags::text, e.second_reading::text
FROM pass2_enriched_entities e JOIN healthcare_encounters h ON h.id = e.healthcare_encounter_id
JOIN pass1_entity_detections d ON d.id = e.entity_id WHERE e.shell_file_id = %s
"""
TOLD = """
SELECT COALESCE(h.encounter_index, 0), s.sentence_index, s.text, s.supported, s.reasons::text,
  s.entity_ids::text
FROM pass3_narrative_sentences s LEFT JOIN healthcare_encounters h
  ON h.id = s.healthcare_encounter_id WHERE s.shell_file_id = %s
"""
LISTED = """
SELECT 0, kind, item_index, name, code_system, code, summary::text, entity_ids::text,
  encounter_ids::text, contradictions::text
FROM record_list_items WHERE shell_file_id = %s
"""
_NAMED = """
SELECT d.id, concat_ws(' ', d.page_number, d.char_start, d.category, d.name, d.entity_index)
FROM pass1_entity_detections d WHERE d.shell_file_id = %(file)s
UNION ALL SELECT h.id, 'encounter ' || h.encounter_index FROM healthcare_encounters h
WHERE h.shell_file_id = %(file)s
"""
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def partly_visible() -> int:
    """Count the encounters and narratives of which some results are visible and some are not."""
    with connection.cursor() as cursor:
        cursor.execute(PARTIAL)
        return int(cursor.fetchone()[0])


def misplaced(files: Sequence[UUID]) -> list[str]:
    """Say of these records which rows of the later passes are in the wrong place."""
    found = []
    with connection.cursor() as cursor:
        for words, statement in MISPLACED.items():
            cursor.execute(statement, {"files": list(files)})
            number = cursor.fetchone()[0]
            if number:
                found.append(f"{number} {words}")
    return found


def later_results(shell_file_id: UUID) -> dict[tuple[str, int], list[str]]:
    """Return the visible results of the later passes, by table and number of their encounter.

    A row is JSON. The ids of entities and encounters are replaced by their places, so that records
    of the same bytes are equal. The number 0 is for the whole record.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, {"file": shell_file_id})
        names = {str(key): name for key, name in cursor}
        found: dict[tuple[str, int], list[str]] = defaultdict(list)
        for table, index, row in _rows(cursor, shell_file_id):
            text = json.dumps(row, default=str)
            found[table, index].append(_ID.sub(lambda at: names.get(at[0], "unknown"), text))
    return {key: sorted(rows) for key, rows in found.items()}


def _rows(cursor: Any, shell_file_id: UUID) -> Iterator[tuple[str, int, list[Any]]]:
    statements = {"candidates": CODED, "enriched": ENRICHED, "told": TOLD, "listed": LISTED}
    for table, statement in statements.items():
        cursor.execute(statement, [shell_file_id])
        yield from ((table, index, row) for index, *row in cursor.fetchall())
