"""Scenario files are parsed, checked and scaled, the ready scenarios included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemini_emulator.scenario import (
    STATES,
    load_scenario,
    read_phase,
    read_scenario,
    ready,
)

NAMED = ("outage", "throttle", "daily-quota", "truncation", "slow", "garbage", "mixed")
BARE = {"title": "t", "expect": "e"}


@pytest.mark.parametrize(
    ("text", "fault", "window", "probability"),
    [
        ("from 30s to 90s: down", "503", (30.0, 90.0), 1.0),
        ("from 0 to 1m30s: throttled, 50%", "429", (0.0, 90.0), 0.5),
        ("from 2m to 3m: out of quota", "429-day", (120.0, 180.0), 1.0),
        ("from 1.5m to 2m: 429-mixed, 2.5 %", "429-mixed", (90.0, 120.0), 0.025),
    ],
)
def test_a_phase_is_a_fault_within_a_window(
    text: str, fault: str, window: tuple[float, float], probability: float
) -> None:
    rule = read_phase(text)

    assert (rule.fault, rule.window, rule.probability) == (fault, window, probability)


def test_a_phase_without_an_end_lasts() -> None:
    rule = read_phase("from 10s: slow")

    assert rule.window is not None
    assert rule.window[1] > 1e9


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({}, "title"),
        ({**BARE, "quotas": {}}, "quotas"),
        ({**BARE, "quota": {"rpm": -1}}, "quota.rpm"),
        ({**BARE, "latency": "fast"}, "latency.*not a latency"),
        ({**BARE, "timeline": ["30s: down"]}, "timeline.*not a phase"),
        ({**BARE, "timeline": ["from 30s: asleep"]}, "timeline.*no such state: asleep"),
        ({**BARE, "timeline": ["from soon: down"]}, "timeline.*not a time"),
        ({**BARE, "fault": [{"fault": "418"}]}, "fault.0.fault.*no such fault"),
    ],
)
def test_a_mistake_is_reported_with_its_place_on_one_line(
    document: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says) as raised:
        read_scenario(document)

    assert "\n" not in str(raised.value)


def test_phases_come_before_rules_and_all_seconds_shrink_with_the_scale() -> None:
    scenario = read_scenario(
        {
            **BARE,
            "latency": "2/call+stall:0.1,50",
            "quota": {"rpm": 10, "window_s": 60},
            "timeline": ["from 30s to 90s: down"],
            "fault": [
                {"fault": "slow"},
                {"fault": "429", "retry_after_s": 20, "delay_s": 10},
            ],
        }
    )

    options = scenario.options(scale=0.1, rpm=20)

    down, slow, limited = options.rules
    assert down.window == pytest.approx((3.0, 9.0))
    assert slow.delay_s == pytest.approx(3.0)
    assert (limited.retry_after_s, limited.delay_s) == pytest.approx((2.0, 1.0))
    assert (options.latency.median_s, options.latency.stall_s) == pytest.approx((0.2, 5.0))
    assert (options.rpm, options.window_s) == (20, 6.0)


def test_the_named_scenarios_are_ready_and_say_what_to_expect() -> None:
    assert set(NAMED) <= set(ready())

    for name in ready():
        scenario = load_scenario(name)
        assert scenario.expect.endswith(".")
        assert "\n" not in scenario.title + scenario.expect


@pytest.mark.parametrize("name", ready())
def test_a_scenario_is_the_same_after_it_was_handed_to_another_process(name: str) -> None:
    scenario = load_scenario(name)

    assert read_scenario(scenario.model_dump(mode="json")) == scenario


def test_an_unknown_name_is_reported_with_the_known_names() -> None:
    with pytest.raises(ValueError, match="no such scenario: storm; ready scenarios: daily-quota"):
        load_scenario("storm")


def test_the_documentation_names_every_ready_scenario_and_state() -> None:
    page = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text(encoding="utf-8")

    assert [word for word in (*ready(), *STATES) if f"`{word}`" not in page] == []
