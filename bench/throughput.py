"""The cost of the rate limiter in throughput: calls through the fan-out with it and without it.

Run `python -m bench.throughput`; 3 min. Real google-genai client, the emulator, an unlimited quota,
interleaved rounds in one process. Exits 1 if the rate limiter costs 5 % or more of the calls of 0.2
s. A second line shows the cost if only the processor limits the calls.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")

import redis

from gemini_emulator import Emulator
from medproc.embedded import throw_away_servers
from pipeline.core.types import PageSlice
from pipeline.execution.fanout import (
    CancelEvent,
    Decision,
    Fail,
    FanOut,
    Item,
    Limits,
    Succeeded,
    Tick,
)
from pipeline.providers.base import Request
from pipeline.providers.gemini import GeminiProvider
from pipeline.providers.prompts import PROMPT_VERSION, estimate_tokens, render_entities
from pipeline.providers.schemas import EntityReply
from pipeline.ratelimit import Ask, Later, Outcome, Quota, RateLimiter, Ticket, Tuning
from pipeline.ratelimit.limiter import limiter_client

MODEL = "gemini-3.5-flash-lite"
SLOTS = 30
BOUND = 0.95
PAGE = PageSlice(page=1, start=0, text="Medications: lisinopril 20 mg by mouth daily.\n" * 60)


def request() -> Request:
    """Ask for the entities of one page."""
    token = secrets.token_hex(16)
    prompt = render_entities(token, [PAGE], include_zones=True)
    return Request(
        item_token=token,
        prompt=prompt,
        schema=EntityReply,
        max_output_tokens=8_192,
        deadline_s=60.0,
        prompt_version=PROMPT_VERSION,
        estimated_input_tokens=estimate_tokens(prompt),
    )


class BenchmarkStep:
    """One step with the rate limiter, connected like in the step executor."""

    def __init__(self, provider: GeminiProvider, limiter: RateLimiter | None) -> None:
        self._provider = provider
        self._limiter = limiter
        self._tickets: dict[int, Ticket] = {}

    def call(self, item: Item[int, int], attempt: int, cancel: CancelEvent) -> int:
        """Make one call; runs in a call thread."""
        asked = request()
        limiter = self._limiter
        if limiter is not None:
            asked = replace(asked, on_sent=lambda: limiter.sent(self._tickets[item.key]))
        return self._provider.generate(asked).details.input_tokens

    def admit_many(self, items: Sequence[Item[int, int]], now: float) -> tuple[int, float | None]:
        """Ask for the starts of items."""
        if self._limiter is None:
            return len(items), None
        asks = [
            Ask(job="job", item=f"{item.key}", tokens=int(item.size), prompt_version="pass1-1")
            for item in items
        ]
        started = 0
        for item, answer in zip(items, self._limiter.admit_many(asks), strict=False):
            if isinstance(answer, Later):
                return started, answer.seconds
            self._tickets[item.key] = answer.ticket
            started += 1
        return started, None

    def decide(
        self, item: Item[int, int], attempt: int, error: BaseException, now: float
    ) -> Decision[int, int]:
        """Fail: no call may fail in this benchmark."""
        return Fail()

    def per_second(self, calls: int) -> float:
        """Make this number of calls; return the calls per second."""
        began, done = time.perf_counter(), 0
        with FanOut(
            [Item(key=key, group=key, size=700) for key in range(calls)],
            call=self.call,
            decide=self.decide,
            admit_many=self.admit_many,
            limits=Limits(groups=calls, calls=SLOTS),
        ) as run:
            for event in run.events():
                if isinstance(event, Succeeded):
                    done += 1
                    if self._limiter is not None:
                        ticket = self._tickets.pop(event.key)
                        self._limiter.note(ticket, Outcome.success(event.result))
                elif isinstance(event, Tick) and self._limiter is not None:
                    self._limiter.flush()
        if done != calls:
            raise AssertionError("a call failed")
        return calls / (time.perf_counter() - began)


@dataclass(frozen=True)
class ThroughputRound:
    """The figures of one round: calls per second, and milliseconds of processor time per call."""

    speed: float
    process_ms: float
    server_ms: float


def one_round(step: BenchmarkStep, client: redis.Redis, calls: int) -> ThroughputRound:
    """Make this number of calls."""
    process, server = time.process_time(), server_s(client)
    speed = step.per_second(calls)
    return ThroughputRound(
        speed,
        (time.process_time() - process) * 1000 / calls,
        (server_s(client) - server) * 1000 / calls,
    )


def server_s(client: redis.Redis) -> float:
    """Return the processor seconds of the Redis server."""
    used = client.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def compared(
    name: str, steps: dict[str, BenchmarkStep], client: redis.Redis, calls: int, rounds: int
) -> float:
    """Run alternating rounds of both; print and return the ratio of their medians."""
    found: dict[str, list[ThroughputRound]] = {which: [] for which in steps}
    for number in range(rounds + 1):
        order = list(steps.items())
        for which, step in order if number % 2 else reversed(order):
            one = one_round(step, client, calls)
            if number:
                found[which].append(one)
    speeds = {which: [one.speed for one in each] for which, each in found.items()}
    median = {which: statistics.median(each) for which, each in speeds.items()}
    process_ms = {
        which: statistics.median(one.process_ms for one in each) for which, each in found.items()
    }
    ratio = median["on"] / median["off"]
    print(
        f"{name:<30} {median['on']:>8.1f} {median['off']:>8.1f} {ratio:>7.3f}"
        f"   on {min(speeds['on']):.1f} to {max(speeds['on']):.1f},"
        f" off {min(speeds['off']):.1f} to {max(speeds['off']):.1f}\n"
        f"{'':<30} processor time of a call: {process_ms['off']:.2f} ms without the limiter,"
        f" {process_ms['on'] - process_ms['off']:+.2f} ms with it,"
        f" {statistics.median(one.server_ms for one in found['on']):.2f} ms in Redis"
    )
    return ratio


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=600, help="calls per round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per call")
    options = parser.parse_args()
    ratios = []
    print(f"{SLOTS} calls at once, per second     limiter on      off   ratio")
    with throw_away_servers() as places:
        client = limiter_client(places.redis_url)
        limiter = RateLimiter(
            "gemini",
            MODEL,
            client=client,
            quota=Quota(),
            tuning=Tuning(),
        )
        for latency in (options.latency, 0.0):
            with Emulator(answers="minimal", latency=f"{latency}/call") as emulator:
                provider = GeminiProvider(api_key="bench", model=MODEL, base_url=emulator.url)
                steps = {
                    "on": BenchmarkStep(provider, limiter),
                    "off": BenchmarkStep(provider, None),
                }
                name = f"calls of {latency} s" if latency else "calls answered at once"
                ratios.append(compared(name, steps, client, options.calls, options.rounds))
                provider.close()
    print(f"bound: {BOUND} where calls take {options.latency} s")
    return 0 if ratios[0] > BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
