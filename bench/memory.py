"""The memory of the processes that work on a 1,000-page text record, through all passes.

Run `python -m bench.memory [pages]`, on its own PostgreSQL, Valkey and emulator, with ICD-10-CM
loaded. Each pass runs in its own process, like a horse of the worker pool. Exits 1 if a process
exceeds 250 MB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench._environment import environment_of
from medproc.embedded import throw_away_servers
from medproc.env import PROJECT_ROOT

BOUND_MB = 250

SUBMIT = """
import sys
from pathlib import Path

import django

django.setup()

from pipeline.operations import operator_actions
from pipeline.stages.intake import Submission

received = operator_actions.record_submit(Submission(path=Path(sys.argv[1])))
print(received.job_id)
"""
HORSE = """
import sys
import time

import django

django.setup()

from pipeline.models import Job
from pipeline.workers import run_step
from pipeline.workers.warming import warm, warm_engine


def megabytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith(field))


job_id, step, bound = sys.argv[1], sys.argv[2], int(sys.argv[3])
warm()
warm_engine()
first = megabytes("VmHWM")
began = time.monotonic()
run_step.run_step(step)
took = time.monotonic() - began
peak = megabytes("VmHWM")
job = Job.objects.get(id=job_id)
moved = job.status == "completed" or (job.status == "pending" and job.current_step != step)
said = job.status if moved else f"{job.status} {job.error_code}"
print(f"  {step:8} peak {peak:4} MB (at the start {first} MB), {took:5.1f} s, job {said}")
sys.exit(0 if moved and peak < bound else 1)
"""
STEPS = ("pages", "pass05", "pass1", "pass1_5", "pass2", "pass3")
COUNT = """
import django

django.setup()

from pipeline.models import Batch, CodeCandidate, EnrichedEntity, Entity
from pipeline.models import NarrativeResult, NarrativeSentence, ZoneResult

models = (Batch, Entity, CodeCandidate, ZoneResult, EnrichedEntity, NarrativeResult,
          NarrativeSentence)
print("  rows: " + ", ".join(f"{m.objects.count()} {m._meta.db_table}" for m in models))
"""


def main() -> int:
    """Process one record with each provider, print the peaks, and return the exit code."""
    from samples.bulk import make_text_record

    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        environment = environment_of(places, folder)
        for command in (["migrate", "--verbosity", "0"], ["load_codes", "ICD10CM"]):
            manage = [sys.executable, str(PROJECT_ROOT / "manage.py"), *command]
            subprocess.run(manage, env=environment, check=True)
        record = Path(folder) / "record.pdf"
        record.write_bytes(make_text_record(pages, pages // 5, 1))
        failed = _run("local engine", record, {**environment, "MEDPROC_PROVIDER": "local"})
        os.environ["DJANGO_SETTINGS_MODULE"] = "medproc.settings"
        from gemini_emulator import Emulator

        with Emulator() as emulator:
            gemini = {
                **environment,
                "MEDPROC_PROVIDER": "gemini",
                "GEMINI_BASE_URL": emulator.url,
                "GEMINI_RPM": "1000000",
                "GEMINI_TPM": "1000000000",
            }
            failed |= _run("Gemini client and emulator", record, gemini)
    return failed


def _run(name: str, record: Path, environment: dict[str, str]) -> int:
    print(f"{name}, bound {BOUND_MB} MB for each process", flush=True)
    job_id = _python(SUBMIT, str(record), environment=environment).stdout.strip()
    failed = 0
    for step in STEPS:
        done = _python(HORSE, job_id, step, str(BOUND_MB), environment=environment)
        print(done.stdout, end="", flush=True)
        failed |= done.returncode
    print(_python(COUNT, environment=environment).stdout, end="", flush=True)
    return failed


def _python(
    code: str, *arguments: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
