"""A short run of `make chaos` loses nothing: kills, a crowd of records, and stopped servers.

The run is a separate process with its own servers, scheduler, workers and provider.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from medproc.env import PROJECT_ROOT

pytestmark = [
    pytest.mark.xdist_group("acceptance-chaos"),
    pytest.mark.timeout(1800),
    pytest.mark.slow(reason="kills and five outages; 90 s, mostly waiting"),
]

KILLS = 10
SECONDS = 6
RECORDS = 15
SCENES = ("kills", "crowd", "outages", "lost-replies")


@pytest.fixture(scope="module")
def figures() -> dict[str, dict[str, Any]]:
    """Play the scenes, and return the figures of each scene."""
    figures = ("--kills", str(KILLS), "--seconds", str(SECONDS), "--records", str(RECORDS))
    result = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *SCENES, *figures, "--json"],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == len(SCENES), result.stderr[-2000:]
    return {line["scene"]: line for line in lines}


def assert_clean(scene: dict[str, Any]) -> None:
    assert scene["findings"] == []
    assert {scene[name] for name in ("lost", "doubled", "partial", "repeated")} == {0}
    assert scene["records"] > 0


def test_kills_at_random_moments_lose_nothing_and_are_all_counted(
    figures: dict[str, dict[str, Any]],
) -> None:
    scene = figures["kills"]

    assert_clean(scene)
    assert sum(number for name, number in scene.items() if name.startswith("kills ")) == KILLS
    assert scene["crashes counted"] >= scene["stranded"] > 0


def test_every_record_of_a_crowd_completes_while_processes_die(
    figures: dict[str, dict[str, Any]],
) -> None:
    scene = figures["crowd"]

    assert_clean(scene)
    assert scene["records completed"] == scene["records"] == RECORDS
    assert scene["kills"] > 0


def test_records_outlive_redis_and_postgresql_being_away_emptied_and_full(
    figures: dict[str, dict[str, Any]],
) -> None:
    assert_clean(figures["outages"])


def test_a_commit_whose_reply_is_lost_is_not_done_twice(
    figures: dict[str, dict[str, Any]],
) -> None:
    assert_clean(figures["lost-replies"])
    assert figures["lost-replies"]["replies lost"] == 7
