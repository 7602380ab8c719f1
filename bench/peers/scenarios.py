"""The scenarios and the peers. Seconds are those of the real service; `scale` shortens them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

SLOWEST_FIRST_S = (14.0, 10.0, 8.0, 7.0, 6.5, 5.5, 5.0, 4.0)
"""Seconds per encounter of the 5-page record in requirement 12, by the size of the encounter."""


@dataclass(frozen=True, kw_only=True)
class PeerScenario:
    """One record, and how the emulator answers the calls about the record."""

    name: str
    title: str
    scale: float
    sample: str = ""
    """A file of samples/; empty for a record with one page per item."""
    latency: str = "0"
    by_encounter: Sequence[float] = ()
    """Seconds per item, the largest encounter first; empty if `latency` draws."""
    faults: Sequence[Mapping[str, object]] = ()
    windows: int = 0
    """Windows of the quota that the items need; 0 means no quota."""
    answers: str = "minimal"


SCENARIOS = (
    PeerScenario(
        name="encounters",
        title="8 encounters, one slow call",
        scale=0.2,
        sample="lab_5p_8enc.pdf",
        by_encounter=SLOWEST_FIRST_S,
        answers="local",
    ),
    PeerScenario(
        name="lognormal",
        title="lognormal latency",
        scale=0.1,
        latency="lognormal:3.5,0.5/call",
    ),
    PeerScenario(
        name="faults",
        title="lognormal latency, 10 % faults: half at once, half after 20 s",
        scale=0.1,
        latency="lognormal:3.5,0.5/call",
        faults=(
            {"fault": "503", "probability": 0.05},
            {"fault": "503-deadline", "probability": 0.05, "delay_s": 20.0},
        ),
    ),
    PeerScenario(
        name="quota",
        title="a quota of a third of the items per minute",
        scale=1 / 3,
        latency="lognormal:1,0.5/call",
        windows=3,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One way to make the calls."""

    name: str
    title: str
    module: str
    package: str = ""
    """The module that only `requirements-peers.lock` installs."""
    has_servers: bool = False
    """Whether the peer uses PostgreSQL or Valkey."""
    is_beside_others: bool = False
    """Whether the peer runs beside the others: one call at a time needs no core of its own."""

    @property
    def is_installed(self) -> bool:
        """Return whether the peer can run here."""
        return not self.package or find_spec(self.package) is not None


MEDPROC = Peer(
    name="medproc", title="medproc, whole step of Pass 1", module="medproc_step", has_servers=True
)
PEERS = (
    MEDPROC,
    Peer(name="pool", title="thread pool, tenacity", module="thread_pool"),
    Peer(name="asyncio", title="asyncio, semaphore, tenacity", module="semaphore"),
    Peer(name="rounds", title="thread pool, retries in rounds", module="rounds"),
    Peer(
        name="async-batch-llm",
        title="async-batch-llm",
        module="batch_llm",
        package="async_batch_llm",
    ),
    Peer(
        name="langextract",
        title="langextract's engine of calls",
        module="lang_extract",
        package="langextract",
    ),
    Peer(name="rq", title="one RQ job per call", module="rq_jobs", has_servers=True),
    Peer(
        name="sequential",
        title="loop of google-genai",
        module="sequential",
        is_beside_others=True,
    ),
)
