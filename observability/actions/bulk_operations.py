"""Make a mass action from its preview, and ask it to stop.

Imports the console's models, the audit and the kinds of actions. The token of the form is
unique, so that a double click starts one action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import connection, transaction
from django.utils import timezone

from observability.actions.bulk_kinds import Kind
from observability.actions.preview_digest import Seen
from observability.audit import log
from observability.models import BulkItem, BulkOperation
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import Step
from pipeline.operations.preview import Candidate, Preview, narrowed
from pipeline.operations.reasons import ReasonError, stated
from pipeline.transitions import Scope

REASONS_KEPT = 20
"""Reasons that are kept by themselves; the others are counted together."""
NOT_SEEN = "it was not in the preview"
MOVED_ON = "it moved on after the preview"


def start(
    kind: Kind,
    asked: Mapping[str, str],
    *,
    reason: str,
    token: UUID,
    actor: AbstractBaseUser | AnonymousUser,
) -> BulkOperation:
    """Make a mass action of what its preview showed (`seen`) and the filter still finds.

    The clock runs it. A token that its user has used for the same verb gives the operation that it
    made. Raises UserError without a reason, with another's token, or where nothing of it is
    eligible; that is written down as refused.
    """
    try:
        return _start(kind, asked, stated(reason), token, actor)
    except UserError as error:
        log.record(
            actor,
            kind.name,
            target_kind=log.BULK_OPERATION,
            reason="" if isinstance(error, ReasonError) else stated(reason),
            result=log.Result.REFUSED,
            facts={"message": error.message},
        )
        raise


def _start(
    kind: Kind,
    asked: Mapping[str, str],
    reason: str,
    token: UUID,
    actor: AbstractBaseUser | AnonymousUser,
) -> BulkOperation:
    if (made := BulkOperation.objects.filter(token=token).first()) is not None:
        return _same(made, kind, actor)
    found, fields = kind.look(asked, timezone.now())
    if not found.eligible:
        raise UserError(f"there is nothing to {kind.name}", code=UserErrorCode.STATE_CONFLICT)
    seen = Seen(asked.get("seen", ""))
    found = narrowed(found, seen.__contains__, NOT_SEEN)
    if not found.eligible:
        raise UserError(
            f"nothing of what you saw is left to {kind.name}; look again",
            code=UserErrorCode.STATE_CONFLICT,
        )
    with transaction.atomic():
        operation, is_new = BulkOperation.objects.get_or_create(
            token=token,
            defaults={
                "verb": kind.name,
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


def _same(
    made: BulkOperation, kind: Kind, actor: AbstractBaseUser | AnonymousUser
) -> BulkOperation:
    """Return what a token has made, to who made it. Raises UserError for another form's token."""
    if (made.verb, made.requested_by) != (kind.name, actor.get_username()):
        raise UserError(
            "this form has started another action already; open the preview anew",
            code=UserErrorCode.FORM_EXPIRED,
        )
    return made


def abort(operation: BulkOperation, actor: AbstractBaseUser | AnonymousUser) -> None:
    """Ask an action to stop; items that it has not come to are left alone."""
    with transaction.atomic():
        asked = BulkOperation.objects.filter(
            id=operation.id, finished_at=None, abort_requested_at=None
        ).update(abort_requested_at=timezone.now(), abort_requested_by=actor.get_username())
        if asked:
            log.record(actor, "abort", target_kind=log.BULK_OPERATION, target_id=operation.id)


def candidate_of(item: BulkItem) -> Candidate:
    """Return what an item is about."""
    ids: dict[str, Any] = {
        name: None if of is None else tuple(UUID(each) for each in of)
        for name, of in item.scope.items()
    }
    return Candidate(
        job_id=item.job_id,
        shell_file_id=item.shell_file_id,
        step=Step(item.step),
        scope=Scope(**ids),
        encounters=0,
        calls=0,
        pages=0,
        input_tokens=0,
    )


def _promise(found: Preview, *, moved_on: int) -> dict[str, Any]:
    """Return what a preview says, as it is kept; the reasons are bounded."""
    reasons = found.reasons | ({MOVED_ON: moved_on} if moved_on > 0 else {})
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    ineligible = dict(ordered[:REASONS_KEPT])
    if others := sum(number for _, number in ordered[REASONS_KEPT:]):
        ineligible["other reasons"] = others
    return {
        "jobs": len(found.eligible),
        "is_capped": found.is_capped,
        "ineligible": ineligible,
        "calls": found.calls,
        "pages": found.pages,
        "input_tokens": found.input_tokens,
        "output_tokens": found.output_tokens,
        "cost_usd": str(found.cost_usd),
        "quota_minutes": round(found.quota_minutes, 2),
    }


_ITEMS = """
INSERT INTO bulk_operation_items (operation_id, position, job_id, shell_file_id, step, scope)
SELECT %s, position - 1, job_id, record_id, step, scope::jsonb
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::text[])
  WITH ORDINALITY AS eligible (job_id, record_id, step, scope, position)
"""


def _insert(operation: BulkOperation, eligible: Sequence[Candidate]) -> None:
    """Insert the items; one statement, since ten thousand rows of the ORM take seconds."""
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
