"""Ready scenarios through real workers: what they say to expect, and the proof from the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.management.proving import prove_log
from pipeline.models import ProviderCall, ShellFile
from pipeline.provider.emulator import Emulator
from tests import records
from tests.running import astray, ended
from tests.short_records import short_record
from tests.workers import WorkerCommand

pytestmark = pytest.mark.xdist_group("acceptance-scenarios")

RECORDS = 3
EXPECTED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "garbage": (
        {},
        {"PARSE_JSON", "PARSE_SCHEMA", "EMPTY_RESPONSE", "REPLY_MISMATCH"},
    ),
    "slow": ({"CALL_DEADLINE_S": 16.0}, {"API_TIMEOUT"}),
}
"""By scenario: settings that fit its scale, and the codes that it must show."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_scenario_shows_what_it_says_and_loses_nothing(
    name: str, start_pool: Callable[..., WorkerCommand], tmp_path: Path
) -> None:
    settings, codes = EXPECTED[name]
    files = [short_record(tmp_path / f"{n}.pdf", 12, patient=f"P{n}") for n in range(RECORDS)]

    with Emulator(scenario=name, scale=0.01, seed=3) as emulator:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini",
            GEMINI_BASE_URL=emulator.url,
            PASS05_CHUNK_PAGES=2,
            PASS1_BATCH_MIN_PAGES=1,
            PASS1_BATCH_MAX_PAGES=1,
            PASS1_BATCH_HARD_CEILING=1,
            PASS1_MAX_RETRIES=5,
            **settings,
        )
        received = [records.submit(file) for file in files]
        jobs = ended(*received)
        log = emulator.log()
        pool.stop()

    assert [job.last_error for job in jobs] == [None] * RECORDS
    seen = Counter(ProviderCall.objects.values_list("outcome", flat=True))
    assert codes <= set(seen)
    proof = prove_log(log)
    assert proof.findings == []
    assert proof.counts["items"] == proof.counts["accepted calls"] > 30
    for each in received:
        assert not astray(ShellFile.objects.get(id=each.shell_file_id))
