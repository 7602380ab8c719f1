"""The one-time work that a worker does before it forks, so that each horse inherits the result.

Nothing here opens a connection or leaves a client, because a fork would share them.
"""

from __future__ import annotations

import gc

from rq.utils import import_attribute

from pipeline.models.work_tables import WORK_TABLES
from pipeline.providers import factory
from pipeline.providers.config import ProviderConfig
from pipeline.queueing.queues import RUN_STEP

WARM_AT_STEP = 2
"""The step with provider calls before which a worker warms the engine, counted from 1."""


def warm() -> None:
    """Import the modules that every horse needs, and exempt their pages from GC."""
    import_attribute(RUN_STEP)
    factory.warm(ProviderConfig.of_settings())
    _exempt_from_gc()


class EngineWarmth:
    """Does the one-time work of the local engine before a worker's second step that needs it.

    Each later horse saves 1.7 s of CPU. The first horse does the work itself, because many workers
    end after one step, and a restart should stay quick.
    """

    def __init__(self) -> None:
        self._steps = 0

    def prepare(self, step: str) -> bool:
        """Note that a step begins; return whether the engine was warmed for the step."""
        if step not in WORK_TABLES:
            return False
        self._steps += 1
        if self._steps != WARM_AT_STEP:
            return False
        factory.warm_engine()
        _exempt_from_gc()
        return True


def _exempt_from_gc() -> None:
    """Let no collection of a horse write to the pages that the horse shares with the parent."""
    gc.collect()
    gc.freeze()
