"""The emulator's script, quotas, latencies and schema cutting work without a server."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from gemini_emulator import request_validation
from gemini_emulator.answers import Answers
from gemini_emulator.clock import PacificClock
from gemini_emulator.embeddings import DIMENSIONS, embed
from gemini_emulator.fault_script import MatchableCall, Script, load_script, read_rules
from gemini_emulator.faults import FAULTS, FINISH_REASONS, Draft, Setting
from gemini_emulator.latency import read_latency
from gemini_emulator.limits import QuotaWindows
from pipeline.providers.json_schema import wire_schema
from pipeline.providers.prompts import read_prompt
from pipeline.providers.schemas import EntityReply
from tests.support.emulator import entities_request


def call(
    *,
    number: int = 1,
    item: int = 1,
    attempt: int = 1,
    page: int = 1,
    kind: str = "entities",
    elapsed_s: float = 0.0,
    seed: str = "s",
    pages: int = 1,
) -> MatchableCall:
    return MatchableCall(
        number=number,
        item=item,
        attempt=attempt,
        page=page,
        kind=kind,
        elapsed_s=elapsed_s,
        seed=seed,
        pages=pages,
    )


def script(**rule: Any) -> Script:
    return Script(read_rules({"fault": [{"fault": "503", **rule}]}))


@pytest.mark.parametrize(
    ("rule", "met", "missed"),
    [
        ({"number": 3}, call(number=3), call(number=4)),
        ({"number": "3-5"}, call(number=5), call(number=6)),
        ({"number": "3-"}, call(number=900), call(number=2)),
        ({"number": [1, "7-8"]}, call(number=8), call(number=2)),
        ({"item": 2}, call(item=2), call(item=1)),
        ({"attempt": "1-2"}, call(attempt=2), call(attempt=3)),
        ({"page": 4}, call(page=4), call(page=5)),
        ({"pages": "2-"}, call(pages=2), call(pages=1)),
        ({"kind": "discovery"}, call(kind="discovery"), call(kind="entities")),
        ({"window": [1.0, 2.0]}, call(elapsed_s=1.0), call(elapsed_s=2.0)),
        ({"page": 4, "attempt": 1}, call(page=4), call(page=4, attempt=2)),
    ],
)
def test_a_rule_plays_where_all_its_selectors_fit(
    rule: dict[str, Any], met: MatchableCall, missed: MatchableCall
) -> None:
    rules = script(**rule)

    assert rules.choose(met) is not None
    assert rules.choose(missed) is None


def test_the_first_rule_that_fits_is_played() -> None:
    rules = Script(read_rules({"fault": [{"fault": "500", "page": 2}, {"fault": "503"}]}))

    chosen = [rules.choose(call(page=page)) for page in (1, 2)]

    assert [rule.fault for rule in chosen if rule] == ["503", "500"]


def test_a_rule_is_played_only_so_many_times() -> None:
    rules = script(times=2)

    assert [rules.choose(call()) is not None for _ in range(4)] == [True, True, False, False]


def test_probability_follows_the_seed_and_not_the_order() -> None:
    calls = [call(seed=str(n)) for n in range(1_000)]
    forwards, backwards = script(probability=0.3), script(probability=0.3)

    met = [forwards.choose(c) is not None for c in calls]
    met_backwards = [backwards.choose(c) is not None for c in reversed(calls)][::-1]

    assert met == met_backwards
    assert 250 < sum(met) < 350


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"fault": [{"fault": "418"}]}, "no such fault: 418"),
        ({"fault": [{"fault": "503", "when": 3}]}, "fault.0.when"),
        ({"fault": [{"fault": "503", "probability": 2}]}, "fault.0.probability"),
        ({"fault": [{"fault": "503", "number": "x"}]}, "fault.0.number"),
        ({"faults": []}, "faults"),
        ({"fault": [{"number": 1}]}, "fault.0.fault"),
    ],
)
def test_a_mistake_in_a_script_is_reported_with_its_place(
    document: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        read_rules(document)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("script.toml", '[[fault]]\nfault = "429"\nnumber = "1-3"\nretry_after_s = 2.5\n'),
        ("script.json", '{"fault": [{"fault": "429", "number": "1-3", "retry_after_s": 2.5}]}'),
    ],
)
def test_a_script_is_read_from_toml_and_json(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    (rule,) = load_script(path)

    assert rule.fault == "429"
    assert rule.number == [(1, 3)]
    assert rule.setting.retry_after_s == 2.5


def test_requests_are_limited_over_a_sliding_window() -> None:
    limits = QuotaWindows(rpm=3, window_s=60.0)

    admitted = [limits.admit(at, 10) is None for at in (0.0, 1.0, 2.0, 3.0, 59.9, 60.0, 60.5)]
    refusal = limits.admit(60.75, 10)

    assert admitted == [True, True, True, False, False, True, False]
    assert refusal is not None
    assert refusal.retry_after_s == pytest.approx(0.25)
    assert refusal.quotas[0].quota_id == "GenerateRequestsPerMinutePerProjectPerModel"


def test_input_tokens_are_limited_and_the_hint_waits_for_enough_of_them() -> None:
    limits = QuotaWindows(tpm=100, window_s=60.0)
    for at, tokens in ((0.0, 30), (10.0, 30), (20.0, 40)):
        assert limits.admit(at, tokens) is None

    refusal = limits.admit(30.0, 50)

    assert refusal is not None
    assert refusal.retry_after_s == pytest.approx(40.0)
    assert refusal.outcome == "limit-tpm"
    assert limits.admit(70.0, 50) is None


def clock_at(text: str) -> PacificClock:
    return PacificClock.set_to(text, now=0.0)


def test_a_days_quota_hints_at_seconds_and_lasts_until_midnight_pacific() -> None:
    limits = QuotaWindows(rpd=2, clock=clock_at("22:00:00"))
    for at in (0.0, 1.0):
        limits.admit(at, 1)

    refusal = limits.admit(7_199.0, 1)

    assert refusal is not None
    assert "PerDay" in refusal.quotas[0].quota_id
    assert refusal.retry_after_s == 5.0
    assert limits.admit(7_200.0, 1) is None


def test_a_clock_that_is_put_forward_frees_the_days_quota() -> None:
    clock = clock_at("08:00:00")
    limits = QuotaWindows(rpd=1, clock=clock)
    limits.admit(0.0, 1)
    assert limits.admit(1.0, 1) is not None

    clock.advance(clock.to_midnight_s(1.0))

    assert limits.admit(1.0, 1) is None


def test_a_day_of_the_change_to_summer_time_has_23_hours() -> None:
    assert clock_at("2026-03-08 00:00:00").to_midnight_s(0.0) == 23 * 3_600


@pytest.mark.parametrize("text", ["", "noon", "25:00:00"])
def test_another_form_of_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        clock_at(text)


def test_spend_is_limited_over_ten_windows_by_input_and_output() -> None:
    limits = QuotaWindows(spend_usd=1.0, window_s=60.0)
    assert limits.admit(0.0, 2_000_000) is None
    limits.answered(10.0, 2_000_000)

    refusal = limits.admit(20.0, 1)

    assert limits.spent_usd(20.0) == pytest.approx(1.0)
    assert refusal is not None
    assert refusal.outcome == "limit-spend"
    assert "Spend" in refusal.quotas[0].quota_id
    assert refusal.retry_after_s == pytest.approx(580.0)
    assert limits.admit(600.0, 1) is None


def test_each_model_has_a_quota_of_its_own_and_all_share_the_spend() -> None:
    limits = QuotaWindows(rpm=1, spend_usd=0.1)

    one, again, other = (limits.admit(0.0, 1_000_000, model) for model in "aab")

    assert one is None
    assert again is not None
    assert other is not None
    assert other.outcome == "limit-spend"


def latency_of(
    text: str, *, seed: str = "s", pages: int = 1, places: dict[str, float] | None = None
) -> float:
    return read_latency(text, places).of(
        kind="entities", page=3, start=120, item=5, pages=pages, seed=seed
    )


def test_latency_is_for_each_page_unless_it_is_for_a_call() -> None:
    assert latency_of("0.2", pages=10) == pytest.approx(2.0)
    assert latency_of("0.2/page", pages=10) == pytest.approx(2.0)
    assert latency_of("2/call", pages=10) == 2.0


def test_lognormal_latency_has_its_median_and_follows_its_seed() -> None:
    drawn = sorted(latency_of("lognormal:2,0.5/call", seed=str(n)) for n in range(2_001))

    assert drawn[1_000] == pytest.approx(2.0, rel=0.05)
    assert latency_of("lognormal:2,0.5/call", seed="7") == latency_of(
        "lognormal:2,0.5/call", seed="7"
    )


def test_a_part_of_the_calls_stalls() -> None:
    drawn = [latency_of("lognormal:2,0.3/call+stall:0.1,100", seed=str(n)) for n in range(2_000)]

    stalled = [seconds for seconds in drawn if seconds > 20]

    assert 150 < len(stalled) < 250
    assert sorted(stalled)[len(stalled) // 2] == pytest.approx(102, rel=0.1)


@pytest.mark.parametrize(
    ("places", "seconds"),
    [
        ({"3": 1.0}, 1.0),
        ({"3": 1.0, "entities 3": 2.0}, 2.0),
        ({"entities 3": 2.0, "3:120": 3.0}, 3.0),
        ({"3:120": 3.0, "entities 3:120": 4.0}, 4.0),
        ({"#5": 5.0}, 5.0),
        ({"discovery 3": 6.0, "4": 7.0, "#4": 8.0}, 0.1),
    ],
)
def test_the_most_particular_place_gives_the_latency(
    places: dict[str, float], seconds: float
) -> None:
    assert latency_of("0.1", places=places) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "fast", "-1", "lognormal:2", "1/day"])
def test_another_form_of_latency_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a latency"):
        read_latency(text)


def test_an_answer_has_no_field_that_the_schema_does_not_name() -> None:
    request = entities_request()
    schema = wire_schema(EntityReply)

    text = Answers("local").to(read_prompt(request.prompt), schema)

    names = {name for entity in json.loads(text)["entities"] for name in entity}
    assert names
    assert names <= set(schema["$defs"]["FoundEntity"]["properties"])
    assert not names & {"start", "rule"}


def test_a_model_writes_the_quote_first_then_the_values_and_the_assertions_last() -> None:
    order = wire_schema(EntityReply)["$defs"]["FoundEntity"]["propertyOrdering"]

    places = [order.index(name) for name in ("quote", "name", "value", "dose", "status", "negated")]
    assert order[0] == "quote"
    assert places == sorted(places)
    assert order.index("negated") < order.index("temporality") < order.index("experiencer")


def test_the_same_pages_are_answered_from_memory_with_each_token_of_its_own() -> None:
    answers = Answers("local")
    requests = [entities_request(), entities_request(), entities_request(text="NKDA")]

    replies = [json.loads(answers.to(read_prompt(r.prompt), {})) for r in requests]

    assert [reply["item_token"] for reply in replies] == [r.item_token for r in requests]
    assert replies[0]["entities"] == replies[1]["entities"] != replies[2]["entities"]
    assert len(answers._known) == 2


def test_the_schema_holds_no_bound_and_resolves() -> None:
    text = json.dumps(wire_schema(EntityReply))

    assert not [
        word for word in ("maximum", "minLength", "maxItems", "default", "title") if word in text
    ]
    assert '{"type": ["string", "null"]}' in text
    assert '"$ref": "#/$defs/FoundEntity"' in text


def test_like_texts_have_near_vectors_and_the_same_text_the_same() -> None:
    one, same, like, other = (
        embed(text)
        for text in ("type 2 diabetes",) * 2 + ("diabetes mellitus type 2", "fracture of the wrist")
    )

    def nearness(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert one == same
    assert len(one) == DIMENSIONS
    assert nearness(one, one) == pytest.approx(1.0, abs=1e-5)
    assert nearness(one, like) > 0.5 > nearness(one, other)
    assert embed("", 8) == [0.0] * 8


def test_attached_pages_of_more_than_50_mb_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_validation, "LARGEST_INLINE_BYTES", 1_000)
    part = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"x" * 600).decode()}}

    one, two = (
        request_validation.input_of({"contents": [{"parts": [part] * parts}]}) for parts in (1, 2)
    )

    assert one.problem == ""
    with pytest.raises(request_validation.Refused, match="payload size exceeds the limit"):
        request_validation.check_input(two, tokens=1)


def test_any_reason_is_one_of_the_services_and_follows_the_seed() -> None:
    draft = Draft(model="m", item_token="")

    drawn = [
        FAULTS["finish"].change(draft, Setting(reason="any", seed=str(n))).finish_reason
        for n in [*range(300), *range(300)]
    ]

    assert set(drawn) == set(FINISH_REASONS)
    assert drawn[:300] == drawn[300:]


def test_every_fault_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text(encoding="utf-8")

    assert [name for name in FAULTS if f"`{name}`" not in page] == []
