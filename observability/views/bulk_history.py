"""Bulk operations: the progress and the results of one operation, and the list of all."""

from __future__ import annotations

from collections.abc import Set
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from observability.actions import bulk_operations
from observability.actions.bulk_kinds import KINDS
from observability.actions.filters import FAILED, in_words
from observability.audit.log import BULK_OPERATION
from observability.listing.pagination import keyset_page
from observability.models import BulkItem, BulkOperation
from observability.permissions import Right
from observability.views.decorators import RequestedAction, action, page
from observability.views.render import render_page
from pipeline.core.labels import StatusWord
from pipeline.core.states import JobStatus
from pipeline.models import Job

LISTED = 50
AGAIN = "failed again"
"""Items whose job has failed again since then."""
ORDER = (BulkItem.FAILED, AGAIN, BulkItem.SKIPPED, BulkItem.DONE, BulkItem.WAITING)
_OPEN = {JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PARKED}


def _to_abort(request: HttpRequest, operation_id: UUID) -> RequestedAction:
    found = get_object_or_404(BulkOperation, id=operation_id)
    return RequestedAction(
        action="abort",
        right=KINDS[found.action].right,
        target_kind=BULK_OPERATION,
        target_id=operation_id,
    )


@action(_to_abort)
def abort(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Request the abort of an operation; this needs the right to start one of its kind."""
    bulk_operations.abort(BulkOperation.objects.get(id=operation_id), request.user)
    return redirect("admin:bulk_operation", operation_id)


@page()
def operation(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Show an operation: progress, current state of its jobs, and items (`?state=failed`)."""
    found = get_object_or_404(BulkOperation, id=operation_id)
    kind = KINDS[found.action]
    states = dict.fromkeys(BulkItem.STATES, 0)
    states |= dict(found.items.order_by().values_list("state").annotate(number=Count("id")))
    total = sum(states.values())
    jobs = dict(
        Job.objects.filter(id__in=_done(found).values("job_id"))
        .order_by()
        .values_list("status")
        .annotate(Count("id"))
    )
    # A cancelled job does not count as failed again.
    again = sum(jobs.get(status, 0) for status in FAILED) if kind.makes_calls else 0
    numbers = {**states, AGAIN: again}
    state = request.GET.get("state", "")
    listed = _listed(found, state).filter(position__gte=_place(request)).order_by("position")
    status = Job.objects.filter(id=OuterRef("job_id")).values("status")[:1]
    items = list(listed.annotate(job_status=Subquery(status))[: LISTED + 1])
    return render_page(
        request,
        "console/bulk_operation.html",
        f"{kind.title} {str(found.id)[:8]}",
        operation=found,
        kind=kind,
        may_abort=request.user.has_perm(kind.right.permission),
        words=in_words(found.selection),
        total=total,
        settled=total - states[BulkItem.WAITING],
        states=states,
        again=again,
        tone=_tone(found, jobs.keys(), is_failed=bool(states[BulkItem.FAILED] or again)),
        may_retry=bool(again or states[BulkItem.FAILED])
        and request.user.has_perm(Right.RETRY.permission),
        state=state if state in numbers else "",
        tabs=[(name, numbers[name]) for name in ORDER],
        jobs=sorted(jobs.items()),
        items=items[:LISTED],
        next_place=items[LISTED].position if len(items) > LISTED else None,
        is_over=found.finished_at is not None,
        is_settled=not _OPEN & jobs.keys(),
    )


@page()
def history(request: HttpRequest) -> HttpResponse:
    """List the operations, newest first."""
    listed = keyset_page(
        BulkOperation.objects.all(), "created_at", request.GET.get("after", ""), LISTED
    )
    return render_page(
        request,
        "console/bulk_operations.html",
        "Bulk operations",
        listed=listed,
        rows=[(each, in_words(each.selection)) for each in listed.rows],
    )


def _tone(operation: BulkOperation, statuses: Set[str], *, is_failed: bool) -> StatusWord:
    """Return the status whose colour the verdict has; done after the last job has ended."""
    if operation.finished_at is None:
        return StatusWord.RUNNING
    if is_failed:
        return StatusWord.FAILED
    return StatusWord.RUNNING if _OPEN & statuses else StatusWord.DONE


def _done(operation: BulkOperation) -> QuerySet[BulkItem, BulkItem]:
    return operation.items.filter(state=BulkItem.DONE)


def _listed(operation: BulkOperation, state: str) -> QuerySet[BulkItem, BulkItem]:
    """Return the items in one state, or all items."""
    if state == AGAIN:
        failed = Job.objects.filter(status__in=FAILED, id__in=_done(operation).values("job_id"))
        return _done(operation).filter(job_id__in=failed.values("id"))
    return (
        operation.items.filter(state=state) if state in BulkItem.STATES else operation.items.all()
    )


def _place(request: HttpRequest) -> int:
    """Return the place of the first listed item."""
    text = request.GET.get("from", "0")
    return int(text) if text.isdecimal() and len(text) < 9 else 0
