"""The gate of one provider and model, as a worker process sees it.

Imports the scripts, their values, `quotas` and redis. Each method is one round trip of at most
`REDIS_TIMEOUT_S` (three for the ask that finds Redis emptied), and never sleeps. Where Redis does
not answer, the process keeps to its local limit, says so once a minute, and tells Redis afterwards.
"""

from __future__ import annotations

import logging
import math
import struct
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.retry import Retry

from medproc.addresses import redis_kwargs
from pipeline.ratelimit.config import PATIENCE_S, Quota, Tuning
from pipeline.ratelimit.local_limiter import LocalLimit
from pipeline.ratelimit.quota_reset import day_ends_at, resets_at
from pipeline.ratelimit.scripts import Scripts, keys_of
from pipeline.ratelimit.transport import Argument, Wire
from pipeline.ratelimit.types import (
    Admission,
    Ask,
    Breaker,
    Counters,
    Go,
    Kind,
    Later,
    Outcome,
    RateLimiterState,
    Reported,
    Role,
    Standing,
    Ticket,
    Why,
)

logger = logging.getLogger(__name__)

REDIS_TIMEOUT_S = 0.5
"""Longest that an ask waits for Redis; then Redis is away."""
AWAY_FOR_S = 1.0
"""So long a Redis that did not answer is not asked again."""
SAY_EVERY_S = 60.0
SAMPLES = 500
"""Ways from admission to sending that the guard's p99 is taken of."""
GUARD_CAP_S = 5.0
"""One stalled process must not close the window for all."""


