"""The second readings of a step's batches: each batch is read once, and only if a model found
an entity in the batch.

Call threads prepare the readings, so that the executor's thread is not kept from its work. A batch
that an earlier run answered is read at its publication.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from uuid import UUID

from pipeline.core.types import PageSlice
from pipeline.models import Batch
from pipeline.providers.local import LocalProvider
from pipeline.providers.local.local_reading import SecondReading

Slices = Callable[[], Sequence[PageSlice]]
"""Returns the text of a batch, with its context."""


class SecondReader:
    """Reads each batch once and keeps the reading until the batch is published."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readings: dict[UUID, SecondReading] = {}

    def prepare(self, batch_id: UUID, slices: Slices) -> None:
        """Read a batch that a model is answering. Runs in a call thread."""
        # One at a time: the engine only computes, and a second thread would read the batch again.
        with self._lock:
            if batch_id not in self._readings:
                self._readings[batch_id] = SecondReading(slices())

    def take(self, batch: Batch, slices: Slices) -> SecondReading | None:
        """Return the reading of an answered batch and forget it; None if the engine replied."""
        if batch.ai_model_used == LocalProvider.model:
            return None
        # The executor's thread calls this, and must not wait for the lock: dozens of call threads
        # hold the lock in turn, and the thread would miss its heartbeats.
        ready = self._readings.pop(batch.id, None)
        return SecondReading(slices()) if ready is None else ready

    def forget(self, batches: Iterable[Batch]) -> None:
        """Forget the readings that no publication will take."""
        for batch in batches:
            self._readings.pop(batch.id, None)
