"""The work of many records, added up by PostgreSQL: one row per record, one statement per pass.

A preview of 10,000 jobs concerns 200,000 work items and more. The items stay in the database; only
the sums and the causes of failed items leave it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from pipeline.core.states import Step
from pipeline.models.work_tables import WorkTable, composed, encounter_parents
from pipeline.operations.preview.selection import SelectedJob
from pipeline.transitions import Scope


class RecordWork(NamedTuple):
    """A record, and its work items that a retry would send to the provider.

    A tuple, because a preview makes 10,000 of them.
    """

    record_pages: int
    """Pages of the record, at least one."""
    failed_parents: int
    """Encounters whose parent row has failed in any pass, and that the scope includes."""
    calls: int
    pages: int
    """Different pages of the items; several items can have the same page."""
    text_tokens: int
    """Estimated input tokens of these pages, without the prompts around them."""
    failed_encounters: int
    """Encounters of the failed items."""
    causes: Sequence[str]
    """Causes of the failed items."""


@dataclass(frozen=True, kw_only=True)
class EarlierCalls:
    """The calls that sessions have made in some passes."""

    asked: int
    """Input tokens of the answered calls."""
    answered: int
    """Output tokens of the answered calls."""
    versions: frozenset[tuple[str, str, str]]
    """Prompt version, provider and model of all calls."""


_NO_WORK = RecordWork(1, 0, 0, 0, 0, 0, ())
"""The work of a record that is deleted meanwhile."""
_NOTHING, _BOTH = "nothing", "both"


def _record_sql(step: Step, tables: Sequence[WorkTable]) -> str:
    failed = " UNION ALL ".join(
        f"SELECT {parent.encounter}_id AS encounter FROM {parent.table}"  # noqa: S608 - names come from the models
        " WHERE shell_file_id = chosen.record AND status = 'failed'"
        for parent in encounter_parents()
    )
    own = next((table for table in tables if table.step == step), None)
    columns = "items.*" if own else "0, 0, 0, NULL, NULL"
    return f"""
