"""The periodic task that runs bulk operations, a few seconds of items per tick.

Each item's result is written in the transaction of its action. So a scheduler that is killed
continues where it stopped.
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
from pipeline.core.redaction import redacted

logger = logging.getLogger(__name__)

SLICE_S = 5.0
"""Longest time per tick in seconds; other periodic tasks wait meanwhile."""
READ = 50
"""Items between two checks for an abort."""
TRIES = 5
"""Ticks in which the database may prevent an item; after that the item has failed."""


def advance(slice_s: float = SLICE_S) -> str:
    """Continue every unfinished operation; return how many items were settled.

    The scheduler runs this as a periodic task (`settings.PERIODIC_TASKS`).
    """
    ends = time.monotonic() + slice_s
    settled = 0
    for operation in BulkOperation.objects.filter(finished_at=None).order_by("created_at", "id"):
        after = -1
        while time.monotonic() < ends and (items := _some(operation, after)):
            # An item that stays waiting is tried again at the next tick and delays no other item.
            after = items[-1].position
            settled += sum(_settle(operation, item) for item in items)
    return f"settled {settled}" if settled else ""


def _some(operation: BulkOperation, after: int) -> Sequence[BulkItem]:
    """Return the next waiting items; finish the operation if none is left."""
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
    """Apply the action to one item; return False if the item must wait for the database."""
    try:
        with transaction.atomic():
            reason = KINDS[operation.action].settle(candidate_of(item), operation)
            _note(item, BulkItem.SKIPPED if reason else BulkItem.DONE, reason)
    except UserError as error:
        # The action's own guard: the job's state has changed since the preview.
        _note(item, BulkItem.SKIPPED, error.message)
    except Exception as error:  # noqa: BLE001 - one item's error must not stop the other items
        logger.warning("bulk item %s failed: %s", item.id, redacted(error))
        if is_away(error) and item.tries + 1 < TRIES:
            BulkItem.objects.filter(id=item.id).update(tries=F("tries") + 1)
            return False
        _note(item, BulkItem.FAILED, type(error).__name__)
    return True


def _note(item: BulkItem, state: str, message: str) -> None:
    BulkItem.objects.filter(id=item.id, state=BulkItem.WAITING).update(
        state=state, message=message, settled_at=timezone.now()
    )
