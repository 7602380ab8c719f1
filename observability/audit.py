"""The one way to write down what somebody did, or read of a patient.

Imports the console's models. A row is written in the transaction of what it tells of, so that
neither stands without the other; it holds ids, codes and counts, and the reason as it was typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from observability.models import AuditEvent

READ_PHI = "read_phi"
"""The verb of every reading of document text, page images, prompts and replies."""


class Result(StrEnum):
    """What came of a verb."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


def record(
    actor: AbstractBaseUser | AnonymousUser | str,
    verb: str,
    *,
    target_kind: str,
    target_id: object = "",
    reason: str = "",
    result: Result = Result.DONE,
    facts: Mapping[str, Any] | None = None,
) -> AuditEvent:
    """Write one audit row; `actor` is a user, or a name such as `command line`."""
    name = actor if isinstance(actor, str) else actor.get_username()
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
