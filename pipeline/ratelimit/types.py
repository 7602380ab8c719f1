"""What is said to the gate and what it answers: frozen values, no behaviour but naming outcomes.

Imports `errors` only. Times are seconds; moments are seconds of the epoch by Redis's clock. Ids of
jobs and items are ours and carry nothing of a document.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pipeline.core.errors import CallError, ErrorCode


class Why(StrEnum):
    """Why a call may not start yet."""

    PAUSED = "paused"
    """An operator or an incident has paused the provider and model."""
    QUOTA = "quota"
    """The provider says that a day's or spend quota is used up; `seconds` until its reset."""
    DAY = "day"
    """GEMINI_RPD calls were made today, by our own count; `seconds` until midnight."""
    BREAKER = "breaker"
    """The provider is down; a probe is due in `seconds`, or is out."""
    COOLDOWN = "cooldown"
    """The provider has said 429; `seconds` is what is left of the cooldown."""
    RAMP = "ramp"
    """The starts after a cooldown, an outage or the loss of Redis grow step by step."""
    REQUESTS = "requests"
    """The requests of the last minute are used up."""
    TOKENS = "tokens"
    """The input tokens of the last minute are used up."""
    TURN = "turn"
    """A job that was served less is waiting."""
    NEW = "new"
    """Redis was empty, and what held before is not known yet."""
    LOCAL = "local"
    """Redis is away, and this process keeps to its small part of the quota."""


class Role(StrEnum):
    """What a limited call was to its cooldown."""

    NONE = ""
    """It was not limited."""
    COORDINATOR = "coordinator"
    """It was the first of its generation, and has set the cooldown."""
    PARTICIPANT = "participant"
    """The cooldown was already set."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A call that wants to start."""

    job: str
    """Whose turn it is: jobs share the quota equally."""
    item: str
    """The batch or chunk; the same id when it asks again after a 429."""
    tokens: int
    """Input tokens by estimate; the gate corrects it by what it has learned."""
    prompt_version: str = ""
    """Estimates are corrected apart for each."""


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """An admitted call; to be reported exactly once."""

    id: str
    item: str
    generation: int
    """Of the cooldowns; a 429 of an older one does not open another."""
    epoch: int
    """Of the breaker; an outcome of an older one says nothing of today."""
    bucket: str
    """Where in the window it is booked."""
    tokens: int
    """What was reserved."""
    estimate: int
    prompt_version: str
    asked_at: float
    """By this process's monotonic clock."""
    is_probe: bool = False
    """The one call that finds out whether the provider is back."""
    is_redistributed: bool = False
    """Its item had been limited, and is now let go again."""
    is_local: bool = False
    """Admitted while Redis was away."""


@dataclass(frozen=True, kw_only=True)
class Go:
    """The call may start now."""

    ticket: Ticket


@dataclass(frozen=True, kw_only=True)
class Later:
    """The call may not start; ask again in `seconds`."""

    seconds: float
    why: Why
    failing_since: float | None = None
    """The first failure of the outage, while the breaker is open."""


Admission = Go | Later


class Kind(StrEnum):
    """How the gate's script takes an outcome."""

    OK = "ok"
    """The provider answered, with whatever."""
    FAILED = "failed"
    """The provider did not answer; feeds the breaker."""
    LIMITED = "limited"
    QUOTA = "quota"
    UNKNOWN = "unknown"
    """It says nothing of the provider."""


KINDS: dict[ErrorCode, Kind] = {
    ErrorCode.API_5XX: Kind.FAILED,
    ErrorCode.API_TIMEOUT: Kind.FAILED,
    ErrorCode.RATE_LIMIT: Kind.LIMITED,
    ErrorCode.QUOTA_EXHAUSTED: Kind.QUOTA,
    **dict.fromkeys(
        (
            ErrorCode.API_4XX,
            ErrorCode.API_AUTH,
            ErrorCode.PARSE_JSON,
            ErrorCode.PARSE_SCHEMA,
            ErrorCode.CONTEXT_TOO_LARGE,
            ErrorCode.OUTPUT_TRUNCATED,
            ErrorCode.EMPTY_RESPONSE,
            ErrorCode.CONTENT_BLOCKED,
            ErrorCode.REPLY_MISMATCH,
            ErrorCode.INPUT_INVALID,
            ErrorCode.ENCOUNTER_NOT_FOUND,
        ),
        Kind.OK,
    ),
}
"""Codes that say something of the provider; every other one is UNKNOWN."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a call ended with."""

    code: ErrorCode | None = None
    """None: it succeeded."""
    input_tokens: int | None = None
    """As the provider counted them; None: not known, so the reservation stands."""
    retry_after_s: float | None = None
    quota_id: str = ""

    @property
    def kind(self) -> Kind:
        """How the gate takes it."""
        return Kind.OK if self.code is None else KINDS.get(self.code, Kind.UNKNOWN)

    @classmethod
    def success(cls, input_tokens: int | None) -> Self:
        """Return the outcome of an accepted reply."""
        return cls(input_tokens=input_tokens)

    @classmethod
    def failure(cls, error: CallError) -> Self:
        """Return the outcome of a call that failed; tokens count where the provider said them."""
        return cls(
            code=error.code,
            input_tokens=error.details.input_tokens or None,
            retry_after_s=error.details.retry_after_s,
            quota_id=error.details.quota_id,
        )


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What holds a provider and model as the database has it; an empty Redis is armed from it."""

    failing_since: float | None = None
    """First failure of the outage that is open."""
    closed_until: float | None = None
    """Reset of the quota that is used up."""
    is_paused: bool = False


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the gate made of an outcome."""

    role: Role = Role.NONE
    opens_in_s: float = 0.0
    """Seconds until the gate may let something through, 0 if it is not closed."""
    failing_since: float | None = None
    """The first failure of the outage, while the breaker is open."""


class Breaker(StrEnum):
    """Where the breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    """Nothing goes through until the next probe is due."""
    HALF_OPEN = "half_open"
    """A probe is due, or out."""


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Since Redis was last empty (`spec.md` point 50, and the breaker's)."""

    rate_limited_items_stored: int = 0
    """Items that a 429 has parked."""
    rate_limited_items_redistributed: int = 0
    """Those that were let go again."""
    rate_limit_generations: int = 0
    """Cooldowns."""
    rate_limit_participants: int = 0
    """Limited calls that found their cooldown already set."""
    breaker_trips: int = 0


@dataclass(frozen=True, kw_only=True)
class GateState:
    """The gate of one provider and model at one moment, for the console."""

    provider: str
    model: str
    is_local: bool
    """Redis is away: each process keeps to its small part, and nothing more is known."""
    now: float = 0.0
    requests_used: int = 0
    """In the last window, reservations included."""
    requests_limit: int | None = None
    tokens_used: int = 0
    tokens_limit: int | None = None
    day_used: int = 0
    day_limit: int | None = None
    guard_s: float = 0.0
    """What the window is lengthened by."""
    in_flight: int = 0
    waiting_jobs: int = 0
    parked_items: int = 0
    generation: int = 0
    consecutive: int = 0
    """Cooldowns in a row."""
    cooldown_until: float | None = None
    closed_until: float | None = None
    """Reset of a day's or a spend quota."""
    is_paused: bool = False
    is_ramping: bool = False
    ramp_step: int = 0
    breaker: Breaker = Breaker.CLOSED
    failing_since: float | None = None
    probe_at: float | None = None
    last_outage: tuple[float, float] | None = None
    """First failure and end of the last outage that is over."""
    counters: Counters = Counters()
