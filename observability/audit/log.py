"""The one way to write down what somebody did, or read of a patient.

Imports the console's models. A row is written in the transaction of what it tells of, so that
neither stands without the other; it holds ids, codes and counts, and the reason as it was typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction

from observability.models import AuditEvent
from pipeline.core.errors import UserError
from pipeline.operations.reasons import ReasonError, stated

READ_PHI = "read_phi"
"""The verb of every reading of document text, page images, prompts and replies."""

ANONYMOUS = "anonymous"
"""Who has not logged in."""
BULK_OPERATION = "bulk operation"
"""What a mass action is called as a target."""

Actor = AbstractBaseUser | AnonymousUser | str
"""A user, or a name such as `command line: root@host`."""


class Result(StrEnum):
    """What came of a verb."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


def record(
    actor: Actor,
    verb: str,
    *,
    target_kind: str,
    target_id: object = "",
    reason: str = "",
    result: Result = Result.DONE,
    facts: Mapping[str, Any] | None = None,
) -> AuditEvent:
    """Write one audit row."""
    name = actor if isinstance(actor, str) else actor.get_username() or ANONYMOUS
    return AuditEvent.objects.create(
        actor=name,
        actor_id=None if isinstance(actor, str) else actor.pk,
        verb=verb,
        target_kind=target_kind,
        target_id=str(target_id),
        reason=reason,
        result=result,
        facts=dict(facts or {}),
    )


@contextmanager
def deed(
    actor: Actor,
    verb: str,
    *,
    target_kind: str,
    target_id: object = "",
    reason: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Let a verb be done and write it down, in one transaction; write a UserError down as refused.

    Gives the facts of the row, for whoever does the verb to fill in.
    """
    facts: dict[str, Any] = {}
    row: dict[str, Any] = {"target_kind": target_kind, "target_id": target_id}
    row["reason"] = _storable(reason)
    try:
        with transaction.atomic():
            yield facts
            record(actor, verb, **row, facts=facts)
    except UserError as error:
        record(
            actor,
            verb,
            **row,
            result=Result.REFUSED,
            facts={"code": error.code.value, "said": error.message},
        )
        raise


def _storable(reason: str | None) -> str:
    """Return a reason that can be kept; of another one, which is refused, nothing is."""
    try:
        return stated(reason)
    except ReasonError:
        return ""
