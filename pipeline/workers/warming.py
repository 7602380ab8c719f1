"""The one-time work that a worker does before it forks, so that each horse inherits the result.

Nothing here opens a connection or leaves a client, because a fork would share them.
"""

from __future__ import annotations

import gc
import logging
import re
from functools import cache

from rq.utils import import_attribute

from medproc import telemetry
from pipeline.documents import reader, storage
from pipeline.models.work_tables import WORK_TABLES
from pipeline.providers import factory
from pipeline.providers.config import ProviderConfig
from pipeline.queueing.queues import RUN_STEP
from pipeline.stages import warm_up as stages

WARM_AT_STEP = 2
"""The step with provider calls before which a worker warms the engine, counted from 1."""

GC_ALLOCATIONS = 10_000
"""New objects between two runs of the garbage collector, instead of Python's 700. Requests and
replies hold many objects and few cycles: the local engine needs 6 % less CPU for 72 pages."""

logger = logging.getLogger(__name__)


def warm() -> None:
    """Import the modules that every horse needs, exempt their pages from GC, and collect rarely."""
    import_attribute(RUN_STEP)
    factory.warm(ProviderConfig.of_settings())
    storage.warm()
    reader.warm()
    telemetry.prepare()
    _exempt_from_gc()
    gc.set_threshold(GC_ALLOCATIONS)


@cache
def warm_engine() -> None:
    """Do the one-time work of the engine and the stages, once for this process and its forks.

    A pool calls this before it forks its first worker of a pass with provider calls: 0.8 s of CPU.
    """
    # `re` keeps the 512 newest patterns. Those of the imported modules are constants, and would
    # push out the patterns that a function names for each call.
    re.purge()
    factory.warm_engine()
    stages.warm_up()
    _exempt_from_gc()
    logger.info("the engine is warm")


class EngineWarmth:
    """Warms the engine before the second step of a worker without a pool.

    The first horse does the work itself, because many such workers end after one step.
    """

    def __init__(self) -> None:
        self._steps = 0

    def prepare(self, step: str) -> None:
        """Note that a step begins; warm the engine if the time has come."""
        if step in WORK_TABLES:
            self._steps += 1
            if self._steps == WARM_AT_STEP:
                warm_engine()


def _exempt_from_gc() -> None:
    """Let no collection of a horse write to the pages that the horse shares with the parent."""
    gc.collect()
    gc.freeze()
