"""A work item changes its status only along the arrows of `WORK_MOVES`."""

from __future__ import annotations

from itertools import product

import pytest
from django.utils import timezone

from pipeline.core.errors import ErrorCode
from pipeline.core.states import WORK_MOVES, WorkStatus
from pipeline.models import Batch


@pytest.mark.parametrize(("before", "after"), list(product(WorkStatus, WorkStatus)))
def test_a_work_item_takes_only_the_documented_arrows(
    before: WorkStatus, after: WorkStatus
) -> None:
    batch = Batch(status=before)

    if before is after or (before, after) in WORK_MOVES:
        _move(batch, after)
        assert batch.status == after
    else:
        with pytest.raises(ValueError, match="never moves"):
            _move(batch, after)
        assert batch.status == before


def _move(batch: Batch, status: WorkStatus) -> None:
    match status:
        case WorkStatus.PENDING:
            batch.interrupt()
        case WorkStatus.PROCESSING:
            batch.begin(timezone.now())
        case WorkStatus.SUCCEEDED:
            batch.succeed({}, {"entities_detected": 0, "zones_detected": 0}, timezone.now())
        case WorkStatus.FAILED:
            batch.fail(ErrorCode.INTERNAL_ERROR, "it failed", timezone.now())
