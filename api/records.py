"""The operations on records: submit, list, status, drill-down, retry and cancel. None shows PHI."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import P, QueryEx, Router

from api.access import (
    BearerToken,
    client_of_request,
    not_found,
    owner_of,
    require_own,
)
from api.bodies import ReceivedFile, received_file
from api.idempotency import Answer, answer_before, once
from api.openapi import ANSWERS, IDEMPOTENT, UPLOAD
from api.pagination import DEFAULT, Cursor, Limit, cursor_of, place_of_rows
from api.schemas import Acted, DrillDownDocument, Reasoned, RecordsPage, RecordState, Submitted
from api.scopes import TokenScope
from api.states import shown_rows, states
from api.upload_slots import upload_slot
from medproc.reading import reading
from medproc.web.client_address import client_address
from observability.audit import log
from observability.drilldown.explain import drilled
from observability.drilldown.queries import rows_of
from observability.drilldown.tree import tree
from observability.listing.pagination import keyset_page, sifted_page
from observability.uploads.submit import PRIORITIES, create_audited, refused
from pipeline.core.errors import PipelineError, UserError, UserErrorCode
from pipeline.core.states import JobStatus
from pipeline.models import ShellFile
from pipeline.operations import operator_actions
from pipeline.stages.intake import StoredSubmission, Submission, stored_submission

router = Router(tags=["records"])

READ = 10_000
"""Records that are examined for a status, which has no index of its own."""


@router.post(
    "",
    auth=BearerToken(TokenScope.SUBMIT),
    response={201: Submitted, **ANSWERS.submit},
    openapi_extra=UPLOAD,
    operation_id="submit_record",
    summary="Submit a record",
)
def submit(
    request: HttpRequest,
    priority: QueryEx[int, P(ge=PRIORITIES.start, lt=PRIORITIES.stop)] = 0,
    force: QueryEx[bool, P(description="Extract again although results could be reused.")] = False,
) -> HttpResponse:
    """Submit one file. The answer comes when the file is stored; the passes run afterwards.

    `patient` is your reference of the patient. References of different clients never meet.
    """
    client = client_of_request(request)
    if unknown := set(request.GET) - {"priority", "force"}:
        raise UserError(
            f"{len(unknown)} unknown parameters; the parameters are `priority` and `force`",
            code=UserErrorCode.VALUE_INVALID,
        )
    try:
        with upload_slot(client.id), received_file(request) as file:
            parts = ["submit", str(priority), str(force), file.patient, file.name, file.sha256]
            if answered := answer_before(request, client, parts):
                return answered
            # A bucket can answer late, so the file is stored before the transaction of `once`.
            with stored_submission(_submission(request, file, priority, force)) as stored:
                return once(request, client, parts, lambda: _created(request, stored, file))
    except PipelineError as error:
        refused("", error, request.user)
        raise


@router.get(
    "",
    auth=BearerToken(TokenScope.READ),
    response={200: RecordsPage, **ANSWERS.listed},
    operation_id="list_records",
    summary="List records",
)
def listed(
    request: HttpRequest,
    status: QueryEx[JobStatus | None, P(description="Only records in this state.")] = None,
    limit: Limit = DEFAULT,
    cursor: Cursor = None,
) -> RecordsPage:
    """Return the client's records, newest first.

    With a status, a page can have fewer records than the limit, or none; `next_cursor` decides
    whether more follow.
    """
    place = place_of_rows(cursor)
    own = shown_rows().filter(owner=owner_of(request))
    with reading():
        if status is None:
            page = keyset_page(own, "created_at", place, limit)
        else:

            def sieve(rows: QuerySet[ShellFile, ShellFile]) -> QuerySet[ShellFile, ShellFile]:
                return rows.filter(jobs__status=status)

            page = sifted_page(own, sieve, "created_at", place, limit, READ)
        return RecordsPage(items=states(page.rows), next_cursor=cursor_of(page.next_place))


@router.get(
    "/{uuid:record_id}",
    auth=BearerToken(TokenScope.READ),
    response={200: RecordState, **ANSWERS.one},
    operation_id="get_record",
    url_name="record",
    summary="Read the status of a record",
)
def status(request: HttpRequest, record_id: UUID) -> RecordState:
    """Return the state of a record: passes, progress, warnings, failure and review."""
    with reading():
        found = shown_rows().filter(id=record_id, owner=owner_of(request)).first()
        if found is None:
            raise not_found()
        return states([found])[0]


@router.get(
    "/{uuid:record_id}/drill-down",
    auth=BearerToken(TokenScope.READ),
    response={200: DrillDownDocument, **ANSWERS.one},
    operation_id="drill_down",
    summary="Read why a record failed",
)
def drill_down(request: HttpRequest, record_id: UUID) -> dict[str, Any]:
    """Return the tree of passes, encounters, batches and calls, with attempts and errors."""
    with reading():
        require_own(request, record_id)
        rows = rows_of(record_id)
        return drilled(rows, tree(rows)).as_json()


@router.post(
    "/{uuid:record_id}/retry",
    auth=BearerToken(TokenScope.ACT),
    response={200: Acted, **ANSWERS.acted},
    openapi_extra=IDEMPOTENT,
    operation_id="retry_record",
    summary="Retry the failed work of a record",
)
def retry(request: HttpRequest, record_id: UUID, body: Reasoned) -> HttpResponse:
    """Retry what failed; successful work is never sent again. 409 if there is nothing to retry."""

    def act(by: str) -> str:
        operator_actions.record_retry(record_id, reason=body.reason, by=by)
        return JobStatus.PENDING

    return _once_audited(request, "retry", record_id, body.reason, act)


@router.post(
    "/{uuid:record_id}/cancel",
    auth=BearerToken(TokenScope.ACT),
    response={200: Acted, **ANSWERS.acted},
    openapi_extra=IDEMPOTENT,
    operation_id="cancel_record",
    summary="Cancel a record",
)
def cancel(request: HttpRequest, record_id: UUID, body: Reasoned) -> HttpResponse:
    """Cancel a waiting record at once; a running step keeps what succeeded and then ends."""

    def act(by: str) -> str:
        done = operator_actions.job_cancel(record_id, reason=body.reason, by=by)
        return JobStatus.CANCELLED if done.is_ended else "cancelling"

    return _once_audited(request, "cancel", record_id, body.reason, act)


def _submission(request: HttpRequest, file: ReceivedFile, priority: int, force: bool) -> Submission:
    name = client_of_request(request).name
    return Submission(
        path=file.path,
        received_sha256=file.sha256,
        filename=file.name or None,
        # Two clients number their patients alike, and mean different people.
        patient_reference=f"{name}/{file.patient}" if file.patient else None,
        priority=priority,
        owner=owner_of(request),
        is_forced=force,
        user_agent=request.headers.get("User-Agent", "")[:500] or None,
        ip_address=client_address(request),
    )


def _created(request: HttpRequest, stored: StoredSubmission, file: ReceivedFile) -> Answer:
    received = create_audited(
        # `once` gives up its transaction after an error.
        stored,
        actor=request.user,
        size_bytes=file.size_bytes,
        savepoint=False,
    )
    return HTTPStatus.CREATED, _acted(received.shell_file_id, JobStatus.PENDING)


def _acted(record_id: UUID, state: str) -> dict[str, Any]:
    url = reverse("api:record", args=[record_id])
    return {"id": str(record_id), "status": str(state), "url": url}


def _once_audited(
    request: HttpRequest, action: str, record_id: UUID, reason: str, act: Callable[[str], str]
) -> HttpResponse:
    """Carry out an action in the name of the client; `act` returns the new state."""
    require_own(request, record_id)
    actor = request.user

    def audited() -> Answer:
        with log.audited(actor, action, target_kind="record", target_id=record_id, reason=reason):
            state = act(actor.get_username())
        return HTTPStatus.OK, _acted(record_id, state)

    return once(request, client_of_request(request), [action, str(record_id), reason], audited)
