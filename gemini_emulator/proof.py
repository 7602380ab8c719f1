"""The proof, from the log and the recorded rows, that no item was lost, doubled or swapped.

The functions are pure; the caller reads the database. Every item has exactly one accepted call, and
the log has this call under the same item token. Every other success in the log matches a late
reply, an abandoned call, or a killed worker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gemini_emulator.request_log import LogLine

GOOD = frozenset({"ok", "fenced", "prose-around-json", "bad-item", "slow", "late", "trickle"})
"""Outcomes in the log that are usable replies."""
GIVEN_UP = {"API_TIMEOUT": "a timeout", "CANCELLED": "a step that stopped"}
"""Outcomes of calls whose caller no longer waited for the reply."""
SET_ASIDE = frozenset({"LATE", "OK"})
"""Outcomes of good replies that were recorded but not accepted: too late, or part of a split."""
SLACK_S = 1.0
"""Tolerance in seconds: a call's start is computed back from the time when its end was recorded."""


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One row of `provider_calls`."""

    token: str
    """The token of the call's batch or chunk."""
    run: str
    """The call's session and pass. One worker at a time makes the calls of a run."""
    accepted: bool
    outcome: str
    response_id: str
    lease_gen: int
    began: float
    """Unix time."""
    ended: float


@dataclass(frozen=True, kw_only=True)
class RecordedItem:
    """One batch or chunk."""

    token: str
    succeeded: bool
    first_page: int
    last_page: int
    ended_early: bool = False
    """The item's job crashed for good or was cancelled, so the item was not requested again."""


@dataclass(kw_only=True)
class Proof:
    """The counts and the findings, one line per finding."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Return the proof as JSON values."""
        return {"counts": dict(self.counts), "findings": self.findings}


def prove(
    lines: Iterable[LogLine], items: Sequence[RecordedItem], calls: Sequence[RecordedCall]
) -> Proof:
    """Compare a log with the rows of the records in the log."""
    proof = Proof()
    asked = [line for line in lines if line.route == "generateContent" and line.item_token]
    known = {item.token: item for item in items}
    by_token: dict[str, list[RecordedCall]] = defaultdict(list)
    by_run: dict[str, list[RecordedCall]] = defaultdict(list)
    for call in calls:
        by_token[call.token].append(call)
        by_run[call.run].append(call)
    served = {line.response_id: line for line in asked if line.status == 200}
    _judge_log(asked, known, proof)
    for item in items:
        _judge_item(item, by_token[item.token], served, proof)
    accepted = {call.response_id for call in calls if call.accepted}
    rest: dict[str, list[LogLine]] = defaultdict(list)
    for line in asked:
        if _is_good(line) and line.response_id not in accepted and line.item_token in known:
            rest[line.item_token].append(line)
    for token, successes in rest.items():
        _judge_rest(known[token], successes, by_token[token], by_run, served, proof)
    return proof


def _is_good(line: LogLine) -> bool:
    return line.status == 200 and line.outcome in GOOD and line.finish_reason == "STOP"


def _judge_log(asked: Sequence[LogLine], known: Mapping[str, object], proof: Proof) -> None:
    proof.counts["calls in the log"] = len(asked)
    proof.counts["good replies in the log"] = sum(map(_is_good, asked))
    for token in {line.item_token for line in asked} - set(known):
        proof.findings.append(f"unknown: item {token} of the log is not in this database")
    ids = Counter(line.response_id for line in asked if line.status == 200)
    proof.findings += [
        f"doubled: response {i} occurs twice in the log" for i, n in ids.items() if n > 1
    ]


