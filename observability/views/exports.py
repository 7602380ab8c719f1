"""The download of an export. The audit has the row before the first byte is sent."""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpRequest, HttpResponse

from observability.permissions import Right
from observability.phi.downloads import audited_export
from observability.views.decorators import PhiResponse, phi
from pipeline.core.errors import PipelineError, UserError, UserErrorCode
from pipeline.exports.download import Download, download
from pipeline.exports.formats import Format

_ANSWERS = {
    UserErrorCode.RECORD_INCOMPLETE: HTTPStatus.CONFLICT,
    UserErrorCode.VALUE_INVALID: HTTPStatus.BAD_REQUEST,
}


@phi
def export(request: HttpRequest, record_id: UUID) -> PhiResponse:
    """Send the results of a record as a file (`?format=fhir`, `&incomplete=on`).

    Needs the right to export beside the right to read PHI. A refusal is one line.
    """
    if not request.user.has_perm(Right.EXPORT.permission):
        raise PermissionDenied
    asked = request.GET.get("format", "")

    def make() -> Download:
        if asked not in list(Format):
            names = ", ".join(Format)
            raise UserError(f"Choose a format: {names}.", code=UserErrorCode.VALUE_INVALID)
        return download(
            record_id, Format(asked), allow_incomplete=request.GET.get("incomplete") == "on"
        )

    try:
        response = audited_export(request.user, record_id, make)
    except (UserError, PipelineError) as error:
        if error.code is UserErrorCode.NOT_FOUND:
            raise Http404 from None
        return _audited(_refusal(error), record_id)
    return _audited(response, record_id)


def _refusal(error: UserError | PipelineError) -> HttpResponse:
    status = (
        _ANSWERS.get(error.code, HTTPStatus.CONFLICT)
        if isinstance(error, UserError)
        else HTTPStatus.SERVICE_UNAVAILABLE
    )
    line = f"{error.message} ({error.code})"
    return HttpResponse(line, "text/plain; charset=utf-8", status)


def _audited(response: HttpResponse | FileResponse, record_id: UUID) -> PhiResponse:
    return PhiResponse(
        response=response,  # type: ignore[arg-type]  # a stream is a response too
        target_kind="record",
        target_id=record_id,
        is_written_down=True,
    )
