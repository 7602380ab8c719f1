"""The proof finds each lost, doubled and swapped call in the emulator's log."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from gemini_emulator.http import HttpRequest
from gemini_emulator.proof import Proof, RecordedCall, RecordedItem, prove
from gemini_emulator.request_log import LogLine, read_log
from gemini_emulator.service import Options, Service
from tests.support.emulator import MODEL, entities_request

A, B = "a" * 32, "b" * 32


def line(number: int, token: str = A, *, time: float = 0.0, **changed: object) -> LogLine:
    whole = LogLine(
        time=time,
        number=number,
        route="generateContent",
        item_token=token,
        kind="entities",
        attempt=1,
        pages=[1, 2],
        outcome="ok",
        status=200,
        finish_reason="STOP",
        response_id=f"r{number}",
        input_tokens=10,
        output_tokens=10,
        drawn_s=1.0,
        latency_s=1.0,
        delivered=True,
    )
    return replace(whole, **changed)  # type: ignore[arg-type]


def item(token: str = A, **changed: object) -> RecordedItem:
    whole = RecordedItem(token=token, succeeded=True, first_page=1, last_page=2)
    return replace(whole, **changed)  # type: ignore[arg-type]


def call(
    response_id: str, token: str = A, *, began: float = 0.0, **changed: object
) -> RecordedCall:
    whole = RecordedCall(
        token=token,
        run="session pass1",
        accepted=True,
        outcome="OK",
        response_id=response_id,
        lease_gen=3,
        began=began,
        ended=began + 1.0,
    )
    return replace(whole, **changed)  # type: ignore[arg-type]


def kinds(proof: Proof) -> list[str]:
    return [finding.partition(":")[0] for finding in proof.findings]


def test_one_accepted_call_for_each_item_is_whole() -> None:
    proof = prove([line(1), line(2, B)], [item(), item(B)], [call("r1"), call("r2", B)])

    assert proof.findings == []
    assert proof.counts["accepted calls"] == proof.counts["items"] == 2


def test_a_reply_that_was_given_to_another_item_is_swapped() -> None:
    proof = prove([line(1), line(2, B)], [item(), item(B)], [call("r2"), call("r1", B)])

    assert kinds(proof) == ["swapped", "swapped"]


def test_a_reply_for_pages_of_another_batch_is_swapped() -> None:
    proof = prove([line(1, pages=[3])], [item()], [call("r1")])

    assert kinds(proof) == ["swapped"]


def test_two_accepted_calls_are_doubled() -> None:
    lines = [line(1), line(2, time=5.0)]

    proof = prove(lines, [item()], [call("r1"), call("r2", began=5.0)])

    assert kinds(proof) == ["doubled"]


def test_an_unrecorded_success_is_lost() -> None:
    calls = [call("r2", began=5.0), call("r3", B)]

    proof = prove([line(1), line(2, time=5.0), line(3, B)], [item(), item(B)], calls)

    assert kinds(proof) == ["lost"]


def test_a_success_before_a_later_lease_went_to_a_killed_worker() -> None:
    calls = [call("r2", began=5.0, lease_gen=4), call("r3", B)]

    proof = prove([line(1), line(2, time=5.0), line(3, B)], [item(), item(B)], calls)

    assert proof.findings == []
    assert proof.counts["replies matched to a killed worker"] == 1


def test_the_calls_of_a_killed_worker_are_no_loss_if_its_job_resumes_at_once() -> None:
    of_killed = [line(1, time=8.0), line(2, B, time=7.0)]
    again = [line(3, time=8.04), line(4, B, time=8.06)]
    calls = [
        call("r2", B, began=7.0, lease_gen=3, accepted=False, outcome="OK"),
        call("r3", began=8.04, lease_gen=4),
        call("r4", B, began=8.06, lease_gen=4),
    ]

    proof = prove([*of_killed, *again], [item(), item(B)], calls)

    assert proof.findings == []
    assert proof.counts["replies matched to a killed worker"] == 1


def test_a_reply_lost_under_the_same_lease_is_found_however_soon_its_repetition_came() -> None:
    calls = [call("r2", B, began=7.0), call("r3", began=8.04)]
    lines = [line(1, time=8.0), line(2, B, time=7.0), line(3, time=8.04)]

    proof = prove(lines, [item(), item(B)], calls)

    assert kinds(proof) == ["lost"]


def test_each_timeout_accounts_for_one_success() -> None:
    timeout = call("", accepted=False, outcome="API_TIMEOUT")
    lines = [line(1), line(2, time=0.5), line(3, time=9.0)]

    proof = prove(lines, [item()], [timeout, call("r3", began=9.0)])

    assert proof.counts["replies matched to a timeout"] == 1
    assert kinds(proof) == ["lost"]


def test_a_late_reply_is_recorded_and_not_accepted() -> None:
    late = call("r1", accepted=False, outcome="LATE")

    proof = prove([line(1), line(2, time=5.0)], [item()], [late, call("r2", began=5.0)])

    assert proof.findings == []
    assert proof.counts["replies recorded as LATE, not accepted"] == 1


def test_a_reply_to_a_step_that_stopped_is_accounted_for() -> None:
    cut = call("", accepted=False, outcome="CANCELLED")

    proof = prove([line(1), line(2, time=5.0)], [item()], [cut, call("r2", began=5.0)])

    assert proof.findings == []
    assert proof.counts["replies matched to a step that stopped"] == 1


def test_a_good_reply_that_was_turned_away_is_found() -> None:
    turned_away = call("r1", accepted=False, outcome="PARSE_SCHEMA")

    proof = prove([line(1), line(2, time=5.0)], [item()], [turned_away, call("r2", began=5.0)])

    assert kinds(proof) == ["refused"]


def test_an_accepted_call_that_the_log_does_not_know_is_lost() -> None:
    proof = prove([line(1, outcome="503", status=503)], [item()], [call("r9")])

    assert kinds(proof) == ["lost"]


def test_an_item_that_succeeded_without_an_accepted_call_is_lost() -> None:
    proof = prove([], [item()], [])

    assert kinds(proof) == ["lost"]


def test_an_accepted_reply_that_was_spoilt_is_found() -> None:
    proof = prove([line(1, outcome="wrong-token")], [item()], [call("r1")])

    assert kinds(proof) == ["spoilt"]


def test_a_spoilt_reply_that_was_refused_needs_no_match() -> None:
    refused = call("r1", accepted=False, outcome="PARSE_JSON")
    lines = [line(1, outcome="bad-json"), line(2, time=5.0)]

    proof = prove(lines, [item()], [refused, call("r2", began=5.0)])

    assert proof.findings == []


def test_an_item_of_another_database_is_reported() -> None:
    assert kinds(prove([line(1)], [], [])) == ["unknown"]


def test_a_restart_with_the_same_log_repeats_no_response_id(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    for token in (A, B):
        service = Service(Options(log=log, answers="minimal"))
        asyncio.run(answered(service, token))
        service.close()
    lines = read_log(log)

    found = prove(
        lines,
        [item(A, first_page=1, last_page=1), item(B, first_page=1, last_page=1)],
        [call(line.response_id, line.item_token, began=line.time) for line in lines],
    )

    assert [(line.number, line.status) for line in lines] == [(1, 200), (1, 200)]
    assert found.findings == []


async def answered(service: Service, token: str) -> None:
    """Send one call to an emulator, and take its reply."""
    prompt = entities_request(token=token).prompt
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": prompt}]}]})
    answer = await service.handle(
        HttpRequest(
            method="POST",
            path=f"/v1beta/models/{MODEL}:generateContent",
            headers={"x-goog-api-key": "k"},
            body=body.encode(),
        )
    )
    answer.sent(True)  # as the server does when the whole reply has left
