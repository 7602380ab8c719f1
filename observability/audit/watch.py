"""The periodic verification of the audit: new links at once, all links once a day.

Each run verifies a limited number of links, so its cost does not grow with the audit. A break
raises an alarm in `health` and on the overview. Only `manage.py verify_audit` ends the alarm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from medproc.timing import scaled
from observability.audit import heads
from observability.audit.chain import (
    BrokenChainError,
    ChainHead,
    check_heads,
    check_loose,
    verify,
    walk,
)
from observability.audit.log import Actor, record
from observability.models import AuditCheck
from pipeline.models.fields import ClockTimestamp

LINKS = 20_000
"""Links of one run for new links, and again for the daily verification: 5.7 million a day."""
FULL_EVERY_S = 24 * 60 * 60.0
LOOSE_SINCE = timedelta(hours=1)
"""How far back a run looks for events without a link; the daily verification looks at all."""

logger = logging.getLogger(__name__)


def examine() -> str:
    """Verify a part of the audit, as the periodic task `verify_audit`; raise the alarm.

    A break at the end of the chain can vanish when new links follow. So a run never ends an alarm.
    """
    check, _ = AuditCheck.objects.get_or_create(id=AuditCheck.ONLY)
    try:
        check_heads([*heads.recorded(), *_verified(check)])
        check_loose(check.checked_at - LOOSE_SINCE if check.checked_at else None)
        fresh = walk(_head(check.fresh_seq, check.fresh_hash), LINKS)
        full = _daily(check)
    except BrokenChainError as error:
        _raise_alarm(str(error))
        return ""
    new = {"fresh_seq": fresh.seq, "fresh_hash": fresh.hash} if fresh else {}
    AuditCheck.objects.filter(id=check.id).update(checked_at=ClockTimestamp(), **new, **full)
    return ""


def verify_all(known: Iterable[ChainHead] = (), *, by: Actor) -> ChainHead | None:
    """Verify every link with all recorded heads, at once; raise the alarm, or end it audited.

    Raises BrokenChainError.
    """
    try:
        last = verify([*heads.recorded(), *known])
    except BrokenChainError as error:
        _raise_alarm(str(error))
        raise
    with transaction.atomic():
        alarm = AuditCheck.objects.select_for_update().exclude(problem="").first()
        if alarm is not None:
            facts = {"alarm": alarm.problem}
            record(by, "end_alarm", target_kind="audit", facts=facts)
            alarm.delete()
    return last


def alarms() -> list[str]:
    """Return the alarm as a sentence for `health` and the overview."""
    found = AuditCheck.objects.exclude(problem="").first()
    return [f"the audit was tampered with: {found.problem}"] if found else []


def _daily(check: AuditCheck) -> dict[str, object]:
    """Continue the daily verification; return the changed columns."""
    begun, now = check.full_started_at, timezone.now()
    if begun is not None and check.full_finished_at is not None:
        # A time ahead of the clock, written by another role or by a wrong clock, holds nothing up.
        if timedelta(0) <= now - begun < timedelta(seconds=scaled(FULL_EVERY_S)):
            return {}
        begun = None
    at = None if begun is None else _head(check.full_seq, check.full_hash)
    reached = walk(at, LINKS)
    columns: dict[str, object] = {
        "full_seq": reached.seq if reached else 0,
        "full_hash": reached.hash if reached else "",
        "full_started_at": begun or now,
        "full_finished_at": None,
    }
    if reached is not None and reached.seq - (at.seq if at else 0) >= LINKS:
        return columns
    check_loose()
    return {**columns, "full_finished_at": now}


def _raise_alarm(problem: str) -> None:
    AuditCheck.objects.get_or_create(id=AuditCheck.ONLY)
    AuditCheck.objects.filter(id=AuditCheck.ONLY).update(
        problem=problem,
        broken_at=Coalesce(F("broken_at"), ClockTimestamp()),
        checked_at=ClockTimestamp(),
    )
    logger.error("the audit was tampered with: %s", problem, extra={"action": "audit_broken"})


def _verified(check: AuditCheck) -> list[ChainHead]:
    """Return the links up to which earlier runs verified."""
    found = (_head(check.fresh_seq, check.fresh_hash), _head(check.full_seq, check.full_hash))
    return [each for each in found if each is not None]


def _head(seq: int, hash_: str) -> ChainHead | None:
    return ChainHead(seq, hash_) if seq else None
