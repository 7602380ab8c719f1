"""The order in which pytest-xdist starts the groups of tests, and the rule for slow tests.

A long group that starts last keeps one worker busy while the others have nothing left to do.
"""

from __future__ import annotations

import pytest

SECONDS: dict[str, int] = {
    "supervisor": 120,
    "acceptance-reuse-kills": 90,
    "docs-commands": 90,
    "fault-matrix": 80,
    "acceptance-crashes": 75,
    "acceptance-chaos": 73,
    "acceptance-scenarios": 63,
    "acceptance-phi": 60,
    "browser": 60,
    "export-memory": 60,
    "web-server": 60,
    "acceptance-outage": 45,
    "peers": 45,
    "review-story": 40,
    "splitting": 40,
    "generator": 40,
    "outage-story": 38,
    "review-page": 38,
    "embedder": 30,
    "api-schema": 30,
    "acceptance-throttled": 25,
    "acceptance-promises": 25,
    "totals": 25,
    "schema": 25,
    "statement-budget": 25,
    "acceptance-canary": 25,
    "sample-truth": 25,
    "whole-pipeline": 25,
    "acceptance-reuse": 22,
    "acceptance-budgets": 22,
    "file-formats": 22,
    "acceptance-traces": 22,
    "api-results": 20,
    "api-python-client": 20,
    "results-story": 20,
    "later-totals": 20,
    "exports": 20,
    "code-texts": 20,
    "discovery-samples": 20,
    "acceptance-record-batches": 16,
    "executor-admission": 16,
    "quota-waits": 16,
    "bucket-backup": 15,
    "acceptance-preemption": 14,
    "acceptance-retries": 14,
    "acceptance-altered": 12,
    "upload-slots": 12,
    "acceptance-liar": 11,
    "acceptance-many": 10,
    "metrics": 10,
    "private-arguments": 10,
    "new_pass": 10,
    "acceptance-deployment": 9,
    "console-log": 8,
    "explain": 8,
    "scan": 8,
    "seed_queries": 8,
    "acceptance-records": 6,
    "acceptance-hostile": 5,
}
"""Seconds of each xdist group on two idle cores; rough, because only the order matters.

A group with a single test above 10 s was measured idle. The others are scaled from a busy machine.
"""


def sort_longest_first(items: list[pytest.Item]) -> None:
    """Sort the groups by their measured seconds; tests without a group keep their order, last.

    `--no-loadscope-reorder` makes pytest-xdist keep this order.
    """
    items.sort(key=lambda item: -SECONDS.get(group_of(item) or "", 0))


def group_of(item: pytest.Item) -> str | None:
    """Return the name of the test's xdist group, if it has a group."""
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker else None


def refuse_slow_without_reason(item: pytest.Item) -> None:
    """Raise UsageError for a test that is marked `slow` without a reason."""
    marker = item.get_closest_marker("slow")
    if marker and not (marker.kwargs.get("reason") and not marker.args):
        raise pytest.UsageError(f'{item.nodeid}: write pytest.mark.slow(reason="…")')
