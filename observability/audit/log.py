"""The only writer of audit rows: operator actions and readings of PHI.

A row is written in the transaction of its action, so neither exists without the other. A row holds
ids, codes, counts, and the reason as typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction

from observability.audit.actor import command_line
from observability.models import AuditEvent
from pipeline.core.errors import MedprocError, UserError
from pipeline.operations.reasons import ReasonError, stated

READ_PHI = "read_phi"
"""The audit's name for every reading of document text, page images, prompts and replies."""
EXPORT = "export"
"""The audit's name for an export of a record's results."""

ANONYMOUS = "anonymous"
"""The audit's name for a user who is not logged in."""
SCHEDULER = "scheduler"
"""The audit's name for the periodic tasks."""
BULK_OPERATION = "bulk operation"
"""The audit's name for a bulk operation as a target."""

RequestUser = AbstractBaseUser | AnonymousUser
"""The user of a request; a caller that checks a right excludes the anonymous user."""
Actor = RequestUser | str
"""A user, or a name such as `command line: root@host`."""


class AuditResult(StrEnum):
    """The result of an action."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


def record(
    actor: Actor,
    action: str,
    *,
    target_kind: str,
    target_id: object = "",
    reason: str = "",
    result: AuditResult = AuditResult.DONE,
    facts: Mapping[str, Any] | None = None,
) -> AuditEvent:
    """Write one audit row."""
    name = actor if isinstance(actor, str) else actor.get_username() or ANONYMOUS
    return AuditEvent.objects.create(
        actor=name,
        actor_id=None if isinstance(actor, str) else actor.pk,
        action=action,
        target_kind=target_kind,
        target_id=str(target_id),
        reason=reason,
        result=result,
        facts=dict(facts or {}),
    )


def record_command(
    action: str,
    *,
    target_kind: str,
    target_id: object,
    refusal: MedprocError | None,
    facts: Mapping[str, Any],
) -> None:
    """Write the row of a command of the pipeline (`settings.COMMAND_AUDIT`), done or refused."""
    row: dict[str, Any] = {"target_kind": target_kind, "target_id": target_id, "facts": facts}
    if refusal is not None:
        code = getattr(refusal, "code", None)
        row["result"] = AuditResult.REFUSED
        row["facts"] = {**facts, "code": code and code.value, "said": refusal.message}
    record(command_line(), action, **row)


@contextmanager
def audited(
    actor: Actor,
    action: str,
    *,
    target_kind: str,
    target_id: object = "",
    reason: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Run an action and write its audit row, in one transaction; write a UserError as refused.

    Yields the facts of the row; the caller fills them in.
    """
    facts: dict[str, Any] = {}
    row: dict[str, Any] = {"target_kind": target_kind, "target_id": target_id}
    row["reason"] = _storable(reason)
    try:
        with transaction.atomic():
            yield facts
            record(actor, action, **row, facts=facts)
    except UserError as error:
        record(
            actor,
            action,
            **row,
            result=AuditResult.REFUSED,
            facts={"code": error.code.value, "said": error.message},
        )
        raise


def _storable(reason: str | None) -> str:
    """Return a reason that can be stored; an invalid reason is refused and not stored at all."""
    try:
        return stated(reason)
    except ReasonError:
        return ""