class RateLimiter:
    """Asks for starts and reports outcomes; one per process, provider and model.

    `admit` belongs to the owner thread; every other method may be called from any thread.
    """

    def __init__(
        self,
        provider: str,
        model: str,
        *,
        client: redis.Redis,
        quota: Quota,
        tuning: Tuning,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        lua_clock: str | None = None,
        standing: Callable[[], Standing | None] | None = None,
    ) -> None:
        # With a `lua_clock` of its own the scripts take their time from `wall`: a simulated hour.
        self.provider = provider
        self.model = model
        self._quota = quota
        self._tuning = tuning
        self._clock = clock
        self._wall = wall
        self._sends_time = lua_clock is not None
        self._standing = standing
        self._scripts = Scripts.on(client, lua_clock)
        self._day_ends_at = -math.inf
        self._figures: tuple[tuple[float, float], bytes] = ((0.0, 0.0), b"")
        self._keys = keys_of(provider, model)
        self._wire = Wire(client, self._keys)
        self._ways: deque[float] = deque(maxlen=SAMPLES)
        self._guard_s = tuning.guard_s
        self._lock = threading.Lock()
        self._local: LocalLimit | None = None
        self._retry_at = -math.inf
        self._said_at = -math.inf
        self._moved: dict[str, str] = {}
        """Where a late call is booked now, by its ticket."""

    @classmethod
    def for_(
        cls,
        provider: str,
        model: str,
        *,
        standing: Callable[[], Standing | None] | None = None,
    ) -> Self:
        """Return the gate of a provider and model, as the settings have it.

        To be made after fork, one per process. `standing` reads what holds from the database; an
        ask calls it where Redis was empty, and nothing starts while it knows nothing (None).
        Without it an empty gate is taken as it is.
        """
        return cls(
            provider,
            model,
            client=limiter_client(settings.REDIS_URL),
            quota=Quota.of(provider),
            tuning=Tuning.of_settings(),
            standing=standing,
        )

    def admit(self, ask: Ask) -> Admission:
        """Ask for the start of one call; where Redis was emptied, arm it first."""
        answer = self._admit(ask)
        if not isinstance(answer, Later) or answer.why is not Why.NEW or self._standing is None:
            return answer
        standing = self._standing()
        if standing is None or not self.rearm(standing):
            return Later(seconds=AWAY_FOR_S, why=Why.NEW)
        return self._admit(ask)

    def _admit(self, ask: Ask) -> Admission:
        asked_at = self._clock()
        ticket_id = uuid.uuid4().hex
        owed = self._local
        reply = self._run(
            self._scripts.admit,
            ticket_id,
            ask.job,
            ask.item,
            ask.prompt_version,
            max(0, ask.tokens),
            owed.requests if owed else 0,
            owed.tokens if owed else 0,
        )
        if reply is None:
            return self._admit_locally(ask, ticket_id, asked_at)
        if not reply[0]:
            _, seconds, why, since = reply
            return Later(
                seconds=float(seconds), why=Why(why.decode()), failing_since=_moment(since)
            )
        _, generation, epoch, bucket, tokens, is_probe, is_redistributed = reply
        return Go(
            ticket=Ticket(
                id=ticket_id,
                item=ask.item,
                generation=generation,
                epoch=epoch,
                bucket=bucket.decode(),
                tokens=tokens,
                estimate=ask.tokens,
                prompt_version=ask.prompt_version,
                asked_at=asked_at,
                is_probe=bool(is_probe),
                is_redistributed=bool(is_redistributed),
            )
        )

    def sent(self, ticket: Ticket) -> None:
        """Note that the call goes out now; the window's guard is the p99 of these ways.

        The hundredth call, that takes longer, is booked anew: as of now.
        """
        way = self._clock() - ticket.asked_at
        with self._lock:
            self._ways.append(way)
            ways = sorted(self._ways)
        p99 = ways[math.ceil(0.99 * len(ways)) - 1]
        is_late = way > self._guard_s and not ticket.is_local
        self._guard_s = min(max(self._tuning.guard_s, p99), GUARD_CAP_S)
        if is_late:
            moved = self._run(self._scripts.control, "late", ticket.bucket, ticket.tokens)
            if moved is not None:
                self._moved[ticket.id] = moved.decode()

    def report(self, ticket: Ticket, outcome: Outcome) -> Reported:
        """Report what an admitted call ended with, once."""
        reply = self._run(self._scripts.report, *self._reported(ticket, outcome))
        if reply is None:
            return Reported(opens_in_s=self._heed_locally(outcome))
        role, seconds, since = reply
        return Reported(
            role=Role(role.decode()), opens_in_s=float(seconds), failing_since=_moment(since)
        )

    def note(self, ticket: Ticket, outcome: Outcome) -> None:
        """Report an outcome of which nothing follows for the caller, without waiting for Redis.

        One that is lost with its connection leaves the reservation as it was.
        """
        if self._run(self._scripts.report, *self._reported(ticket, outcome), waits=False) is None:
            self._heed_locally(outcome)

    def abandon(self, items: Sequence[str]) -> None:
        """Forget limited items that will not ask again: their job failed or was cancelled.

        The last word of a step: what it has started without Redis is told as well.
        """
        if items or (self._local and self._local.items):
            self._run(self._scripts.control, "abandon", *items)

    def pause(self) -> bool:
        """Let nothing start until `resume`; False if Redis is away."""
        return self._run(self._scripts.control, "pause") is not None

    def resume(self) -> bool:
        """End a pause and a closure by quota, with a ramp; False if Redis is away."""
        return self.align(Standing())

    def align(self, standing: Standing) -> bool:
        """Have the pause and the closure by quota that the database knows, and no other.

        The breaker is left to its probes. False if Redis is away.
        """
        closed_until, is_paused = standing.closed_until or 0, int(standing.is_paused)
        reply = self._run(self._scripts.control, "align", closed_until, is_paused)
        return reply is not None

    def rearm(self, standing: Standing) -> bool:
        """Close a gate that Redis has lost for what held it before; once, until it is lost again.

        False if Redis is away.
        """
        reply = self._run(
            self._scripts.control,
            "rearm",
            standing.failing_since or 0,
            standing.closed_until or 0,
            int(standing.is_paused),
        )
        if reply and standing != Standing():
            logger.warning(
                "Redis was empty; the rate limiter of %s %s holds for what the database has open",
                self.provider,
                self.model,
                extra={"action": "limiter_rearmed"},
            )
        return reply is not None

    def state(self) -> RateLimiterState:
        """Show the gate as it is now."""
        reply = self._run(self._scripts.state)
        if reply is None:
            return RateLimiterState(provider=self.provider, model=self.model, is_local=True)
        texts = [value.decode() for value in reply]
        return self._shown(dict(zip(texts[::2], texts[1::2], strict=True)))

    def _shown(self, seen: dict[str, str]) -> RateLimiterState:
        def whole(name: str) -> int:
            return int(float(seen.get(name) or 0))

        def moment(name: str) -> float | None:
            value = float(seen.get(name) or 0)
            return value if value > now else None

        now = float(seen["now"])
        since = _moment(seen.get("open_since", ""))
        breaker = Breaker.CLOSED
        if since is not None:
            breaker = Breaker.OPEN if moment("probe_at") else Breaker.HALF_OPEN
        outage = None
        if seen.get("outage_until"):
            outage = float(seen["outage_from"]), float(seen["outage_until"])
        return RateLimiterState(
            provider=self.provider,
            model=self.model,
            is_local=False,
            now=now,
            requests_used=whole("requests"),
            requests_limit=self._quota.requests,
            tokens_used=whole("tokens"),
            tokens_limit=self._quota.tokens,
            day_used=whole("day_calls"),
            day_limit=self._quota.per_day,
            guard_s=float(seen.get("guard") or 0),
            in_flight=whole("in_flight"),
            waiting_jobs=whole("waiting_jobs"),
            parked_items=whole("parked"),
            generation=whole("generation"),
            consecutive=whole("consecutive"),
            cooldown_until=moment("until"),
            closed_until=moment("closed_until"),
            is_paused=bool(seen.get("paused")),
            is_ramping=bool(seen.get("ramp_from")),
            ramp_step=whole("ramp_step"),
            breaker=breaker,
            failing_since=_moment(seen.get("first_failure", "")),
            probe_at=float(seen["probe_at"]) if since is not None else None,
            last_outage=outage,
            counters=Counters(**{name: whole(name) for name in Counters.__dataclass_fields__}),
        )

    def _reported(self, ticket: Ticket, outcome: Outcome) -> tuple[str | float, ...]:
        hint = outcome.retry_after_s
        if outcome.kind is Kind.QUOTA:
            now = self._wall()
            hint = resets_at(outcome.quota_id, hint, _date(now)).timestamp() - now
        return (
            ticket.id,
            self._moved.pop(ticket.id, ticket.bucket),
            ticket.prompt_version,
            ticket.item,
            outcome.kind.value,
            ticket.tokens,
            ticket.estimate,
            ticket.generation,
            ticket.epoch,
            -1 if outcome.input_tokens is None else outcome.input_tokens,
            -1 if hint is None else hint,
        )

    def _heed_locally(self, outcome: Outcome) -> float:
        with self._lock:
            return self._local.heed(outcome, self._clock()) if self._local else 0.0

    def _run(self, script: Script, *arguments: str | float, waits: bool = True) -> Any:
        """Run a script and return its reply, or None where Redis is away.

        It is True where it is not waited for.
        """
        if self._clock() < self._retry_at:
            return None
        try:
            self._tell_started()
            reply = self._wire.run(script, self._with_figures(arguments), waits=waits)
        except redis.RedisError as error:
            self._lose(error)
            return None
        if script is self._scripts.admit:
            self._recover()
        return reply

    def _with_figures(self, arguments: Sequence[Argument]) -> list[Argument]:
        sent: list[Argument] = [self._packed_figures(), *arguments]
        if self._sends_time:
            sent.append(f"{self._wall():.6f}")
        return sent

    def _tell_started(self) -> None:
        """Tell Redis, before anything else, which items were let go without it."""
        local = self._local
        if local is None or not local.items:
            return
        with self._lock:
            items, local.items = local.items, []
        try:
            self._wire.run(self._scripts.control, self._with_figures(["started", *items]))
        except redis.RedisError:
            with self._lock:
                local.items[:0] = items
            raise

    def _packed_figures(self) -> bytes:
        varying = (self._guard_s, self._day_end())
        if self._figures[0] != varying:
            figures = self._all_figures()
            self._figures = (varying, struct.pack(f">{len(figures)}d", *figures))
        return self._figures[1]

    def _day_end(self) -> float:
        if (now := self._wall()) >= self._day_ends_at:
            self._day_ends_at = day_ends_at(_date(now)).timestamp()
        return self._day_ends_at

    def _all_figures(self) -> tuple[float, ...]:
        quota, tuning = self._quota, self._tuning
        return (
            quota.requests or 0,
            quota.tokens or 0,
            quota.per_day or 0,
            quota.window_s,
            self._guard_s,
            tuning.ramp_first,
            tuning.ramp_growth,
            tuning.ramp_step_s,
            tuning.cooldown_base_s,
            tuning.cooldown_cap_s,
            tuning.quiet_s,
            tuning.breaker_window_s,
            tuning.breaker_failures,
            tuning.breaker_share,
            tuning.probe_s,
            tuning.lease_s,
            tuning.poll_s,
            PATIENCE_S,
            self._day_ends_at,
            float(self._standing is not None),
        )

    def _admit_locally(self, ask: Ask, ticket_id: str, asked_at: float) -> Admission:
        with self._lock:
            assert self._local is not None  # noqa: S101 - set by _lose, kept until _recover
            wait = self._local.wait_s(self._clock(), ask.tokens)
            if wait <= 0:
                self._local.items.append(ask.item)
        if wait > 0:
            return Later(seconds=min(wait, AWAY_FOR_S), why=Why.LOCAL)
        return Go(
            ticket=Ticket(
                id=ticket_id,
                item=ask.item,
                generation=0,
                epoch=0,
                bucket="",
                tokens=ask.tokens,
                estimate=ask.tokens,
                prompt_version=ask.prompt_version,
                asked_at=asked_at,
                is_local=True,
            )
        )

    def _lose(self, error: redis.RedisError) -> None:
        now = self._clock()
        with self._lock:
            self._retry_at = now + AWAY_FOR_S
            if self._local is None:
                self._local = LocalLimit(self._quota, self._tuning, now)
            if now - self._said_at < SAY_EVERY_S:
                return
            self._said_at = now
        logger.warning(
            "Redis is away (%s); this process starts at most %s of the quota of %s",
            type(error).__name__,
            f"{self._tuning.local_share:.1%}",
            self.provider,
            extra={"action": "limiter_local"},
        )

    def _recover(self) -> None:
        # An ask has booked the starts that were owed.
        if self._local is None:
            return
        with self._lock:
            self._local = None
            self._said_at = -math.inf
        logger.warning(
            "Redis is back; the rate limiter holds again", extra={"action": "limiter_back"}
        )


def limiter_client(url: str) -> redis.Redis:
    """Return a client that gives up on Redis after `REDIS_TIMEOUT_S`."""
    # One immediate second try cures a connection that the server closed while it was idle.
    return redis.Redis(
        **{
            **redis_kwargs(url),
            "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
            "socket_timeout": REDIS_TIMEOUT_S,
            "socket_connect_timeout": REDIS_TIMEOUT_S,
        }
    )


def _date(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def _moment(value: bytes | str) -> float | None:
    return float(value) if value else None
