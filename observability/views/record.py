"""A record: why did this one fail, and what is lost? And the list of records by how they stand."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from observability.answers import cost, first_broken
from observability.bulk.kinds import KINDS
from observability.coverage import coverage
from observability.drilldown import drilled
from observability.keyset import keyset_page
from observability.nodes import Kind, Node
from observability.periods import Window
from observability.rendering import hides, outline
from observability.rows import rows_of
from observability.timeline import timeline
from observability.tree import tree
from observability.views.branches import branches
from observability.views.guard import page
from observability.views.shown import shown
from pipeline.models import Incident, Job, ShellFile
from pipeline.preview import why_not_retried
from pipeline.states import JobStatus, WorkStatus
from pipeline.words import Word, duration

LISTED = 50
STATES: dict[Word, JobStatus] = {
    Word.RUNNING: JobStatus.PROCESSING,
    Word.WAITING: JobStatus.PENDING,
    Word.PARKED: JobStatus.PARKED,
    Word.FAILED: JobStatus.FAILED,
    Word.DEAD: JobStatus.DEAD,
}


@page()
def record(request: HttpRequest, record_id: UUID) -> HttpResponse:
    """Show a record with the focus on one of its nodes (`?node=`), by default on its failure."""
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
    incidents = Incident.objects.filter(effects__job_id=rows.job.id).distinct()
    path = found.path()
    rowed = outline(found, everything=everything)
    part = WorkStatus.FAILED.value if path[-1].status is Word.FAILED else path[-1].status.value
    return shown(
        request,
        "console/record.html",
        f"Record {str(record_id)[:8]}",
        rows=rows,
        found=found,
        passes=found.root.children,
        verbs=[
            kind
            for kind in KINDS.values()
            if rows.job.status in kind.open_to and request.user.has_perm(kind.right.permission)
        ],
        can_retry=why_not_retried(rows.job) is None,
        retry_node=_RETRIED_ALONE.get(path[-1].kind)
        if why_not_retried(rows.job, part=part) is None
        else None,
        tree=branches(rowed, found.focus),
        facts=_facts(path[-1]),
        tokens=_tokens(found.root),
        can_unfold=not everything and hides(found, rowed),
        everything=everything,
        path=path[1:],
        node=path[-1],
        calls=[child for child in path[-1].children if child.kind is Kind.CALL],
        node_pages=_pages(path[-1]),
        parts=[child for child in path[-1].children if child.kind is not Kind.CALL],
        timeline=timeline(rows, list(incidents[:20])),
        coverage=coverage(record_id, rows.shell_file.warnings),
    )


def _troubled(root: Node) -> str:
    """Return the batch or chunk whose call failed last, where a record waits or runs."""
    if root.status not in {Word.PARKED, Word.WAITING, Word.RUNNING}:
        return ""
    failed = [
        (call.spent.started_at, node.id)
        for node in root.walk()
        if node.status is not Word.DONE
        for call in node.children
        if call.kind is Kind.CALL and call.status is Word.FAILED and call.spent.started_at
    ]
    return max(failed)[1] if failed else ""


_IN_TITLE = frozenset(
    {
        "encounter_index", "batch_index", "chunk_index", "zone_index", "page_range_start",
        "page_range_end", "page_start", "page_end",
    }
)  # fmt: skip
"""Facts that the node's title says."""


_RETRIED_ALONE = {Kind.ENCOUNTER: "encounter", Kind.BATCH: "batch", Kind.CHUNK: "batch"}
"""Nodes that can be retried without the rest of their record, and how a retry names them."""


def _pages(node: Node) -> tuple[int, int] | None:
    """Return the first and last page that a node is about; None where it is about all or none."""
    first = node.facts.get("page_range_start") or node.facts.get("page_start")
    last = node.facts.get("page_range_end") or node.facts.get("page_end")
    return (first, last) if first and last else None


def _tokens(node: Node) -> int:
    spent = node.spent
    return spent.input_tokens + spent.output_tokens + spent.thinking_tokens


def _facts(node: Node) -> list[tuple[str, Any]]:
    """Return what is known of a node and shown nowhere else on its pane."""
    facts = dict(node.facts)
    tried = facts.pop("attempt_count", None)
    allowed = facts.pop("max_attempts", None)
    counts: list[tuple[str, Any]] = list(node.counts.items())
    if allowed:
        counts.append(("attempts", f"{tried} of {allowed}"))
    spent = node.spent
    own: list[tuple[str, Any]] = [
        (name.replace("_", " "), of) for name, of in facts.items() if name not in _IN_TITLE
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


@page()
def records(request: HttpRequest) -> HttpResponse:
    """List records, newest first, or those whose job stands in one way (`?is=failed`).

    What has ended badly may be asked for within a window (`&window=24h`), and all of it within a
    batch of records (`&batch=…`).
    """
    word = request.GET.get("is", "")
    status = STATES.get(Word(word)) if word in Word._value2member_map_ else None
    window, batch = _window(request), _batch(request)
    jobs = Job.objects.select_related("shell_file__patient").only(
        "status", "current_step", "error_code", "last_error", "park_reason", "parked_until",
        "created_at", "completed_at", "updated_at", "error_details",
        "shell_file__page_count", "shell_file__patient__pseudonym",
    )  # fmt: skip
    place = request.GET.get("after", "")
    column = "created_at"
    if status in {JobStatus.FAILED, JobStatus.DEAD}:
        column = "completed_at"
    else:
        window = None
    if status is not None:
        jobs = jobs.filter(status=status)
    if window is not None:
        jobs = jobs.filter(completed_at__gte=timezone.now() - window.length)
    if batch is not None:
        jobs = jobs.filter(record_batch_id=batch)
    listed = keyset_page(jobs, column, place, LISTED)
    return shown(
        request,
        "console/records.html",
        _title(word if status else "", window, batch),
        listed=listed,
        window=window,
        kept=urlencode({"batch": batch} if batch else {}),
        older=urlencode(
            {
                **({"batch": batch} if batch else {}),
                **({"is": word} if status else {}),
                **({"window": window.value} if window else {}),
                "after": listed.next_place,
            }
        ),
        word=word if status else "",
        words=list(STATES),
    )


def _window(request: HttpRequest) -> Window | None:
    try:
        return Window(request.GET.get("window", ""))
    except ValueError:
        return None


def _batch(request: HttpRequest) -> UUID | None:
    if "batch" not in request.GET:
        return None
    try:
        return UUID(request.GET["batch"])
    except ValueError:
        raise Http404 from None


def _title(word: str, window: Window | None, batch: UUID | None) -> str:
    """Return `Records: failed in the last 24 hours`, `Records of batch 0b02ca07: waiting`."""
    of = f" of batch {str(batch)[:8]}" if batch else ""
    when = f" in the last {window.words}" if window else ""
    return f"Records{of}: {word}{when}" if word else f"Records{of}"
