"""Mass actions: what exactly will happen, what is happening, and what came of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from observability.bulk import operations
from observability.bulk.kinds import KINDS, Kind
from observability.bulk.selections import in_words
from observability.keyset import keyset_page
from observability.models import BulkItem, BulkOperation
from observability.views.guard import page, verb
from observability.views.shown import shown
from pipeline.errors import UserError
from pipeline.models import Job
from pipeline.words import PASS_TITLES

LISTED = 50
SAMPLE = 20


@page()
def preview(request: HttpRequest, name: str = "retry") -> HttpResponse:
    """Show what a verb would do to many; nothing is done before it is confirmed."""
    return _preview(request, _chosen(request, name), request.GET.dict())


@verb()
def start(request: HttpRequest, name: str = "retry") -> HttpResponse:
    """Start what was previewed, and go to its page; show the preview again where it cannot be."""
    kind = _chosen(request, name)
    asked = {key: str(value) for key, value in request.POST.items()}
    try:
        token = UUID(asked.get("token", ""))
    except ValueError:
        raise BadRequest from None
    try:
        operation = operations.start(
            kind,
            asked,
            reason=asked.get("reason", ""),
            token=token,
            actor=request.user,
        )
    except UserError as error:
        return _preview(request, kind, asked, problem=error.message, token=token)
    return redirect("admin:bulk_operation", operation.id)


@verb()
def abort(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Ask an operation to stop; whoever may start one of its kind may."""
    found = BulkOperation.objects.filter(id=operation_id).first()
    if not any(request.user.has_perm(kind.right.permission) for kind in KINDS.values()):
        raise PermissionDenied
    if found is None:
        raise Http404
    _chosen(request, found.verb)
    operations.abort(found, request.user)
    return redirect("admin:bulk_operation", operation_id)


@page()
def operation(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Show an operation: progress, what became of its jobs, each item with its result."""
    found = get_object_or_404(BulkOperation, id=operation_id)
    kind = KINDS[found.verb]
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
        f"{kind.title} {str(found.id)[:8]}",
        operation=found,
        kind=kind,
        may_abort=request.user.has_perm(kind.right.permission),
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


def _chosen(request: HttpRequest, name: str) -> Kind:
    if name not in KINDS:
        raise Http404
    if not request.user.has_perm(KINDS[name].right.permission):
        raise PermissionDenied
    return KINDS[name]


def _preview(
    request: HttpRequest,
    kind: Kind,
    asked: dict[str, str],
    *,
    problem: str = "",
    token: UUID | None = None,
) -> HttpResponse:
    found: Any = None
    fields: dict[str, str] = {}
    try:
        found, fields = kind.look(asked, timezone.now())
    except UserError as error:
        problem = problem or error.message
    return shown(
        request,
        "console/mass.html",
        kind.title,
        kind=kind,
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
        choices=[] if "job" in fields else [_choice(each, fields) for each in kind.filters],
        kept={name: fields[name] for name in ("incident",) if name in fields},
    )


_CHOICES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "is": ("Now", [(word, word) for word in ("waiting", "running", "parked")]),
    "step": ("Pass", [(step.value, title) for step, title in PASS_TITLES.items()]),
    "error_code": (
        "Cause",
        [(code, code) for code in ("WORKER_LOST", "MAX_RETRIES_EXCEEDED")],
    ),
}
"""What a filter of a preview offers: its label, then values and words."""


def _choice(name: str, fields: dict[str, str]) -> dict[str, Any]:
    label, options = _CHOICES[name]
    return {"name": name, "label": label, "options": options, "chosen": fields.get(name, "")}


def _place(request: HttpRequest) -> int:
    """Return the place of the first item to be listed."""
    text = request.GET.get("from", "0")
    return int(text) if text.isdecimal() and len(text) < 10 else 0
