"""Upload: one record for each file and a clear message for each refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import cast
from uuid import UUID, uuid4

from django.conf import settings
from django.core.exceptions import BadRequest
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from medproc.web.client_address import client_address
from observability.permissions import Right
from observability.uploads.batches import KIND, close_batch, handed_out, named, open_batch, own
from observability.uploads.handler import LEFT_OUT
from observability.uploads.submit import Form, UploadResult, form_of, left_out, refused, take_in
from observability.views.decorators import RequestedAction, action, page
from observability.views.render import render_page
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import RecordBatch


def _asked(request: HttpRequest, batch: str | None = None) -> RequestedAction:
    if batch is None:
        return RequestedAction(action="upload", right=Right.UPLOAD, target_kind="record")
    batch_id = named(batch)
    return RequestedAction(
        action="upload", right=Right.UPLOAD, target_kind=KIND, target_id=batch_id or ""
    )


@page(Right.UPLOAD)
def upload(request: HttpRequest) -> HttpResponse:
    """Show the upload form."""
    return _form(request)


@action(_asked)
def files(request: HttpRequest) -> HttpResponse:
    """Accept the files of the form; return JSON to the script and a page to other clients."""
    wants_json = request.headers.get("Accept", "") == "application/json"
    try:
        form = form_of(request.POST, request.user)
        outcomes, batch_id = _taken(request, form, is_alone=wants_json)
        if not outcomes:
            raise UserError("choose a file first", code=UserErrorCode.VALUE_INVALID)
    except UserError as error:
        outcome = refused("", error, request.user)
        if wants_json:
            return _json([outcome])
        return _form(request, problem=error.message)
    if wants_json:
        return _json(outcomes)
    return _form(request, outcomes=outcomes, batch_id=batch_id)


@action(_asked)
def batch(request: HttpRequest) -> HttpResponse:
    """Open a batch for files that arrive one by one."""
    return JsonResponse({"batch": handed_out(open_batch(request.user), request.user)})


@action(_asked)
def close(request: HttpRequest, batch: str) -> HttpResponse:
    """Close a batch of the same user; a second close changes nothing."""
    try:
        batch_id = own(batch, request.user)
    except UserError as error:
        refused("", error, request.user, kind=KIND, target_id=named(batch) or "")
        raise BadRequest from error
    close_batch(batch_id, request.user)
    return JsonResponse({"batch": batch})


def _taken(
    request: HttpRequest, form: Form, *, is_alone: bool
) -> tuple[list[UploadResult], UUID | None]:
    """Accept all files of the request; several files make a batch of records."""
    uploaded = cast("list[TemporaryUploadedFile]", request.FILES.getlist("files"))
    not_kept = getattr(request, LEFT_OUT, ())
    if is_alone and len(uploaded) + len(not_kept) > 1:
        raise UserError(
            "send one file at a time; none of these was taken in", code=UserErrorCode.VALUE_INVALID
        )
    outcomes = [left_out(name, code, request.user) for name, code in not_kept]
    opened = None
    if not is_alone and len(uploaded) > 1:
        opened = open_batch(request.user)
        form = replace(form, batch_id=opened)
    try:
        for file in uploaded:
            with file:
                outcomes.append(
                    take_in(
                        file,
                        form,
                        actor=request.user,
                        user_agent=request.headers.get("User-Agent", "")[:500],
                        ip_address=client_address(request),
                    )
                )
    finally:
        if opened is not None:
            close_batch(opened, request.user)
    kept = opened is not None and RecordBatch.objects.filter(id=opened).exists()
    return outcomes, opened if kept else None


def _form(
    request: HttpRequest,
    *,
    outcomes: list[UploadResult] | None = None,
    batch_id: UUID | None = None,
    problem: str = "",
) -> HttpResponse:
    posted = request.POST
    return render_page(
        request,
        "console/upload.html",
        "Upload",
        # A corrected form needs a new token; a double click sends the same token twice.
        token=uuid4(),
        patient=posted.get("patient", ""),
        priority=posted.get("priority", "0"),
        force=posted.get("force") == "1",
        limit_mb=settings.MAX_UPLOAD_MB,
        most_files=settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        outcomes=outcomes or [],
        taken=sum(each.record_id is not None for each in outcomes or []),
        batch_id=batch_id,
        problem=problem,
        words=("waiting", "running", "done", "failed"),
    )


def _json(outcomes: list[UploadResult]) -> JsonResponse:
    if len(outcomes) != 1:
        raise BadRequest
    (each,) = outcomes
    answer = {
        "record": str(each.record_id) if each.record_id else None,
        "url": reverse("admin:record", args=[each.record_id]) if each.record_id else None,
        "repeated": each.is_repeated,
        "code": each.code,
        "message": each.message,
    }
    response = JsonResponse(answer)
    response["Cache-Control"] = "no-store"
    return response
