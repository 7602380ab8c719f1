"""The console computes forecast, charts and time scale correctly, and its CSS stays small."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.staticfiles import finders
from django.template.loader import get_template

from observability.diagnostics.failures import FailureGroup, FailureSource
from observability.drilldown.queries import RecordRows
from observability.drilldown.timeline import IDLE_WIDTH, LISTED, WIDTH, Band, CallBar, timeline
from observability.metrics.charts import bars, stacked
from observability.metrics.forecast import Outstanding, forecast, uses
from observability.permissions import RIGHT_NAMES, ROLES, Right, Role
from observability.templatetags import console
from observability.views.timeline_html import timeline_html
from pipeline.core.states import Step
from pipeline.models import Batch, Encounter, ProviderCall
from pipeline.ratelimit import Breaker, RateLimiterState
from pipeline.ratelimit.quota_reset import day_ends_at
from tests.support.python_calls import python_calls

NOW = datetime(2026, 11, 28, 3, 0, tzinfo=UTC)
OPEN = RateLimiterState(
    provider="gemini",
    model="flash",
    is_local=False,
    now=NOW.timestamp(),
    requests_used=180,
    requests_limit=300,
    tokens_used=970_000,
    tokens_limit=1_000_000,
)
LEFT = Outstanding(calls=600, tokens=10_000_000, pages=0)


def limiter(**changes: object) -> RateLimiterState:
    """Return the state of an open rate limiter with some changes."""
    return RateLimiterState(**{**vars(OPEN), **changes})


def test_the_forecast_is_what_the_limit_that_binds_takes() -> None:
    found = forecast(LEFT, OPEN, 0.0, NOW)

    # 600 calls take 2 min at 300 per minute; 10 million tokens take 10 min at a million per minute.
    assert found.at == NOW + timedelta(minutes=10)
    assert "tokens a minute bind" in found.words


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"is_paused": True}, "paused"),
        ({"breaker": Breaker.OPEN}, "down"),
        ({"requests_limit": None, "tokens_limit": None}, "no quota binds"),
    ],
)
def test_no_time_is_shown_where_no_estimate_exists(changes: dict[str, object], said: str) -> None:
    found = forecast(LEFT, limiter(**changes), 0.0, NOW)

    assert found.at is None
    assert said in found.words


def test_a_cooldown_comes_on_top() -> None:
    found = forecast(LEFT, limiter(cooldown_until=NOW.timestamp() + 60), 0.0, NOW)

    assert found.at == NOW + timedelta(minutes=11)


def test_without_a_quota_the_pace_decides() -> None:
    unlimited = limiter(requests_limit=None, tokens_limit=None)

    found = forecast(LEFT, unlimited, 60.0, NOW)

    assert found.at == NOW + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("used", "days", "minutes"),
    [
        # 600 calls of 1,000 per day; the tokens of all calls take 10 min.
        (400, None, 10.0),
        (700, 0, 5.0),
        (1_000, 0, 10.0),
    ],
)
def test_calls_beyond_the_daily_quota_are_forecast_for_the_next_days(
    used: int, days: int | None, minutes: float
) -> None:
    found = forecast(LEFT, limiter(day_used=used, day_limit=1_000), 0.0, NOW)

    begins = NOW if days is None else day_ends_at(NOW) + timedelta(days=days)
    assert found.at == begins + timedelta(minutes=minutes)
    assert ("requests a day bind" in found.words) == (days is not None)


def test_a_small_limit_of_a_day_takes_several_days() -> None:
    found = forecast(LEFT, limiter(day_used=0, day_limit=250), 0.0, NOW)

    # 250 today, 250 tomorrow, the rest on the day after.
    assert found.at == day_ends_at(NOW) + timedelta(days=1, minutes=10 * 100 / 600)


def test_a_capped_count_is_never_reported_as_done() -> None:
    left = Outstanding(calls=0, tokens=0, pages=0, is_capped=True)

    assert forecast(left, OPEN, 0.0, NOW).at is None


def test_the_most_used_limit_comes_first() -> None:
    first, second = uses(OPEN)

    assert (first.name, round(first.share, 2)) == ("input tokens a minute", 0.97)
    assert (second.name, second.share) == ("requests a minute", 0.6)


def test_the_smallest_figure_is_still_seen_and_none_is_no_bar() -> None:
    chart = bars([0, 1, 1000], words="three")

    assert [bar.x for bar in chart.bars] == [4, 8]
    assert [bar.height for bar in chart.bars] == [1.0, 24]


def test_stacked_parts_stand_on_each_other() -> None:
    chart = stacked([[("ok", 3), ("failed", 1)]], words="one", height=40)

    assert [(bar.kind, bar.y, bar.height) for bar in chart.bars] == [
        ("ok", 10.0, 30.0),
        ("failed", 0.0, 10.0),
    ]


def test_a_bar_costs_few_python_calls_and_its_title_is_escaped() -> None:
    template = get_template("console/bars.html")

    def drawn(number: int) -> str:
        chart = stacked([[("ok", 1)]] * number, words="calls", titles=["<5 & 6>"] * number)
        html: str = template.render({"chart": chart})
        return html

    few, many = (python_calls(partial(drawn, number)) for number in (10, 110))

    assert drawn(2).count("<title>&lt;5 &amp; 6&gt;</title>") == 2
    assert '<rect class="b-ok" x="5" y="0.0" width="4" height="40.0">' in drawn(2)
    # A template needs 138 calls for each bar.
    assert (many - few) / 100 < 15


def a_line(*starts: float) -> RecordRows:
    """Return the rows of a record with one encounter, whose calls of 2 s start at these seconds."""
    encounter = Encounter(id=uuid4(), encounter_index=1)
    batch = Batch(id=uuid4(), batch_index=0, healthcare_encounter_id=encounter.id)
    made = [
        ProviderCall(
            id=uuid4(),
            step=Step.PASS1,
            work_item_id=batch.id,
            attempt=number,
            outcome="OK",
            queue_wait_ms=0,
            duration_ms=2000,
            started_at=NOW + timedelta(seconds=start),
        )
        for number, start in enumerate(starts, 1)
    ]
    rows: dict[str, Any] = dict.fromkeys(RecordRows.__dataclass_fields__)
    rows |= {"encounters": [encounter], "items": {Step.PASS1: [batch]}, "calls": made}
    return RecordRows(**rows)


def test_calls_at_once_lie_below_each_other_and_later_ones_take_the_free_row() -> None:
    drawn = timeline(a_line(0, 1, 2))

    assert drawn is not None
    (lane,) = drawn.lanes
    first, second, third = lane.calls
    assert first.y == third.y < second.y
    assert first.x == 0
    assert third.x + third.width == WIDTH


def test_hours_in_which_nothing_ran_are_drawn_short() -> None:
    drawn = timeline(a_line(0, 7200))

    assert drawn is not None
    (band,) = drawn.bands
    assert (band.kind, band.width, band.title) == ("idle", IDLE_WIDTH, "no call for 2 h")
    widths = {call.width for call in drawn.lanes[0].calls}
    assert widths == {(WIDTH - IDLE_WIDTH) / 2}


def test_every_bar_is_within_the_picture_at_any_number_of_idle_times() -> None:
    drawn = timeline(a_line(*(3_600.0 * number for number in range(200))))

    assert drawn is not None
    bars: list[CallBar | Band] = [*drawn.lanes[0].calls, *drawn.bands]
    assert len(bars) == 200 + 199
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in bars)
    # The idle bands take at most half of the width, so that the calls have the rest.
    assert sum(band.width for band in drawn.bands) <= WIDTH / 2


def test_the_calls_of_the_line_are_listed_in_words_up_to_a_bound() -> None:
    drawn = timeline(a_line(*range(LISTED + 5)))

    assert drawn is not None
    assert (len(drawn.listed), drawn.unlisted) == (LISTED, 5)
    assert drawn.listed[3][1].title == "batch 1, call 4: OK, took 2.0 s"
    assert drawn.listed[3][1].at == "3.0 s"


@pytest.mark.parametrize(
    ("providers", "awaited"),
    [
        (("local", "local"), "a free slot"),
        (("gemini", "gemini"), "a free slot or the rate limiter"),
        (("local", "gemini"), "a free slot or the rate limiter"),
    ],
)
def test_a_call_of_the_local_engine_never_waited_for_the_rate_limiter(
    providers: tuple[str, str], awaited: str
) -> None:
    rows = a_line(0, 5)
    for call, provider in zip(rows.calls, providers, strict=True):
        call.provider, call.queue_wait_ms = provider, 3000

    drawn = timeline(rows)

    assert drawn is not None
    assert drawn.waited == f"waited for {awaited}"
    titles = [call.title for call in drawn.lanes[0].calls if providers == ("local", "local")]
    assert all(", waited 3.0 s for a free slot, took 2.0 s" in title for title in titles)


def test_a_group_that_was_absorbed_needs_nothing() -> None:
    group = FailureGroup(
        source=FailureSource.CALL,
        cause="API_5XX",
        step=Step.PASS1,
        model="flash",
        records=1,
        works=3,
        calls=4,
        absorbed=3,
        failed=0,
        first=NOW,
        last=NOW,
        trend=[4],
    )

    assert group.advice.startswith("Nothing to do")


@pytest.mark.parametrize(("lost", "is_outage"), [(5, False), (6, True)])
def test_a_group_of_more_than_five_lost_to_the_provider_is_likely_an_outage(
    lost: int, is_outage: bool
) -> None:
    group = FailureGroup(
        source=FailureSource.CALL,
        cause="API_5XX",
        step=Step.PASS1,
        model="flash",
        records=1,
        works=lost,
        calls=3 * lost,
        absorbed=0,
        failed=lost,
        first=NOW,
        last=NOW,
        trend=[3 * lost],
    )

    assert group.advice.startswith("Likely an outage") == is_outage
    assert "Retry when the provider has recovered" in group.advice


def test_almost_all_is_not_all() -> None:
    assert console.percent(0.99999) == "99.9 %"
    assert console.percent(1.0) == "100 %"
    assert console.percent(None) == "–"


def test_every_right_has_a_name_and_only_the_administrator_has_all() -> None:
    assert set(RIGHT_NAMES) == set(Right)
    assert [role for role in Role if ROLES[role] == set(Right)] == [Role.ADMINISTRATOR]
    assert [role for role in Role if Right.READ_PHI in ROLES[role]] == [
        Role.REVIEWER,
        Role.ADMINISTRATOR,
    ]


def test_small_amounts_are_written_in_words() -> None:
    assert console.about("0.0001") == "less than $0.001"
    assert console.about("0.021") == "≈ $0.021"
    assert console.about(0) == "≈ $0"
    assert [console.about_minutes(n) for n in (0, 0.01, 4.2)] == [
        "none",
        "less than 0.1 min",
        "≈ 4.2 min",
    ]


def test_one_lane_is_one_and_none_failed_is_none() -> None:
    drawn = timeline(a_line(0))

    assert drawn is not None
    assert drawn.words.endswith(" in 1 lane; none of them failed.")
    assert drawn.words.startswith("1 call over ")


def test_the_bars_of_calls_show_the_wait_and_escape_every_text() -> None:
    drawn = timeline(a_line(0, 1))
    assert drawn is not None
    lane = replace(
        drawn.lanes[0],
        title="<b>lane</b>",
        calls=[replace(drawn.lanes[0].calls[0], title="a & b", wait_x=1.5, wait_width=2.5)],
    )

    html = timeline_html(replace(drawn, lanes=[lane], listed=[("<i>", lane.calls[0])]))

    assert '<rect class="b-wait" x="1.5" y="0" width="2.5" height="5"/>' in html.bars
    assert "<title>&lt;b&gt;lane&lt;/b&gt;, a &amp; b</title>" in html.bars
    assert html.rows.startswith("<tr><td>&lt;i&gt;</td>")
    assert html.bars.count("<a ") == html.rows.count("<a ") == 1


def test_the_stylesheet_is_small() -> None:
    path = finders.find("console/console.css")

    assert path is not None
    assert Path(path).stat().st_size < 10_240
