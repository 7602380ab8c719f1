"""The used share of a quota: three concurrent records, with the rate limiter and without it.

Run `python -m bench.quota`; 6 min with a quota minute of 20 s. `--window 60` uses the real minute,
15 min. Real Pass 1 steps run in their own processes, with the real google-genai client and the
emulator, which counts tokens like our estimate. Exits 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench._environment import environment_of
from medproc.embedded import throw_away_servers

if TYPE_CHECKING:
    from gemini_emulator import Emulator, LogLine

THIS = (sys.executable, "-m", "bench.quota")
"""The command of this benchmark, which runs its parts as processes."""
JOBS = 3
SLOTS = 30
GOODPUT = 0.97
UNEVEN = 0.15
WARM_UP = 1
"""Windows before the measured windows: an empty Redis counts the last window as spent."""
LATENCY = 0.06
"""Median latency in windows, 3.6 s of a minute, with σ 0.5: 20 of 90 calls are in flight."""
SUPPLY = 1.4
"""Windows of work beyond the measured windows, so that no job runs out of work."""
OVERHEAD = 360
"""Input tokens of a prompt in addition to its pages."""


@dataclass(frozen=True, kw_only=True)
class QuotaCase:
    """A quota per minute, and the size of its calls."""

    name: str
    rpm: int = 0
    tpm: int = 0
    call_tokens: int

    def scaled(self, window_s: float) -> QuotaCase:
        """Return the kind for a shorter window: as many calls, with fewer tokens."""
        part = window_s / 60
        return QuotaCase(
            name=self.name,
            rpm=self.rpm,
            tpm=round(self.tpm * part),
            call_tokens=round(self.call_tokens * part) if self.tpm else self.call_tokens,
        )

    @property
    def calls(self) -> float:
        """Calls per window that fit the quota."""
        return self.rpm or self.tpm / self.call_tokens


KINDS = {
    "requests": QuotaCase(name="300 requests a minute", rpm=300, call_tokens=800),
    "tokens": QuotaCase(name="1M tokens a minute, calls of 8k", tpm=1_000_000, call_tokens=8_000),
}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The results of one way of calling, after the warm-up."""

    goodput: float
    """Used share of the quota."""
    limited: int
    """Number of 429s."""
    limited_before: int
    shares: Mapping[str, float]
    """By job; 1 is an equal share."""
    longest_wait_s: float
    """Seconds between two starts of one job."""

    @property
    def uneven(self) -> float:
        """The largest deviation of a job's share from an equal share."""
        return max(abs(share - 1) for share in self.shares.values())


def main() -> int:
    """Run each kind, print its figures, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", type=float, default=20.0, help="seconds of a quota's minute")
    parser.add_argument("--windows", type=int, default=5, help="measured windows")
    parser.add_argument("--only", choices=[*KINDS])
    parser.add_argument("--busy", type=int, default=JOBS, help="processes with work")
    parser.add_argument("--call", choices=[*ALONE], help=argparse.SUPPRESS)
    parser.add_argument("--job", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        ALONE[options.call](options.job)
        return 0
    if options.only:
        return measured(KINDS[options.only].scaled(options.window), options)
    print(
        f"{options.busy} of {JOBS} processes at work,"
        f" {options.windows} windows of {options.window:.0f} s after {WARM_UP}",
        flush=True,
    )
    # Django uses one database for the life of a process, and each kind has its own database.
    own = [*THIS, *sys.argv[1:], "--only"]
    return max(subprocess.run([*own, name], check=False).returncode for name in KINDS)


def measured(kind: QuotaCase, options: argparse.Namespace) -> int:
    """Use a quota in each way at the same time, each way on its own emulator."""
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        environment = {
            **environment_of(places, folder),
            "MEDPROC_PROVIDER": "gemini",
            "GEMINI_BASE_URL": "http://127.0.0.1:1",
            "GEMINI_RPM": str(kind.rpm or 1_000_000),
            "GEMINI_TPM": str(kind.tpm or 1_000_000_000),
            "GATE_WINDOW_S": str(options.window),
            "BENCH_CALL_TOKENS": str(kind.call_tokens),
            "BENCH_THIRD": str(kind.calls / JOBS / options.window),
        }
        calls = round(kind.calls * (WARM_UP + options.windows + SUPPLY) / options.busy)
        prepare = [*THIS, "--call", "prepare", "--job", str(calls)]
        subprocess.run(prepare, env=environment, check=True)
        logs = _logs(kind, options, environment)
    quota = kind.tpm or kind.rpm
    print(f"{kind.name}: {quota:,} a window, {kind.calls:.0f} calls of {kind.call_tokens:,} tokens")
    figures = {name: _figures(lines, kind, options) for name, lines in logs.items()}
    for name, found in figures.items():
        shares = " ".join(f"{share:.3f}" for _, share in sorted(found.shares.items()))
        ratio = figures["limiter"].goodput / found.goodput
        print(
            f"  {name:<7} goodput {found.goodput:6.1%}  429s {found.limited:>4}"
            f" (warm-up {found.limited_before:>3})  shares {shares}"
            f"  longest wait {found.longest_wait_s:5.2f} s  limiter/{name} {ratio:.3f}"
        )
    ours = figures["limiter"]
    holds = ours.goodput >= GOODPUT and not ours.limited and ours.uneven <= UNEVEN
    print(f"  bounds: ≥ {GOODPUT:.0%}, no 429, shares within {UNEVEN:.0%}: {_verdict(holds)}")
    return 0 if holds else 1


def _verdict(holds: bool) -> str:
    return "hold" if holds else "MISSED"


def _logs(
    kind: QuotaCase, options: argparse.Namespace, environment: Mapping[str, str]
) -> dict[str, list[LogLine]]:
    os.environ.update(environment)
    import django

    django.setup()
    from gemini_emulator import Emulator

    with ExitStack() as stack:
        emulators: dict[str, Emulator] = {}
        for name in ("limiter", "third", "retry"):
            emulator = Emulator(
                rpm=kind.rpm,
                tpm=kind.tpm,
                window_s=options.window,
                latency=f"lognormal:{LATENCY * options.window},0.5/call",
                answers="minimal",
            )
            emulators[name] = stack.enter_context(emulator)
        for name, emulator in emulators.items():
            for job in range(options.busy):
                stack.enter_context(_process(name, job, environment, emulator.url))
        _wait(emulators, options)
        job_of = _jobs()
        return {
            name: [line for line in emulator.log() if line.route == "generateContent"]
            for name, emulator in emulators.items()
        } | {"limiter": _named(emulators["limiter"].log(), job_of)}


def _named(lines: Sequence[LogLine], job_of: Mapping[str, str]) -> list[LogLine]:
    """Prefix the item's token with its job; the other ways use this form from the start."""
    return [
        replace(line, item_token=job_of[line.item_token] + line.item_token)
        for line in lines
        if line.route == "generateContent"
    ]


