"""Run what was started: a few seconds of items at each tick of the clock, until all have settled.

Imports the console's models and the kinds of actions. Each item settles in the
transaction of what it does, so a clock that is killed goes on where it was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from observability.actions.bulk_kinds import KINDS
from observability.actions.bulk_operations import candidate_of
from observability.models import BulkItem, BulkOperation
from pipeline.core.db_errors import is_away
from pipeline.core.errors import UserError
from pipeline.core.redaction import scrubbed

logger = logging.getLogger(__name__)

SLICE_S = 5.0
"""Longest that one tick works on items; other duties wait meanwhile."""
READ = 50
"""Items between two looks whether it was aborted."""
TRIES = 5
"""Ticks in which the database may be in an item's way; then the item has failed."""


def advance(slice_s: float = SLICE_S) -> str:
    """Go on with every operation that has not finished; say how many items settled.

    A duty of the clock, by `settings.CLOCK_DUTIES`.
    """
    ends = time.monotonic() + slice_s
    settled = 0
    for operation in BulkOperation.objects.filter(finished_at=None).order_by("created_at", "id"):
        after = -1
        while time.monotonic() < ends and (items := _some(operation, after)):
            # What stays waiting has its turn at the next tick, and holds up nobody in this one.
            after = items[-1].position
            settled += sum(_settle(operation, item) for item in items)
    return f"settled {settled}" if settled else ""


def _some(operation: BulkOperation, after: int) -> Sequence[BulkItem]:
    """Return the next waiting items; finish the operation where none waits any more."""
    operation.refresh_from_db()
    waiting = operation.items.filter(state=BulkItem.WAITING)
    if operation.abort_requested_at is not None:
        waiting.update(state=BulkItem.SKIPPED, message="aborted", settled_at=timezone.now())
    items = list(waiting.filter(position__gt=after).order_by("position")[:READ])
    if items:
        BulkOperation.objects.filter(id=operation.id, started_at=None).update(
            started_at=timezone.now()
        )
    elif not waiting.exists():
        BulkOperation.objects.filter(id=operation.id, finished_at=None).update(
            finished_at=timezone.now()
        )
    return items


def _settle(operation: BulkOperation, item: BulkItem) -> bool:
    """Do it to one; False where it has to wait for the database."""
    try:
        with transaction.atomic():
            reason = KINDS[operation.verb].settle(candidate_of(item), operation)
            _note(item, BulkItem.SKIPPED if reason else BulkItem.DONE, reason)
    except UserError as error:
        # The verb's own guard: it does not stand so any more.
        _note(item, BulkItem.SKIPPED, error.message)
    except Exception as error:  # noqa: BLE001 - one item, whatever it meets, holds up no other
        logger.warning("bulk item %s failed: %s", item.id, scrubbed(error))
        if is_away(error) and item.tries + 1 < TRIES:
            BulkItem.objects.filter(id=item.id).update(tries=F("tries") + 1)
            return False
        _note(item, BulkItem.FAILED, type(error).__name__)
    return True


def _note(item: BulkItem, state: str, message: str) -> None:
    BulkItem.objects.filter(id=item.id, state=BulkItem.WAITING).update(
        state=state, message=message, settled_at=timezone.now()
    )
