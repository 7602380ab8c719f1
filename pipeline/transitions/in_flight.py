"""Returns all work in flight of a record to `pending`; `stale` does this for single old rows.

The caller holds the lock of the job, so no other worker touches the work items and their parents.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db import connection

from pipeline.models.work_tables import WorkTable, composed

_OF_THE_RECORDS = "processing_session_id = ANY(%(sessions)s) AND status = 'processing'"


@composed
def _requeue_sql(tables: Sequence[WorkTable]) -> str:
    """Compose one UPDATE for each table of work items and for each table of their parents.

    PostgreSQL chooses the order of these UPDATEs. The lock of the job keeps other writers away.
    """
    parents = {
        f"{table.step}_parents": f"UPDATE {table.encounter_parent.table} SET status = 'pending',"  # noqa: S608 - names come from the models
        f" updated_at = clock_timestamp() WHERE {_OF_THE_RECORDS}"
        for table in tables
        if table.encounter_parent
    }
    items = {
        f"{table.step}_items": f"UPDATE {table.table} SET status = 'pending'"  # noqa: S608 - names come from the models, values are parameters
        f" WHERE {_OF_THE_RECORDS}"
        for table in tables
    }
    steps = ",\n".join(f"{name} AS ({update})" for name, update in {**parents, **items}.items())
    return f"WITH {steps}\nSELECT 1"


def requeue_in_flight(session_ids: Collection[UUID]) -> None:
    """Return the work in flight of these records to `pending`; succeeded work stays."""
    with connection.cursor() as cursor:
        cursor.execute(_requeue_sql(), {"sessions": list(session_ids)})