def _jobs() -> dict[str, str]:
    from pipeline.models import Batch, ShellFile

    keys = ShellFile.objects.values_list("id", flat=True)
    files = {key: f"{at:02x}" for at, key in enumerate(keys)}
    rows = Batch.objects.values_list("id", "pass1_encounter_result__shell_file_id")
    return {batch.hex: files[shell_file] for batch, shell_file in rows}


@contextmanager
def _process(name: str, job: int, environment: Mapping[str, str], url: str) -> Iterator[None]:
    process = subprocess.Popen(
        [*THIS, "--call", name, "--job", str(job)],
        env={**environment, "GEMINI_BASE_URL": url},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"process {job} of {name} ended before its time")
    finally:
        process.kill()
        process.wait()


def _wait(emulators: Mapping[str, Emulator], options: argparse.Namespace) -> None:
    """Wait until each way has run its windows, and its last calls are in the log."""
    ends_at = time.time() + 120
    while True:
        begun = [
            min((line.time for line in emulator.log()), default=None)
            for emulator in emulators.values()
        ]
        if all(begun):
            break
        if time.time() > ends_at:
            raise RuntimeError("a process has not begun to call")
        time.sleep(0.5)
    # Some seconds more: the windows count from the first call of the last process.
    time.sleep((WARM_UP + options.windows + 0.4) * options.window + 5)


def _figures(lines: Sequence[LogLine], kind: QuotaCase, options: argparse.Namespace) -> Figures:
    firsts: dict[str, float] = {}
    for line in lines:
        job = line.item_token[:2]
        firsts[job] = min(line.time, firsts.get(job, line.time))
    began = max(firsts.values()) + WARM_UP * options.window
    ends = began + options.windows * options.window
    used: Counter[str] = Counter()
    starts: dict[str, list[float]] = {job: [] for job in firsts}
    limited = limited_before = 0
    for line in lines:
        if line.status == 429:
            limited += began <= line.time < ends
            limited_before += line.time < began
        elif began <= line.time < ends:
            used[line.item_token[:2]] += line.input_tokens if kind.tpm else 1
            starts[line.item_token[:2]].append(line.time)
    total = sum(used.values())
    return Figures(
        goodput=total / ((kind.tpm or kind.rpm) * options.windows),
        limited=limited,
        limited_before=limited_before,
        shares={job: used[job] * len(firsts) / total for job in firsts},
        longest_wait_s=max(
            later - earlier
            for moments in starts.values()
            for ordered in [[began, *sorted(moments), ends]]
            for earlier, later in pairwise(ordered)
        ),
    )