def _judge_item(
    item: RecordedItem,
    calls: Sequence[RecordedCall],
    served: Mapping[str, LogLine],
    proof: Proof,
) -> None:
    proof.counts["items"] += 1
    accepted = [call for call in calls if call.accepted]
    proof.counts["accepted calls"] += len(accepted)
    if len(accepted) > 1:
        proof.findings.append(f"doubled: item {item.token} has {len(accepted)} accepted calls")
    if item.succeeded and not accepted:
        proof.findings.append(f"lost: item {item.token} succeeded without an accepted call")
    if accepted and not item.succeeded:
        proof.findings.append(f"lost: item {item.token} has an accepted call and has not succeeded")
    for call in calls:
        line = served.get(call.response_id)
        if line is None:
            if call.accepted:
                proof.findings.append(
                    f"lost: the accepted call of item {item.token} is not in the log"
                )
            continue
        if line.item_token != item.token:
            proof.findings.append(
                f"swapped: item {item.token} recorded response {call.response_id}, which was"
                f" given to item {line.item_token}"
            )
        elif call.accepted and not _is_good(line):
            proof.findings.append(
                f"spoilt: item {item.token} accepted a reply with the outcome {line.outcome}"
            )
        elif line.pages and not (
            item.first_page <= line.pages[0] and line.pages[-1] <= item.last_page
        ):
            proof.findings.append(
                f"swapped: item {item.token} of pages {item.first_page}-{item.last_page} asked"
                f" for pages {line.pages[0]}-{line.pages[-1]}"
            )


def _judge_rest(
    item: RecordedItem,
    successes: Sequence[LogLine],
    calls: Sequence[RecordedCall],
    by_run: Mapping[str, Sequence[RecordedCall]],
    served: Mapping[str, LogLine],
    proof: Proof,
) -> None:
    """Match each good but unaccepted reply to its fate."""
    recorded = {call.response_id: call for call in calls if call.response_id}
    given_up = [call for call in calls if call.outcome in GIVEN_UP and not call.response_id]
    for line in sorted(successes, key=lambda line: line.time):
        abandoned = next((call for call in given_up if _overlaps(call, line)), None)
        recorded_call = recorded.get(line.response_id)
        if abandoned is not None:
            # The late reply of an abandoned call, if it arrived, is recorded beside the timeout.
            given_up.remove(abandoned)
            proof.counts[f"replies matched to {GIVEN_UP[abandoned.outcome]}"] += 1
        elif recorded_call is not None and recorded_call.outcome in SET_ASIDE:
            proof.counts[f"replies recorded as {recorded_call.outcome}, not accepted"] += 1
        elif recorded_call is not None:
            proof.findings.append(
                f"refused: item {item.token} was given response {line.response_id} (call"
                f" {line.number}), a good reply, and recorded it as {recorded_call.outcome}"
            )
        elif _was_killed(line, item, calls, by_run, served):
            proof.counts["replies matched to a killed worker"] += 1
        else:
            proof.findings.append(
                f"lost: item {item.token} was given response {line.response_id} (call"
                f" {line.number}), which no timeout and no killed worker explains"
            )


def _overlaps(call: RecordedCall, line: LogLine) -> bool:
    left = line.time + line.latency_s
    return call.began - SLACK_S <= left and line.time - SLACK_S <= call.ended


def _was_killed(
    line: LogLine,
    item: RecordedItem,
    calls: Sequence[RecordedCall],
    by_run: Mapping[str, Sequence[RecordedCall]],
    served: Mapping[str, LogLine],
) -> bool:
    """Return whether the worker that made the call was replaced before it could record the call.

    In this case the item was requested again under a later lease than every call of its run that
    began earlier. If the log contains a call, the log's clock orders the two calls: a job can
    resume within a few hundredths of a second.
    """

    def is_later(call: RecordedCall) -> bool:
        known = served.get(call.response_id)
        if known is not None:
            return known.time > line.time
        return call.began > line.time + SLACK_S / 10

    later = [call for call in calls if is_later(call)]
    if not later:
        return item.ended_early
    before = [call.lease_gen for call in by_run[later[0].run] if not is_later(call)]
    return not before or max(call.lease_gen for call in later) > max(before)
