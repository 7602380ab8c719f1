"""A record: why did the record fail, and what is lost?"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse

from observability.actions.bulk_kinds import KINDS
from observability.drilldown.explain import drilled
from observability.drilldown.nodes import Node, NodeKind
from observability.drilldown.page_coverage import coverage
from observability.drilldown.queries import rows_of
from observability.drilldown.summary import cost, first_broken, is_in_trouble, is_unpublished
from observability.drilldown.text import COUNTED, hides, outline
from observability.drilldown.timeline import timeline
from observability.drilldown.tree import tree
from observability.models import BulkItem
from observability.permissions import Right
from observability.views.decorators import page
from observability.views.list_navigation import list_navigation
from observability.views.render import render_page
from observability.views.timeline_html import timeline_html
from observability.views.tree_html import tree_html
from pipeline.core.labels import PASS_TITLES, StatusWord, counted, duration, plural
from pipeline.core.states import IncidentState, Step, WorkStatus
from pipeline.models import Incident, IncidentJob, Job, ReviewItem, ShellFile
from pipeline.models.work_tables import WORK_TABLES
from pipeline.operations.preview import why_not_retried

POLL_S = 5

MOVES = frozenset({StatusWord.RUNNING, StatusWord.WAITING, StatusWord.PARKED})
"""Statuses in which the page of a record reloads."""


@page()
def record(request: HttpRequest, record_id: UUID) -> HttpResponse:
    """Show a record with the focus on one node (`?node=`), by default on the failure."""
    try:
        rows = rows_of(record_id)
    except ShellFile.DoesNotExist:
        raise Http404 from None
    root = tree(rows)
    focus = request.GET.get("node", "")
    if "node" not in request.GET and not first_broken(rows, root):
        focus = _troubled(root)
    found = drilled(rows, root, focus=focus)
    everything = request.GET.get("all") == "1"
    mine = IncidentJob.objects.filter(job_id=rows.job.id).values("incident_id")
    known = Incident.objects.filter(Q(id__in=mine) | Q(state=IncidentState.OPEN))[:20]
    models = {(call.provider, call.model) for call in rows.calls}
    incidents = [each for each in known if (each.provider, each.model) in models]
    path = found.path()
    status = found.root.status
    unpublished = is_unpublished(found.root)
    tone = "failed" if is_in_trouble(rows, found.root) else "waiting" if unpublished else status
    rowed = outline(found, everything=everything)
    drawn = timeline(rows, incidents)
    part = (
        WorkStatus.FAILED.value if path[-1].status is StatusWord.FAILED else path[-1].status.value
    )
    return render_page(
        request,
        "console/record.html",
        f"Record {str(record_id)[:8]}",
        rows=rows,
        found=found,
        list_navigation=list_navigation(request.GET.dict()),
        tone=tone,
        unpublished=unpublished,
        has_summary=any(each.id in _ENRICHING and _has_begun(each) for each in root.children),
        review=ReviewItem.objects.only("id").filter(shell_file_id=record_id).first()
        if request.user.has_perm(Right.REVIEW.permission)
        else None,
        poll_s=POLL_S if status in MOVES else 0,
        expected=_expected(rows.job.id),
        open_incidents=[
            each for each in incidents if status in MOVES and each.state == IncidentState.OPEN
        ],
        passes=found.root.children,
        actions=[
            kind
            for kind in KINDS.values()
            if rows.job.status in kind.open_to and request.user.has_perm(kind.right.permission)
        ],
        can_retry=why_not_retried(rows.job) is None,
        retry_node=_retried_alone(path[-1])
        if why_not_retried(rows.job, part=part) is None
        else None,
        tree=tree_html(rowed, found.focus),
        facts=_facts(path[-1]),
        history=_history(rows.job) if len(path) == 1 else [],
        tokens=_tokens(found.root),
        can_unfold=not everything and hides(found, rowed),
        everything=everything,
        path=path[1:],
        node=path[-1],
        calls=[child for child in path[-1].children if child.kind is NodeKind.CALL],
        node_pages=_pages(path[-1]),
        parts=[child for child in path[-1].children if child.kind is not NodeKind.CALL],
        related=_related(found.root, path[-1]),
        timeline=drawn,
        timeline_html=timeline_html(drawn) if drawn else None,
        coverage=coverage(record_id, rows.shell_file.warnings),
    )


_ENRICHING = frozenset({Step.PASS1_5, Step.PASS2, Step.PASS3})
"""The passes whose results the clinical summary shows."""


def _has_begun(node: Node) -> bool:
    return node.status not in {StatusWord.WAITING, StatusWord.SKIPPED}


def _expected(job_id: UUID) -> BulkItem | None:
    """Return the item of a bulk operation that waits for this job."""
    return (
        BulkItem.objects.filter(operation__finished_at=None, job_id=job_id, state=BulkItem.WAITING)
        .select_related("operation")
        .first()
    )


def _troubled(root: Node) -> str:
    """Return the lost node of an open record, else the node of the last failed call."""
    if root.status not in {StatusWord.PARKED, StatusWord.WAITING, StatusWord.RUNNING}:
        return ""
    failed = [
        (node.status is StatusWord.FAILED, call.spent.started_at, node.id)
        for node in root.walk()
        if node.status is not StatusWord.DONE
        for call in node.children
        if call.kind is NodeKind.CALL and call.status is StatusWord.FAILED and call.spent.started_at
    ]
    return max(failed)[2] if failed else ""


_IN_TITLE = frozenset(
    {"encounter_index", "page_range_start", "page_range_end", "page_start", "page_end"}
)
"""Facts that a node's title names, in addition to the number of a work item."""


