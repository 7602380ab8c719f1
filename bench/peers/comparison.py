"""Run the peers of a scenario one after the other on the same emulator, and compare them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench._environment import environment_of
from bench.peers.figures import PeerFigures, figures_of, reason_of
from bench.peers.prepared_record import PLACEHOLDER, PRIORITIES
from bench.peers.scenarios import MEDPROC, Peer, PeerScenario
from bench.peers.work import PeerReport, PeerWork
from gemini_emulator import Emulator, LogLine
from medproc.embedded import Places
from medproc.env import PROJECT_ROOT

SLOTS = 30
ATTEMPTS = 20
BACKOFF_S, MOST_BACKOFF_S = 1.0, 60.0
WINDOW_S = 60.0
UNLIMITED = 1_000_000


class PeerFailedError(Exception):
    """A peer's process ended with an error; the message is the last line of its output."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The prompts of a prepared record, with a placeholder for the token."""

    items: Sequence[Mapping[str, Any]]
    config: Mapping[str, Any]
    model: str

    def prompts(self, number: int) -> dict[str, str]:
        """Return the prompts by the tokens of the peer with this number."""
        tokens = (f"{number + 1:08x}{item:024x}" for item in range(len(self.items)))
        return {
            token: item["prompt"].replace(PLACEHOLDER, token)
            for token, item in zip(tokens, self.items, strict=True)
        }


