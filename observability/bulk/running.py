"""Run what was started: a few seconds of items at each tick of the clock, until all have settled.

Imports the console's models and the kinds of actions. Each item settles in the
transaction of what it does, so a clock that is killed goes on where it was.
"""

from __future__ import annotations

import logging
import time

from django.db import DatabaseError, transaction
from django.utils import timezone

from observability.bulk.kinds import KINDS
from observability.bulk.operations import candidate_of
from observability.models import BulkItem, BulkOperation
from pipeline.errors import PipelineError, UserError
from pipeline.scrub import scrubbed

logger = logging.getLogger(__name__)

SLICE_S = 5.0
"""Longest that one tick works on items; other duties wait meanwhile."""
READ = 50
"""Items between two looks whether it was aborted."""


def advance(slice_s: float = SLICE_S) -> str:
    """Go on with every operation that has not finished; say how many items settled.

    A duty of the clock, by `settings.CLOCK_DUTIES`.
    """
    ends = time.monotonic() + slice_s
    settled = 0
    for operation in BulkOperation.objects.filter(finished_at=None).order_by("created_at", "id"):
        while time.monotonic() < ends:
            number = _some(operation)
            settled += number
            if not number:
                break
    return f"settled {settled}" if settled else ""


def _some(operation: BulkOperation) -> int:
    """Settle some items, or finish the operation where none is left; count them."""
    operation.refresh_from_db()
    waiting = operation.items.filter(state=BulkItem.WAITING)
    if operation.abort_requested_at is not None:
        waiting.update(state=BulkItem.LEFT, said="aborted", settled_at=timezone.now())
    items = list(waiting.order_by("place")[:READ])
    if not items:
        BulkOperation.objects.filter(id=operation.id, finished_at=None).update(
            finished_at=timezone.now()
        )
        return 0
    BulkOperation.objects.filter(id=operation.id, started_at=None).update(started_at=timezone.now())
    for item in items:
        _settle(operation, item)
    return len(items)


def _settle(operation: BulkOperation, item: BulkItem) -> None:
    try:
        with transaction.atomic():
            left = KINDS[operation.verb].settle(candidate_of(item), operation)
            _note(item, BulkItem.LEFT if left else BulkItem.DONE, left)
    except UserError as error:
        # The verb's own guard: it does not stand so any more.
        _note(item, BulkItem.LEFT, error.message)
    except (PipelineError, DatabaseError) as error:
        logger.warning("bulk item %s failed: %s", item.id, scrubbed(error))
        _note(item, BulkItem.FAILED, type(error).__name__)


def _note(item: BulkItem, state: str, said: str) -> None:
    BulkItem.objects.filter(id=item.id, state=BulkItem.WAITING).update(
        state=state, said=said, settled_at=timezone.now()
    )
