"""Starting a bulk operation from its preview, and asking it to stop.

The token of the form is unique, so a double click starts only one operation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from observability.actions.bulk_kinds import BulkOperationKind
from observability.actions.preview_digest import PreviewDigest
from observability.audit import log
from observability.models import BulkItem, BulkOperation
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import Step
from pipeline.operations.preview import Preview, RetryCandidate, narrowed
from pipeline.operations.reasons import ReasonError, stated
from pipeline.transitions import Scope

REASONS_KEPT = 20
"""Number of reasons that are stored separately; all further reasons are counted together."""
NOT_SEEN = "the job was not in the preview"
MOVED_ON = "the job changed after the preview"


def start(
    kind: BulkOperationKind,
    asked: Mapping[str, str],
    *,
    reason: str,
    token: UUID,
    actor: log.RequestUser,
) -> BulkOperation:
    """Start a bulk operation for the jobs that were in the preview and still match the filter.

    The scheduler runs the operation. A token that the same user has used for the same action
    returns the operation that it started. Raises UserError if the reason is missing, if the token
    is another form's, or if no job is eligible; the refusal is audited.
    """
    try:
        return _start(kind, asked, stated(reason), token, actor)
    except UserError as error:
        log.record(
            actor,
            kind.name,
            target_kind=log.BULK_OPERATION,
            reason="" if isinstance(error, ReasonError) else stated(reason),
            result=log.AuditResult.REFUSED,
            facts={"message": error.message},
        )
        raise


def _start(
    kind: BulkOperationKind,
    asked: Mapping[str, str],
    reason: str,
    token: UUID,
    actor: log.RequestUser,
) -> BulkOperation:
    if (made := BulkOperation.objects.filter(token=token).first()) is not None:
        return _same(made, kind, actor)
    found, fields = kind.look(asked, timezone.now())
    if not found.eligible:
        raise UserError(f"there is nothing to {kind.name}", code=UserErrorCode.STATE_CONFLICT)
    seen = PreviewDigest(asked.get("seen", ""))
    found = narrowed(found, seen.__contains__, NOT_SEEN)
    if not found.eligible:
        raise UserError(
            f"no job of your preview is left to {kind.name}; open the preview again",
            code=UserErrorCode.STATE_CONFLICT,
        )
    with transaction.atomic():
        operation, is_new = BulkOperation.objects.get_or_create(
            token=token,
            defaults={
                "action": kind.name,
                "selection": fields,
                "expected": _promise(found, moved_on=len(seen) - len(found.eligible)),
                "reason": reason,
                "requested_by": actor.get_username(),
            },
        )
        if not is_new:
            return _same(operation, kind, actor)
        _insert(operation, found.eligible)
        log.record(
            actor,
            kind.name,
            target_kind=log.BULK_OPERATION,
            target_id=operation.id,
            reason=operation.reason,
            facts={**operation.selection, **operation.expected},
        )
    return operation


def _same(made: BulkOperation, kind: BulkOperationKind, actor: log.RequestUser) -> BulkOperation:
    """Return the operation of a token to its user. Raises UserError for another form's token."""
    if (made.action, made.requested_by) != (kind.name, actor.get_username()):
        raise UserError(
            "this form has already started another operation; open the preview again",
            code=UserErrorCode.FORM_EXPIRED,
        )
    return made


def abort(operation: BulkOperation, actor: log.RequestUser) -> None:
    """Ask an operation to stop; items that it has not reached are left alone."""
    with transaction.atomic():
        asked = BulkOperation.objects.filter(
            id=operation.id, finished_at=None, abort_requested_at=None
        ).update(abort_requested_at=timezone.now(), abort_requested_by=actor.get_username())
        if asked:
            log.record(actor, "abort", target_kind=log.BULK_OPERATION, target_id=operation.id)


def candidate_of(item: BulkItem) -> RetryCandidate:
    """Return the job of an item, with its part."""
    ids: dict[str, Any] = {
        name: None if of is None else tuple(UUID(each) for each in of)
        for name, of in item.scope.items()
    }
    return RetryCandidate(
        job_id=item.job_id,
        shell_file_id=item.shell_file_id,
        step=Step(item.step),
        scope=Scope(**ids),
        encounters=0,
        calls=0,
        pages=0,
        input_tokens=0,
    )


def _promise(preview: Preview, *, moved_on: int) -> dict[str, Any]:
    """Return the preview in the form to store; the number of reasons is limited."""
    reasons = preview.reasons | ({MOVED_ON: moved_on} if moved_on > 0 else {})
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    ineligible = dict(ordered[:REASONS_KEPT])
    if others := sum(number for _, number in ordered[REASONS_KEPT:]):
        ineligible["other reasons"] = others
    return {
        "jobs": len(preview.eligible),
        "is_capped": preview.is_capped,
        "ineligible": ineligible,
        "calls": preview.calls,
        "pages": preview.pages,
        "input_tokens": preview.input_tokens,
        "output_tokens": preview.output_tokens,
        "cost_usd": str(preview.cost_usd),
        "quota_minutes": round(preview.quota_minutes, 2),
    }


_ITEMS = """
INSERT INTO bulk_operation_items (operation_id, position, job_id, shell_file_id, step, scope)
SELECT %s, position - 1, job_id, record_id, step, scope::jsonb
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::text[])
  WITH ORDINALITY AS eligible (job_id, record_id, step, scope, position)
"""


def _insert(operation: BulkOperation, eligible: Sequence[RetryCandidate]) -> None:
    """Insert the items in one statement, because the ORM needs seconds for ten thousand rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            _ITEMS,
            [
                operation.id,
                [each.job_id for each in eligible],
                [each.shell_file_id for each in eligible],
                [each.step.value for each in eligible],
                [json.dumps(asdict(each.scope), default=str) for each in eligible],
            ],
        )