class Comparison:
    """Runs scenarios on one pair of servers; `pace` multiplies all seconds."""

    def __init__(self, places: Places, folder: str, *, items: int, pace: float) -> None:
        self._places = places
        self._folder = Path(folder)
        self._items = items
        self._pace = pace
        (self._folder / "var").mkdir()
        self._environment = {
            **environment_of(places, f"{folder}/var"),
            "MEDPROC_PROVIDER": "gemini",
            "GEMINI_BASE_URL": "http://127.0.0.1:1",
            "GEMINI_TPM": "1000000000",
            "PASS1_CONCURRENCY_LIMIT": str(SLOTS),
            "PASS1_ENCOUNTER_LIMIT": "120",
            "SKIPPED_PASSES": "pass1_5,pass2,pass3",
        }
        manage = [sys.executable, str(PROJECT_ROOT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(manage, env=self._environment, check=True)

    def rows(self, scenario: PeerScenario, peers: Sequence[Peer]) -> list[PeerFigures]:
        """Return a row per peer, in the order of `peers`. Raises PeerFailedError."""
        scale = scenario.scale * self._pace
        first, plan = self._records(scenario)
        per_window = math.ceil(len(plan.items) / scenario.windows) if scenario.windows else 0
        environment = {
            **self._environment,
            "TIME_SCALE": str(scale),
            "GEMINI_RPM": str(per_window or UNLIMITED),
            "GATE_WINDOW_S": str(WINDOW_S * scale),
        }
        with ExitStack() as stack:
            warm = stack.enter_context(Emulator(answers="minimal"))
            emulator = stack.enter_context(_emulator(scenario, plan, scale, per_window))
            works = {
                peer: PeerWork(
                    url=emulator.url,
                    warm_url=warm.url,
                    # The quota counts per model, so each peer has a quota of its own.
                    model=plan.model if peer is MEDPROC else f"{plan.model}-{peer.name}",
                    config=plan.config,
                    items=plan.prompts(number),
                    warm_item=first.prompts(number),
                    slots=SLOTS,
                    backoff_s=BACKOFF_S * scale,
                    most_backoff_s=MOST_BACKOFF_S * scale,
                    attempts=ATTEMPTS,
                    # The quota still counts the call before the clock.
                    rest_s=WINDOW_S * scale + 1 if peer is MEDPROC and per_window else 0.0,
                    per_window=per_window,
                    window_s=WINDOW_S * scale,
                    redis_url=self._places.redis_url if peer.has_servers else "",
                    servers=str(self._places.base) if peer.has_servers else "",
                )
                for number, peer in enumerate(peers)
            }
            reports = self._reports(works, environment)
            log = [line for line in emulator.log() if line.route == "generateContent"]
        rows = [
            _row(scenario, peer, works[peer], reports[peer], log, of_peers=works) for peer in peers
        ]
        ours = rows[peers.index(MEDPROC)]
        return [row if row is ours else replace(row, reason=reason_of(row, ours)) for row in rows]

    def _records(self, scenario: PeerScenario) -> tuple[Plan, Plan]:
        """Prepare a record of one page, and the record of the scenario."""
        from samples.bulk import make_text_record

        then = (
            (PROJECT_ROOT / "samples" / scenario.sample).read_bytes()
            if scenario.sample
            else make_text_record(self._items, self._items, 7)
        )
        (self._folder / "first.pdf").write_bytes(make_text_record(1, 1, 1))
        (self._folder / "then.pdf").write_bytes(then)
        self._run("prepared_record", str(self._folder)).finish()
        texts = ((self._folder / f"{name}.json").read_text("utf-8") for name in PRIORITIES)
        first, then_plan = (Plan(**json.loads(text)) for text in texts)
        return first, then_plan

    def _reports(
        self, works: Mapping[Peer, PeerWork], environment: Mapping[str, str]
    ) -> dict[Peer, PeerReport]:
        beside = {p: self._start(p, w, environment) for p, w in works.items() if p.is_beside_others}
        try:
            reports = {
                peer: self._report(peer, self._start(peer, work, environment))
                for peer, work in works.items()
                if peer not in beside
            }
            return reports | {peer: self._report(peer, run) for peer, run in beside.items()}
        finally:
            for run in beside.values():
                run.kill()

    def _start(self, peer: Peer, work: PeerWork, environment: Mapping[str, str]) -> PeerProcess:
        work.write(self._folder / f"{peer.name}.work")
        paths = [str(self._folder / f"{peer.name}.{end}") for end in ("work", "report")]
        return self._run("run_peer", peer.module, *paths, environment=environment)

    def _report(self, peer: Peer, run: PeerProcess) -> PeerReport:
        run.finish()
        path = self._folder / f"{peer.name}.report"
        return PeerReport(**json.loads(path.read_text("utf-8")))

    def _run(
        self, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> PeerProcess:
        command = [sys.executable, "-m", f"bench.peers.{module}", *arguments]
        return PeerProcess(
            command, self._folder / f"{arguments[0]}.log", environment or self._environment
        )


class PeerProcess:
    """A process whose output goes to a file, because a full pipe would stop the process."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, env=dict(environment), cwd=PROJECT_ROOT, stdout=output, stderr=output
            )

    def finish(self) -> None:
        """Wait for the end. Raises PeerFailedError."""
        if self._process.wait():
            lines = self._log.read_text("utf-8", "replace").strip().splitlines()
            raise PeerFailedError(lines[-1] if lines else f"exit {self._process.returncode}")

    def kill(self) -> None:
        """End the process if it still runs."""
        self._process.kill()
        self._process.wait()


def _emulator(scenario: PeerScenario, plan: Plan, scale: float, per_window: int) -> Emulator:
    sizes = sorted(plan.items, key=lambda item: -item["size"])
    slowest_first = zip(sizes, scenario.by_encounter, strict=False)
    return Emulator(
        latency=scenario.latency,
        # The scale of the emulator leaves the seconds of a place as they are.
        latency_map={item["place"]: seconds * scale for item, seconds in slowest_first},
        faults=scenario.faults,
        rpm=per_window,
        window_s=WINDOW_S,
        answers=scenario.answers,
        scale=scale,
    )


def _row(
    scenario: PeerScenario,
    peer: Peer,
    work: PeerWork,
    report: PeerReport,
    log: Sequence[LogLine],
    *,
    of_peers: Mapping[Peer, PeerWork],
) -> PeerFigures:
    if peer is MEDPROC:
        # medproc draws its tokens itself.
        others = {
            token for each, work in of_peers.items() if each is not peer for token in work.items
        }
        lines = [line for line in log if line.item_token not in others]
        tokens = sorted({line.item_token for line in lines})
    else:
        lines = [line for line in log if line.item_token in work.items]
        tokens = list(work.items)
    if not lines:
        raise PeerFailedError(f"{peer.name} has made no call")
    return figures_of(
        scenario=scenario.name,
        peer=peer.name,
        tokens=tokens,
        report=report,
        log=lines,
        slots=work.slots,
        window_s=work.window_s,
        per_window=work.per_window,
    )
