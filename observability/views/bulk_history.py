"""The bulk operations that were started: what is happening, what came of it, and all of them."""

from __future__ import annotations

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
from pipeline.core.states import JobStatus
from pipeline.models import Job

LISTED = 50
AGAIN = "failed again"
"""Items that were done and whose job has failed since."""
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
    """Ask an operation to stop; whoever may start one of its kind may."""
    bulk_operations.abort(BulkOperation.objects.get(id=operation_id), request.user)
    return redirect("admin:bulk_operation", operation_id)


@page()
def operation(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Show an operation: progress, what became of its jobs, its items (`?state=failed`)."""
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
    # A job that was cancelled asks for nothing again.
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
        is_failed=bool(states[BulkItem.FAILED] or again),
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


def _done(operation: BulkOperation) -> QuerySet[BulkItem, BulkItem]:
    return operation.items.filter(state=BulkItem.DONE)


def _listed(operation: BulkOperation, state: str) -> QuerySet[BulkItem, BulkItem]:
    """Return the items that stand in one way, or all."""
    if state == AGAIN:
        failed = Job.objects.filter(status__in=FAILED, id__in=_done(operation).values("job_id"))
        return _done(operation).filter(job_id__in=failed.values("id"))
    return (
        operation.items.filter(state=state) if state in BulkItem.STATES else operation.items.all()
    )


def _place(request: HttpRequest) -> int:
    """Return the place of the first item to be listed."""
    text = request.GET.get("from", "0")
    return int(text) if text.isdecimal() and len(text) < 9 else 0