_ELSEWHERE = frozenset({"history", "is_begun", "reused", "incomplete_note", "encounter_id"})
"""Facts for the command line or for the tree only, and facts that the page shows elsewhere."""


def _in_words(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return PASS_TITLES[Step(value)] if name == "step" else value


def _retried_alone(node: Node) -> str:
    """Return the field by which a retry names a node without the rest of the record."""
    if node.is_work_item:
        return "item"
    return "encounter" if node.kind is NodeKind.ENCOUNTER else ""


def _history(job: Job) -> list[str]:
    """Return the events of a job in words, oldest first."""
    said = []
    for entry in (job.error_details or {}).get("history", ()):
        step = f" in {PASS_TITLES[Step(entry['step'])]}" if entry.get("step") else ""
        by = f" by {entry['by']}" if entry.get("by") else ""
        why = f": {entry['reason']}" if entry.get("reason") else ""
        code = f" ({entry['error_code']})" if entry.get("error_code") else ""
        at = f"{entry['at'][:10]} {entry['at'][11:19]} UTC" if entry.get("at") else ""
        said.append(f"{at} {entry['event'].replace('_', ' ')}{step}{by}{code}{why}".strip())
    return said


def _pages(node: Node) -> tuple[int, int] | None:
    """Return the first and the last page of a node; None if the node has no page range."""
    first = node.facts.get("page_range_start") or node.facts.get("page_start")
    last = node.facts.get("page_range_end") or node.facts.get("page_end")
    return (first, last) if first and last else None


def _related(root: Node, node: Node) -> list[tuple[str, list[Node]]]:
    """Return the related nodes: of an encounter its zones and narrative, of these their encounter.

    Nodes are grouped by their pass.
    """
    if wanted := node.facts.get("encounter_id"):
        return [("Encounter", [each for each in root.walk() if each.id == wanted])]
    if node.kind is not NodeKind.ENCOUNTER:
        return []
    found = []
    for each in root.children:
        own = [part for part in each.children if part.facts.get("encounter_id") == node.id]
        if own:
            found.append((f"{each.title}: {counted(len(own), str(own[0].kind))}", own))
    return found


def _tokens(node: Node) -> int:
    spent = node.spent
    return spent.input_tokens + spent.output_tokens + spent.thinking_tokens


def _facts(node: Node) -> list[tuple[str, Any]]:
    """Return the facts of a node that its pane shows nowhere else."""
    facts = {name: of for name, of in node.facts.items() if name not in _ELSEWHERE}
    tried = facts.pop("attempt_count", None)
    allowed = facts.pop("max_attempts", None)
    counts: list[tuple[str, Any]] = [
        (name.replace("_", " ") if name not in COUNTED else plural(name), of)
        for name, of in node.counts.items()
    ]
    if allowed:
        counts.append(("attempts spent", f"{tried} of {allowed}"))
    spent = node.spent
    in_title = _IN_TITLE | {table.index for table in WORK_TABLES.values()}
    own: list[tuple[str, Any]] = [
        (name.replace("_", " "), _in_words(name, of))
        for name, of in facts.items()
        if name not in in_title
    ]
    if spent.started_at:
        own.append(("started", f"{spent.started_at:%Y-%m-%d %H:%M:%S} UTC"))
    if spent.took_ms is not None:
        own.append(("took", duration(spent.took_ms / 1000)))
    if spent.waited_ms:
        own.append(("waited", duration(spent.waited_ms / 1000)))
    if spent.input_tokens:
        own.append(("tokens and cost", cost(node)))
    own.append(("id", node.id))
    return [(name, of) for name, of in [*counts, *own] if of not in (None, "", 0)]
