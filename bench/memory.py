"""The memory of the processes that work on a 1,000-page text record.

Run `python -m bench.memory [pages]`; 2 min, on its own PostgreSQL, Valkey and emulator. The record
runs in its own process, like a horse of the worker pool. Exits 1 if a process exceeds 200 MB.
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

BOUND_MB = 200

WORKER = """
import sys
from pathlib import Path

import django

django.setup()

from django.conf import settings

from pipeline.models import Batch, Entity, Job
from pipeline.operations import operator_actions
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import warm
from pipeline.stages.intake import Submission
from pipeline.workers import run_step


def megabytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith(field))


warm(ProviderConfig.of_settings())
received = operator_actions.record_submit(Submission(path=Path(sys.argv[1])))
for step in ("pages", "pass05", "pass1"):
    run_step.run_step(step)
    print(f"  {step:8} now {megabytes('VmRSS'):4} MB, peak {megabytes('VmHWM'):4} MB")
job = Job.objects.get(id=received.job_id)
print(f"  job {job.status}, {Batch.objects.count()} batches, {Entity.objects.count()} entities")
sys.exit(0 if job.status == "completed" and megabytes("VmHWM") < int(sys.argv[2]) else 1)
"""


def main() -> int:
    """Process one record with each provider, print the peaks, and return the exit code."""
    from samples.bulk import make_text_record

    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        environment = environment_of(places, folder)
        migrate = [sys.executable, str(PROJECT_ROOT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(migrate, env=environment, check=True)
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
    print(f"{name}, bound {BOUND_MB} MB")
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(record), str(BOUND_MB)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
