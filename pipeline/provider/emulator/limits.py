"""The quotas of the emulated project: requests and input tokens a window, requests a day.

May import `bodies`. One instance counts for all clients, as the service does for a project.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pipeline.provider.emulator.bodies import Quota, day_requests, minute_requests, minute_tokens


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a call was limited, and when the window has room again."""

    quotas: tuple[Quota, ...]
    retry_after_s: float
    outcome: str


@dataclass(kw_only=True)
class Limits:
    """Exact sliding windows over admitted calls; a limit of 0 is none."""

    rpm: int = 0
    tpm: int = 0
    rpd: int = 0
    window_s: float = 60.0
    day_s: float = 86_400.0
    _calls: deque[tuple[float, int]] = field(default_factory=deque, repr=False)
    _tokens: int = 0
    _today: int = 0
    _day_began: float | None = None

    def admit(self, now: float, tokens: int) -> Refusal | None:
        """Count a call at `now` (seconds, monotonic) with its input tokens, or refuse it."""
        self._forget(now)
        if self.rpd and self._today >= self.rpd:
            # The service hints at seconds here, though only midnight helps.
            return Refusal(quotas=(day_requests(self.rpd),), retry_after_s=5.0, outcome="limit-rpd")
        if self.rpm and len(self._calls) >= self.rpm:
            return self._refuse(now, minute_requests(self.rpm), self._calls[0][0], "limit-rpm")
        if self.tpm and self._tokens + tokens > self.tpm:
            return self._refuse(now, minute_tokens(self.tpm), self._room_at(tokens), "limit-tpm")
        self._calls.append((now, tokens))
        self._tokens += tokens
        self._today += 1
        return None

    def _forget(self, now: float) -> None:
        while self._calls and self._calls[0][0] <= now - self.window_s:
            self._tokens -= self._calls.popleft()[1]
        if self._day_began is None or now >= self._day_began + self.day_s:
            self._day_began, self._today = now, 0

    def _room_at(self, tokens: int) -> float:
        """When the call was made whose leaving gives `tokens` room."""
        held = self._tokens
        for at, used in self._calls:
            held -= used
            if held + tokens <= self.tpm:
                return at
        return self._calls[-1][0] if self._calls else 0.0

    def _refuse(self, now: float, quota: Quota, freed_by: float, outcome: str) -> Refusal:
        wait = max(0.001, freed_by + self.window_s - now)
        return Refusal(quotas=(quota,), retry_after_s=wait, outcome=outcome)
