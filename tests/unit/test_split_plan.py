"""The plan of splits holds replies only until their row has ended."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

from pipeline.execution.split_plan import SplitPlan
from pipeline.execution.step_work import AcceptedReply
from pipeline.models import ZoneResult


class Output(dict[str, Any]):
    """A reply that can be watched."""


class Work:
    """Two rows of one page each."""

    def __init__(self) -> None:
        self.rows = [ZoneResult(id=uuid4(), page_range_start=1, page_range_end=1) for _ in "ab"]

    def pages_of(self, row: ZoneResult) -> Sequence[int]:
        return (1,)


def test_the_reply_of_an_ended_row_is_forgotten() -> None:
    work = Work()
    plan: SplitPlan[ZoneResult] = SplitPlan(cast(Any, work))
    first, second = work.rows
    output = Output(enriched=[])
    watched = weakref.ref(output)

    assert plan.answer(plan[first.id, ""], AcceptedReply(output=output, counts={}))
    assert plan.output(first).output is output
    plan.forget(first)
    del output
    gc.collect()

    assert watched() is None
    assert [split.row for split in plan.open] == [second]