def prepare(calls: int) -> None:
    """Create three records of so many pages, one call per page, as Pass 0.5 leaves them."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)
    for job in range(JOBS):
        one_record(job, calls)


def one_record(job: int, pages: int) -> None:
    """Create one record of so many pages, one call per page, as Pass 0.5 leaves it."""
    from pipeline import models
    from pipeline.core.states import Step
    from pipeline.models.documents import PageSource

    draw = random.Random(job)
    patient = models.Patient.objects.create()
    shell_file = models.ShellFile.objects.create(
        patient=patient,
        sha256=f"{job:064x}",
        size_bytes=1,
        media_type="application/pdf",
        storage_key="records/none",
    )
    session = models.Session.objects.create(patient=patient, shell_file=shell_file)
    models.Summary.objects.create(profile=patient, shell_file=shell_file)
    found = models.DiscoverySession.objects.create(
        shell_file=shell_file,
        processing_session=session,
        total_pages=pages,
        total_chunks=1,
    )
    texts = {n: _text(draw) for n in range(1, pages + 1)}
    models.Page.objects.bulk_create(
        models.Page(
            shell_file=shell_file,
            page_number=n,
            text=text,
            source=PageSource.TEXT_LAYER,
            width=612,
            height=792,
        )
        for n, text in texts.items()
    )
    encounters = models.Encounter.objects.bulk_create(
        models.Encounter(
            shell_file=shell_file,
            patient=patient,
            encounter_index=n,
            encounter_type="office_visit",
            page_start=n,
            page_end=n,
            page_count=1,
            character_count=len(text),
        )
        for n, text in texts.items()
    )
    models.PageAssignment.objects.bulk_create(
        models.PageAssignment(
            discovery_session=found,
            healthcare_encounter=encounter,
            page_number=encounter.page_start,
            start_offset=0,
            end_offset=encounter.character_count,
        )
        for encounter in encounters
    )
    models.Job.objects.create(shell_file=shell_file, current_step=Step.PASS1)


def _text(draw: random.Random) -> str:
    """Return a page whose tokens differ from the wanted tokens per call by at most a fifth."""
    tokens = int(os.environ["BENCH_CALL_TOKENS"]) - OVERHEAD
    line = "Medications: lisinopril 20 mg by mouth daily, no change.\n"
    return line * round(4 * tokens * draw.uniform(0.8, 1.2) / len(line))


def with_limiter(job: int) -> None:
    """Work on one record like a worker."""
    import django

    django.setup()

    from pipeline.providers.config import ProviderConfig
    from pipeline.providers.factory import warm
    from pipeline.workers import run_step

    warm(ProviderConfig.of_settings())
    run_step.run_step("pass1")


def third_each(job: int) -> None:
    """Use a third of the quota by a private token bucket, and repeat limited calls."""
    rate = float(os.environ["BENCH_THIRD"])
    lock, due = threading.Lock(), [time.monotonic()]

    def wait() -> None:
        with lock:
            due[0] = max(due[0], time.monotonic() - 1 / rate) + 1 / rate
            seconds = due[0] - time.monotonic()
        time.sleep(max(0.0, seconds))

    _call_on(job, wait)


def retry_only(job: int) -> None:
    """Call as fast as the threads can, and repeat limited calls."""
    _call_on(job, lambda: None)


def _call_on(job: int, wait: Callable[[], None]) -> None:
    """Make calls without end, in as many threads as a step has."""
    import django

    django.setup()

    from pipeline.core.errors import CallError
    from pipeline.core.types import PageSlice
    from pipeline.providers.base import Request
    from pipeline.providers.config import ProviderConfig
    from pipeline.providers.factory import provider_for
    from pipeline.providers.prompts import estimate_tokens, render_entities
    from pipeline.providers.schemas import EntityReply

    provider = provider_for(ProviderConfig.of_settings())
    broken: queue.Queue[BaseException] = queue.Queue()

    def request(draw: random.Random) -> Any:
        token = f"{job:02x}{secrets.token_hex(15)}"
        page = PageSlice(page=1, start=0, text=_text(draw))
        prompt = render_entities(token, [page], include_zones=True)
        return Request(
            item_token=token,
            prompt=prompt,
            schema=EntityReply,
            max_output_tokens=8_192,
            deadline_s=120.0,
            prompt_version="1",
            estimated_input_tokens=estimate_tokens(prompt),
        )

    def thread(number: int) -> None:
        draw = random.Random(job * SLOTS + number)
        try:
            while True:
                asked, failed = request(draw), 0
                while True:
                    wait()
                    try:
                        provider.generate(asked)
                        break
                    except CallError as error:
                        # Like the retries of common clients: 1, 2, 4 … 60 s with jitter, and at
                        # least the hint.
                        backoff = min(2.0**failed, 60.0) * draw.uniform(1.0, 1.5)
                        failed += 1
                        time.sleep(max(backoff, error.details.retry_after_s or 0.0))
        except BaseException as error:
            broken.put(error)
            raise

    for number in range(SLOTS):
        threading.Thread(target=thread, args=(number,), daemon=True).start()
    raise broken.get()


ALONE: dict[str, Callable[[int], None]] = {
    "prepare": prepare,
    "limiter": with_limiter,
    "third": third_each,
    "retry": retry_only,
}
"""Functions that run in their own process."""


if __name__ == "__main__":
    sys.exit(main())
