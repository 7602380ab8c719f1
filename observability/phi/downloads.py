"""The download of an export, for the console and for the HTTP API."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.http import FileResponse

from observability.audit import log
from pipeline.core.errors import PipelineError, UserError, UserErrorCode
from pipeline.exports.download import Download


def audited_export(actor: log.Actor, record_id: UUID, make: Callable[[], Download]) -> FileResponse:
    """Make an export; the audit has the row before the first byte is sent.

    Raises the UserError or PipelineError of `make`. The audit has the refusal, unless there is no
    such record.
    """
    try:
        made = make()
    except (UserError, PipelineError) as error:
        if error.code is not UserErrorCode.NOT_FOUND:
            log.record(
                actor,
                log.EXPORT,
                target_kind="record",
                target_id=record_id,
                result=log.AuditResult.REFUSED,
                facts={"code": error.code.value},
            )
        raise
    log.record(
        actor,
        log.EXPORT,
        target_kind="record",
        target_id=record_id,
        facts=made.exported.facts(),
    )
    response = FileResponse(
        made.file, as_attachment=True, filename=made.name, content_type=made.media_type
    )
    response["Content-Length"] = str(made.exported.size_bytes)
    response["X-Content-Type-Options"] = "nosniff"
    return response
