"""Bulk operations: the preview, and the start with a reason."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from observability.actions import bulk_operations
from observability.actions.bulk_kinds import KINDS, BulkOperationKind
from observability.actions.filters import in_words
from observability.actions.preview_digest import preview_digest_of
from observability.actions.return_url import checked, origin
from observability.audit.log import BULK_OPERATION
from observability.views.decorators import RequestedAction, action, page
from observability.views.render import render_page
from pipeline.core.errors import UserError
from pipeline.core.labels import PASS_TITLES
from pipeline.operations.reasons import ReasonError

SAMPLE = 20


@page()
def preview(request: HttpRequest, name: str = "retry") -> HttpResponse:
    """Show the preview of a bulk operation; nothing changes before the start."""
    kind = _named(name)
    if not request.user.has_perm(kind.right.permission):
        raise PermissionDenied
    return _preview(request, kind, request.GET.dict())


def _to_start(request: HttpRequest, name: str = "retry") -> RequestedAction:
    kind = _named(name)
    return RequestedAction(action=kind.name, right=kind.right, target_kind=BULK_OPERATION)


@action(_to_start)
def start(request: HttpRequest, name: str = "retry") -> HttpResponse:
    """Start the previewed operation and show its page; if that fails, show the preview again."""
    kind = _named(name)
    asked = {key: str(value) for key, value in request.POST.items()}
    try:
        token = UUID(asked.get("token", ""))
    except ValueError:
        raise BadRequest from None
    try:
        operation = bulk_operations.start(
            kind,
            asked,
            reason=asked.get("reason", ""),
            token=token,
            actor=request.user,
        )
    except UserError as error:
        return _preview(request, kind, asked, error=error, token=token)
    return redirect("admin:bulk_operation", operation.id)


def _named(name: str) -> BulkOperationKind:
    if name not in KINDS:
        raise Http404
    return KINDS[name]


def _preview(
    request: HttpRequest,
    kind: BulkOperationKind,
    asked: dict[str, str],
    *,
    error: UserError | None = None,
    token: UUID | None = None,
) -> HttpResponse:
    found: Any = None
    problem = error.message if error else ""
    fields: dict[str, str] = {}
    try:
        found, fields = kind.look(asked, timezone.now())
    except UserError as unread:
        problem = problem or unread.message
    came_from = checked(asked.get("next", ""))
    form = {**fields, "seen": preview_digest_of(found.eligible)} if found else {}
    return render_page(
        request,
        "console/bulk_preview.html",
        kind.title,
        status=HTTPStatus.BAD_REQUEST
        if found is None or isinstance(error, ReasonError)
        else HTTPStatus.OK,
        kind=kind,
        found=found,
        fields=form | ({"next": came_from} if came_from else {}),
        home=came_from or origin(kind.name, fields),
        looked_at=len(found.eligible) + len(found.ineligible) if found else 0,
        words=in_words(fields),
        problem=problem,
        reason=asked.get("reason", ""),
        # A second click on the same form must not start a second operation.
        token=token or uuid4(),
        left=found.ineligible[:SAMPLE] if found else (),
        records=len({each.shell_file_id.int for each in found.eligible}) if found else 0,
        permanent=sorted({cause for each in found.eligible for cause in each.permanent})
        if found
        else [],
        choices=[] if "job" in fields else [_choice(each, fields) for each in kind.filters],
        kept={name: fields[name] for name in ("incident",) if name in fields}
        | ({"next": came_from} if came_from else {}),
    )


_CHOICES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "is": ("Now", [(word, word) for word in ("waiting", "running", "parked")]),
    "step": ("Pass", [(step.value, title) for step, title in PASS_TITLES.items()]),
    "error_code": (
        "Cause",
        [(code, code) for code in ("WORKER_LOST", "DEADLINE_EXCEEDED", "MAX_RETRIES_EXCEEDED")],
    ),
}
"""The choices of each filter of a preview: the label, then values and words."""


def _choice(name: str, fields: dict[str, str]) -> dict[str, Any]:
    label, options = _CHOICES[name]
    return {"name": name, "label": label, "options": options, "chosen": fields.get(name, "")}
