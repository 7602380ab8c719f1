"""The drill-down: from any id to the event, its reason, its losses and its remedy.

It only reads, with a constant number of statements, and returns no PHI.
"""

from __future__ import annotations

from dataclasses import replace

from django.utils import timezone

from observability.drilldown.lookup import IdError, Located, locate
from observability.drilldown.nodes import DrillDown, Node
from observability.drilldown.queries import RecordRows, rows_of
from observability.drilldown.summary import first_broken, node_answer, record_answer
from observability.drilldown.tree import tree


def drill_down(text: str) -> DrillDown:
    """Explain the record that an id, or a unique prefix of an id, belongs to.

    The id can be that of a record, job, session, encounter, work item of any pass, call, entity,
    enriched entity, sentence, list entry or sighting of an encounter. Raises `lookup.IdError` for
    an unknown or ambiguous id.
    """
    return drill_down_to(locate(text))


def drill_down_to(located: Located) -> DrillDown:
    """Explain the record of a located object. Raises IdError if the object has no single record."""
    if located.shell_file_id is None:
        raise IdError(f"That is the id of {located.named}, which belongs to no single record.")
    rows = rows_of(located.shell_file_id)
    return drilled(
        rows,
        tree(rows),
        focus=str(located.node_id),
        asked=str(located.id),
        asked_kind=located.kind,
    )


def drilled(
    rows: RecordRows, root: Node, *, focus: str = "", asked: str = "", asked_kind: str = "record"
) -> DrillDown:
    """Explain a record by its rows and its tree, with the focus on one of its nodes.

    Without a valid focus, the focus is the first failure, or else the record.
    """
    whole = record_answer(rows, root)
    ids = {node.id for node in root.walk()}
    found = DrillDown(
        asked=asked or str(rows.shell_file.id),
        asked_kind=asked_kind,
        focus=focus if focus in ids else first_broken(rows, root) or root.id,
        answer=whole,
        record_answer=whole,
        root=root,
        taken_at=timezone.now(),
    )
    path = found.path()
    if len(path) == 1:
        return found
    return replace(found, answer=node_answer(path))
