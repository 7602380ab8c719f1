"""A record of 3,000 pages and 150,000 entities is exported within 200 MB, in any format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection

from tests.support.long_records import FORMATS, PER_PAGE, a_long_record, peak_of_export

SMALL, LARGE, LONGEST = 400, 800, 3_000
"""Pages. `python -m bench.export_memory` exports the longest record itself."""
MOST_MB = 200


@pytest.mark.slow(reason="writes 60,000 entities and exports them four times")
@pytest.mark.xdist_group("export-memory")
def test_a_long_record_stays_within_the_memory(cloned_db: str, tmp_path: Path) -> None:
    small, large = a_long_record(SMALL), a_long_record(LARGE)
    connection.close()

    expected = {}
    for form in FORMATS:
        first, second = (peak_of_export(job, form, tmp_path) for job in (small, large))
        expected[form] = second + (second - first) * (LONGEST - LARGE) / (LARGE - SMALL)

    assert max(expected.values()) < MOST_MB, f"MB of {LONGEST} pages: {expected}"
    record = large.shell_file_id
    manifest = json.loads((tmp_path / f"{record}.pair.json").read_text("utf-8"))
    table = (tmp_path / f"{record}.csv").read_text("utf-8")
    assert table.count('"glucose","5.10","mmol/L"') == LARGE * PER_PAGE
    assert manifest["json_bytes"] > manifest["parquet_bytes"]
