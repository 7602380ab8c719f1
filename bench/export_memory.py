"""The memory and the time of an export of the longest record, in each format.

Run `python -m bench.export_memory [pages]`, on its own PostgreSQL. The record has 3,000 pages and
150,000 entities. Exits 1 if an export exceeds 200 MB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._environment import environment_of
from medproc.embedded import throw_away_servers
from medproc.env import PROJECT_ROOT

PAGES = 3_000
BOUND_MB = 200


def main() -> int:
    """Write the record, export it in each format, print the peaks, and return the exit code."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    with (
        throw_away_servers() as places,
        tempfile.TemporaryDirectory() as data,
        tempfile.TemporaryDirectory() as folder,
    ):
        os.environ.update(environment_of(places, data))
        migrate = [sys.executable, str(PROJECT_ROOT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(migrate, check=True)
        return _export(pages, Path(folder))


def _export(pages: int, folder: Path) -> int:
    import django

    django.setup()
    # This module needs the models, so the settings come first.
    from tests.support.long_records import FORMATS, PER_PAGE, a_long_record, peak_of_export

    job = a_long_record(pages)
    print(f"{pages:,} pages, {pages * PER_PAGE:,} entities, bound {BOUND_MB} MB", flush=True)
    most = 0
    for form in FORMATS:
        began = time.monotonic()
        peak = peak_of_export(job, form, folder)
        print(f"  {form:5} peak {peak:4} MB, {time.monotonic() - began:6.1f} s", flush=True)
        most = max(most, peak)
    return int(most >= BOUND_MB)


if __name__ == "__main__":
    sys.exit(main())
