"""The quotas of the emulated project: requests and input tokens per window, requests per day,
spend.

One instance counts the calls of all clients. As in the service, requests and tokens count per
model, spend counts per project, and a refused call does not count.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import date

from gemini_emulator.api_bodies import (
    ServiceQuota,
    day_requests,
    minute_requests,
    minute_tokens,
    spend,
)
from gemini_emulator.clock import PacificClock

SPEND_WINDOWS = 10
"""The spend limit covers ten minutes, that is ten windows."""
INPUT_USD_PER_M = 0.10
OUTPUT_USD_PER_M = 0.40
"""US dollars per million tokens: the defaults of `GEMINI_PRICE_*`."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a call was limited, and when the window has room again."""

    quotas: tuple[ServiceQuota, ...]
    retry_after_s: float
    outcome: str


@dataclass
class _Use:
    """The usage of one model."""

    calls: deque[tuple[float, int]] = field(default_factory=deque)
    tokens: int = 0
    today: int = 0
    day: date | None = None


@dataclass(kw_only=True)
class QuotaWindows:
    """Exact sliding windows over admitted calls; a limit of 0 means no limit."""

    rpm: int = 0
    tpm: int = 0
    rpd: int = 0
    spend_usd: float = 0.0
    window_s: float = 60.0
    clock: PacificClock = field(default_factory=PacificClock)
    _models: dict[str, _Use] = field(default_factory=dict, repr=False)
    _spent: deque[tuple[float, float]] = field(default_factory=deque, repr=False)

    def admit(self, now: float, tokens: int, model: str = "") -> Refusal | None:
        """Count a call at `now` (seconds, monotonic) with its input tokens, or refuse it."""
        use = self._use(now, model)
        if self.rpd and use.today >= self.rpd:
            # The service hints at seconds here, although the quota resets only at midnight.
            return Refusal(quotas=(day_requests(self.rpd),), retry_after_s=5.0, outcome="limit-rpd")
        if self.spend_usd and self.spent_usd(now) >= self.spend_usd:
            freed_by = self._spend_frees_at()
            return self._refuse(now, spend(self.spend_usd), freed_by, "limit-spend", SPEND_WINDOWS)
        if self.rpm and len(use.calls) >= self.rpm:
            return self._refuse(now, minute_requests(self.rpm), use.calls[0][0], "limit-rpm")
        if self.tpm and use.tokens + tokens > self.tpm:
            freed_by = _room_at(use, tokens, self.tpm)
            return self._refuse(now, minute_tokens(self.tpm), freed_by, "limit-tpm")
        use.calls.append((now, tokens))
        use.tokens += tokens
        use.today += 1
        self._pay(now, tokens * INPUT_USD_PER_M)
        return None

    def answered(self, now: float, output_tokens: int) -> None:
        """Count the cost of a reply's output, which is known only when the reply is written."""
        self._pay(now, output_tokens * OUTPUT_USD_PER_M)

    def spent_usd(self, now: float) -> float:
        """Return the US dollars spent in the last ten windows."""
        while self._spent and self._spent[0][0] <= now - SPEND_WINDOWS * self.window_s:
            self._spent.popleft()
        return sum(usd for _, usd in self._spent)

    def used(self, now: float) -> dict[str, dict[str, int]]:
        """Return each model's usage of its window and day."""
        uses = {model: self._use(now, model) for model in list(self._models)}
        return {
            model: {"requests": len(use.calls), "input_tokens": use.tokens, "today": use.today}
            for model, use in uses.items()
        }

    def _pay(self, now: float, micro_usd: float) -> None:
        if self.spend_usd:
            self._spent.append((now, micro_usd / 1e6))

    def _use(self, now: float, model: str) -> _Use:
        use = self._models.setdefault(model, _Use())
        while use.calls and use.calls[0][0] <= now - self.window_s:
            use.tokens -= use.calls.popleft()[1]
        today = self.clock.day(now)
        if use.day != today:
            use.day, use.today = today, 0
        return use

    def _spend_frees_at(self) -> float:
        """Return the time of the payment whose expiry brings the spend below its limit."""
        held = sum(usd for _, usd in self._spent)
        for at, usd in self._spent:
            held -= usd
            if held < self.spend_usd:
                return at
        return self._spent[-1][0]

    def _refuse(
        self, now: float, quota: ServiceQuota, freed_by: float, outcome: str, windows: int = 1
    ) -> Refusal:
        wait = max(0.001, freed_by + windows * self.window_s - now)
        return Refusal(quotas=(quota,), retry_after_s=wait, outcome=outcome)


def _room_at(use: _Use, tokens: int, limit: int) -> float:
    """Return the time of the call whose expiry makes room for `tokens`."""
    held = use.tokens
    for at, used in use.calls:
        held -= used
        if held + tokens <= limit:
            return at
    return use.calls[-1][0] if use.calls else 0.0
