"""The order in which pytest-xdist starts the groups of tests, and the rule for slow tests.

A long group that starts last keeps one worker busy while the others have nothing left to do.
"""

from __future__ import annotations

import pytest

SECONDS: dict[str, int] = {}
"""Measured seconds of each xdist group on two idle cores with `-n 4`."""


def sort_longest_first(items: list[pytest.Item]) -> None:
    """Sort the groups by their measured seconds; tests without a group keep their order, last.

    `--no-loadscope-reorder` makes pytest-xdist keep this order.
    """
    items.sort(key=lambda item: -SECONDS.get(group_of(item) or "", 0))


def group_of(item: pytest.Item) -> str | None:
    """Give the name of the test's xdist group, if it has a group."""
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker else None


def refuse_slow_without_reason(item: pytest.Item) -> None:
    """Raise UsageError for a test that is marked `slow` without a reason."""
    marker = item.get_closest_marker("slow")
    if marker and not (marker.kwargs.get("reason") and not marker.args):
        raise pytest.UsageError(f'{item.nodeid}: write pytest.mark.slow(reason="…")')