SELECT chosen.place - 1, file.pages, failed.encounters, {columns}
FROM unnest(string_to_array(%(records)s, ',')::uuid[], string_to_array(%(narrowed_by)s, ','))
  WITH ORDINALITY AS chosen (record, narrowed_by, place), LATERAL (
  SELECT coalesce(nullif(page_count, 0), nullif(pages_read, 0), 1) AS pages
  FROM shell_files WHERE id = chosen.record
) file, LATERAL (
  SELECT count(DISTINCT encounter) AS encounters FROM ({failed}) parents
  WHERE {_is_not_by("encounter")} OR encounter = ANY(%(encounters)s::uuid[])
) failed{f", LATERAL ({_items_sql(own)}) items" if own else ""}
"""  # noqa: S608 - names come from the models, values are parameters


def _is_not_by(what: str) -> str:
    return f"chosen.narrowed_by NOT IN ('{what}', '{_BOTH}')"


def _items_sql(table: WorkTable) -> str:
    encounter = f"w.{table.encounter}_id" if table.encounter else "NULL::uuid"
    tokens = f"w.{table.estimate}" if table.estimate else _text_sql(table)
    # The failed items are those that `Scope.holds` includes. The session names all items of a
    # record, so one look-up by key finds them; their parents would need one for each encounter.
    # OFFSET 0 forces these look-ups: a join of thousands of records scans the whole table.
    return f"""
  SELECT count(*) AS calls, coalesce((
      SELECT sum(upper(run) - lower(run))
      FROM unnest(range_agg(int4range(i.page_range_start, i.page_range_end, '[]'))) run
    ), 0)::integer AS pages, coalesce(sum(i.tokens), 0)::bigint AS tokens,
    array_agg(i.encounter) FILTER (WHERE i.status = 'failed') AS encounters,
    array_agg(i.cause) FILTER (WHERE i.status = 'failed' AND i.cause IS NOT NULL) AS causes
  FROM (
    SELECT w.status, w.page_range_start, w.page_range_end, {encounter} AS encounter,
      coalesce(nullif(w.error_context ->> 'final_underlying_error', ''), w.error_code) AS cause,
      {tokens} AS tokens
    FROM ai_processing_sessions o JOIN {table.table} w ON w.processing_session_id = o.id
    WHERE o.shell_file_id = chosen.record
      AND (w.status IN ('pending', 'processing') OR w.status = 'failed' AND (
        chosen.narrowed_by = '{_NOTHING}' OR CASE WHEN {encounter} IS NULL
          THEN w.id = ANY(%(items)s::uuid[]) ELSE
            ({_is_not_by("encounter")} OR {encounter} = ANY(%(encounters)s::uuid[]))
            AND ({_is_not_by("item")} OR w.id = ANY(%(items)s::uuid[]))
        END))
    OFFSET 0
  ) i"""  # noqa: S608 - names come from the models, values are parameters


def _text_sql(table: WorkTable) -> str:
    """Return a subquery for the tokens of an item whose table has no estimate."""
    context = f"w.{table.context}" if table.context else "NULL"
    return (
        "(SELECT coalesce(sum(length(p.text)), 0) / 4 FROM shell_file_pages p"  # noqa: S608 - names come from the models
        " WHERE p.shell_file_id = o.shell_file_id AND p.page_number"
        f" BETWEEN coalesce({context}, w.page_range_start) AND w.page_range_end)"
    )


@composed
def _statements(tables: Sequence[WorkTable]) -> dict[str, str]:
    return {step.value: _record_sql(step, tables) for step in Step}


def work_of(selected_jobs: Sequence[SelectedJob]) -> list[RecordWork]:
    """Return the work of each job in its pass, in the order of the jobs.

    There is one statement for each pass.
    """
    of_step: defaultdict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(selected_jobs):
        of_step[each.job.current_step].append(place)
    found: list[RecordWork] = [_NO_WORK] * len(selected_jobs)
    with connection.cursor() as cursor:
        for step, places in of_step.items():
            chosen = _chosen([selected_jobs[place] for place in places])
            cursor.execute(_statements()[step], chosen)
            for nth, pages, parents, calls, own, tokens, encounters, causes in cursor.fetchall():
                failed = len({*encounters} - {None}) if encounters else 0
                found[places[nth]] = RecordWork(
                    pages, parents, calls, own, tokens, failed, causes or ()
                )
    return found


def _chosen(selected_jobs: Sequence[SelectedJob]) -> dict[str, Any]:
    scopes = [each.scope for each in selected_jobs]
    return {
        # One text is made sooner than a list of 10,000 parameters.
        "records": ",".join(each.job.shell_file_id.hex for each in selected_jobs),
        "narrowed_by": ",".join(map(_narrowed_by, scopes)),
        # An id belongs to one record, so one list serves all records.
        "encounters": list(chain.from_iterable(scope.encounters or () for scope in scopes)),
        "items": list(chain.from_iterable(scope.items or () for scope in scopes)),
    }


def _narrowed_by(scope: Scope) -> str:
    if scope.is_all:
        return _NOTHING
    if scope.encounters is None:
        return "item"
    return "encounter" if scope.items is None else _BOTH


# One lookup by key for each record. One row per version, so the two questions about earlier calls
# are one read.
_EARLIER = """
SELECT c.prompt_version, c.provider, c.model,
  coalesce(sum(c.input_tokens) FILTER (WHERE c.accepted), 0),
  coalesce(sum(c.output_tokens + c.thinking_tokens) FILTER (WHERE c.accepted), 0)
FROM unnest(string_to_array(%(records)s, ',')::uuid[]) AS chosen (record), LATERAL (
  SELECT c.* FROM ai_processing_sessions s JOIN provider_calls c ON c.processing_session_id = s.id
  WHERE s.shell_file_id = chosen.record AND c.step = ANY(%(steps)s) OFFSET 0
) c
GROUP BY 1, 2, 3
"""


def earlier_calls(records: Collection[UUID], steps: Collection[Step]) -> EarlierCalls:
    """Add up the calls that these records have made in these passes."""
    with connection.cursor() as cursor:
        cursor.execute(
            _EARLIER,
            {
                "records": ",".join(record.hex for record in records),
                "steps": [step.value for step in steps],
            },
        )
        rows = cursor.fetchall()
    return EarlierCalls(
        asked=sum(int(row[3]) for row in rows),
        answered=sum(int(row[4]) for row in rows),
        versions=frozenset(row[:3] for row in rows),
    )
