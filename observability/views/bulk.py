"""Mass actions: what exactly will happen, what is happening, and what came of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django.core.exceptions import BadRequest
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from observability.bulk import operations
from observability.bulk.selections import as_fields, in_words, selection
from observability.keyset import keyset_page
from observability.models import BulkItem, BulkOperation
from observability.rights import Right
from observability.views.guard import page, verb
from observability.views.shown import shown
from pipeline import services
from pipeline.errors import UserError
from pipeline.models import Job

LISTED = 50
SAMPLE = 20


@page(Right.RETRY)
def retry_preview(request: HttpRequest) -> HttpResponse:
    """Show what a retry would do; nothing is done before it is confirmed."""
    return _preview(request, request.GET.dict())


@verb(Right.RETRY)
def retry_start(request: HttpRequest) -> HttpResponse:
    """Start what was previewed, and go to its page; show the preview again where it cannot be."""
    asked = {key: str(value) for key, value in request.POST.items()}
    try:
        token = UUID(asked.get("token", ""))
    except ValueError:
        raise BadRequest from None
    try:
        operation = operations.start_retry(
            selection(asked, timezone.now()),
            reason=asked.get("reason", ""),
            token=token,
            actor=request.user,
        )
    except UserError as error:
        return _preview(request, asked, problem=error.message, token=token)
    return redirect("admin:bulk_operation", operation.id)


@verb(Right.RETRY)
def abort(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Ask an operation to stop."""
    operations.abort(get_object_or_404(BulkOperation, id=operation_id), request.user)
    return redirect("admin:bulk_operation", operation_id)


@page()
def operation(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Show an operation: progress, what became of its jobs, each item with its result."""
    found = get_object_or_404(BulkOperation, id=operation_id)
    states = dict(found.items.order_by().values_list("state").annotate(number=Count("id")))
    total = sum(states.values())
    settled = total - states.get(BulkItem.WAITING, 0)
    done = found.items.filter(state=BulkItem.DONE).values("job_id")
    jobs = dict(
        Job.objects.filter(id__in=done).order_by().values_list("status").annotate(Count("id"))
    )
    listed = found.items.filter(place__gte=_place(request)).order_by("place")
    items = list(listed[: LISTED + 1])
    status_of = dict(
        Job.objects.filter(id__in=[item.job_id for item in items]).values_list("id", "status")
    )
    return shown(
        request,
        "console/operation.html",
        f"Retry {str(found.id)[:8]}",
        operation=found,
        words=in_words(found.selection),
        total=total,
        settled=settled,
        states={name: states.get(name, 0) for name in BulkItem.STATES},
        jobs=sorted(jobs.items()),
        items=[(item, status_of.get(item.job_id)) for item in items[:LISTED]],
        next_place=items[LISTED].place if len(items) > LISTED else None,
        is_over=found.finished_at is not None,
        is_settled=not {"pending", "processing", "parked"} & jobs.keys(),
    )


@page()
def history(request: HttpRequest) -> HttpResponse:
    """List the operations, newest first."""
    listed = keyset_page(
        BulkOperation.objects.all(), "created_at", request.GET.get("after", ""), LISTED
    )
    return shown(
        request,
        "console/operations.html",
        "Mass actions",
        listed=listed,
        rows=[(each, in_words(each.selection)) for each in listed.rows],
    )


def _preview(
    request: HttpRequest, asked: dict[str, str], *, problem: str = "", token: UUID | None = None
) -> HttpResponse:
    found: Any = None
    fields: dict[str, str] = {}
    try:
        chosen = selection(asked, timezone.now())
        fields = as_fields(chosen)
        found = services.retry_preview(chosen)
    except UserError as error:
        problem = problem or error.message
    return shown(
        request,
        "console/retry.html",
        "Retry what failed",
        found=found,
        fields=fields,
        words=in_words(fields),
        problem=problem,
        reason=asked.get("reason", ""),
        # A click on what is shown again counts as the same click.
        token=token or uuid4(),
        left=found.ineligible[:SAMPLE] if found else (),
        records=len({each.shell_file_id for each in found.eligible}) if found else 0,
        permanent=sorted({cause for each in found.eligible for cause in each.permanent})
        if found
        else [],
    )


def _place(request: HttpRequest) -> int:
    """Return the place of the first item to be listed."""
    text = request.GET.get("from", "0")
    return int(text) if text.isdecimal() else 0
