"""Make a mass action from its preview, and ask it to stop.

Imports the console's models, the audit and the kinds of actions. The token of the form is
unique, so that a double click starts one action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.utils import timezone

from observability import audit
from observability.bulk.kinds import Kind
from observability.models import BulkItem, BulkOperation
from pipeline.errors import UserError
from pipeline.preview import Candidate
from pipeline.reasons import ReasonError, stated
from pipeline.states import Step
from pipeline.transitions import Scope


def start(
    kind: Kind,
    asked: Mapping[str, str],
    *,
    reason: str,
    token: UUID,
    actor: AbstractBaseUser | AnonymousUser,
) -> BulkOperation:
    """Make a mass action of what a filter finds now; the clock runs it.

    A token that was used gives the operation that it made. Raises UserError without a reason, or
    where nothing is eligible; that is written down as refused.
    """
    try:
        return _start(kind, asked, stated(reason), token, actor)
    except UserError as error:
        audit.record(
            actor,
            kind.name,
            target_kind=audit.BULK_OPERATION,
            reason="" if isinstance(error, ReasonError) else stated(reason),
            result=audit.Result.REFUSED,
            facts={"said": error.message},
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
        return made
    found, fields = kind.look(asked, timezone.now())
    if not found.eligible:
        raise UserError(f"there is nothing to {kind.name}")
    with transaction.atomic():
        operation, is_new = BulkOperation.objects.get_or_create(
            token=token,
            defaults={
                "verb": kind.name,
                "selection": fields,
                "expected": {
                    "jobs": len(found.eligible),
                    "ineligible": found.reasons,
                    "calls": found.calls,
                    "pages": found.pages,
                    "input_tokens": found.input_tokens,
                    "cost_usd": str(found.cost_usd),
                    "quota_minutes": round(found.quota_minutes, 2),
                },
                "reason": reason,
                "requested_by": actor.get_username(),
            },
        )
        if not is_new:
            return operation
        BulkItem.objects.bulk_create(
            [_item(operation, place, each) for place, each in enumerate(found.eligible)],
            batch_size=1000,
        )
        audit.record(
            actor,
            kind.name,
            target_kind=audit.BULK_OPERATION,
            target_id=operation.id,
            reason=operation.reason,
            facts={**operation.selection, **operation.expected},
        )
    return operation


def abort(operation: BulkOperation, actor: AbstractBaseUser | AnonymousUser) -> None:
    """Ask an action to stop; items that it has not come to are left alone."""
    with transaction.atomic():
        asked = BulkOperation.objects.filter(
            id=operation.id, finished_at=None, abort_requested_at=None
        ).update(abort_requested_at=timezone.now(), abort_requested_by=actor.get_username())
        if asked:
            audit.record(actor, "abort", target_kind=audit.BULK_OPERATION, target_id=operation.id)


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


def _item(operation: BulkOperation, place: int, of: Candidate) -> BulkItem:
    scope = {
        name: None if ids is None else [str(each) for each in ids]
        for name, ids in asdict(of.scope).items()
    }
    return BulkItem(
        operation=operation,
        place=place,
        job_id=of.job_id,
        shell_file_id=of.shell_file_id,
        step=of.step,
        scope=scope,
    )
