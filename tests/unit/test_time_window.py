"""The time windows of a page end now, accept typed times, and refuse unreadable input."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from observability.listing.time_window import Window, asked_for
from pipeline.core.errors import UserError

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "since", "until", "words"),
    [
        ({}, NOW - timedelta(days=1), NOW, "last 24 hours"),
        ({"window": "1h"}, NOW - timedelta(hours=1), NOW, "last 1 hour"),
        (
            {"window": "7d", "since": "2026-02-01T00:00"},
            NOW - timedelta(days=7),
            NOW,
            "last 7 days",
        ),
        (
            {"since": "2026-02-28T02:41"},
            datetime(2026, 2, 28, 2, 41, tzinfo=UTC),
            NOW,
            "2026-02-28 02:41 to 2026-03-01 03:00",
        ),
        (
            {"until": "2026-02-28T02:41+01:00"},
            datetime(2026, 2, 27, 1, 41, tzinfo=UTC),
            datetime(2026, 2, 28, 1, 41, tzinfo=UTC),
            "2026-02-27 01:41 to 2026-02-28 01:41",
        ),
    ],
)
def test_a_period_is_read(
    asked: dict[str, str], since: datetime, until: datetime, words: str
) -> None:
    found = asked_for(asked, NOW)

    assert (found.since, found.until) == (since, until)
    assert found.words == words
    assert found.window == (Window(asked["window"]) if "window" in asked else found.window)


def test_the_fields_of_a_period_say_the_same_period() -> None:
    typed = asked_for({"since": "2026-02-28T02:41", "until": "2026-02-28T03:10"}, NOW)

    assert asked_for(typed.fields, NOW) == typed
    assert asked_for(asked_for({"window": "1h"}, NOW).fields, NOW).window is Window.HOUR


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"window": "2h"}, "window is one of 1h, 24h, 7d"),
        ({"since": "yesterday"}, "give times as 2026-01-31T02:41"),
        ({"since": "0001-01-01T00:00+14:00"}, "give times as 2026-01-31T02:41"),
        ({"since": "2026-03-02T00:00"}, "the time ends before it begins; give since before until"),
    ],
)
def test_an_invalid_period_is_refused_in_one_line(asked: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as refused:
        asked_for(asked, NOW)

    assert refused.value.message == said
