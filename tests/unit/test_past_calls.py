"""The bookings of an emptied Redis: every known call, and what other steps may have in flight."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.execution.recent_calls import RecentStarts
from pipeline.ratelimit import PastCall, PastCalls, Quota, Ticket
from pipeline.ratelimit.past_calls import BOOKING_S, bookings

CALLS = st.builds(PastCall, st.floats(-0.01, 65.0), st.one_of(st.none(), st.integers(0, 50_000)))


def test_calls_of_one_bucket_are_booked_together_and_the_oldest_first() -> None:
    past = PastCalls(known=(PastCall(1.02, 10), PastCall(30.0, 5), PastCall(1.04, 20)))

    booked = bookings(past, Quota(requests=300, tokens=1000), 7)

    assert [(round(age, 2), *spent) for age, *spent in booked] == [(30.0, 1, 5), (1.0, 2, 30)]


def test_a_call_of_unknown_size_counts_as_the_largest_that_is_known_or_asked_for() -> None:
    def tokens(past: PastCalls, asked: int) -> int:
        return sum(spent for _, _, spent in bookings(past, Quota(tokens=10**6), asked))

    assert tokens(PastCalls(known=(PastCall(1, None), PastCall(2, 400))), 300) == 800
    assert tokens(PastCalls(known=(PastCall(1, None), PastCall(2, 200))), 300) == 500
    assert tokens(PastCalls(known=(PastCall(1, 200),), possible=3), 300) == 1_100


@given(
    known=st.lists(CALLS, max_size=40),
    possible=st.integers(0, 500),
    requests=st.one_of(st.none(), st.integers(1, 60)),
    tokens=st.one_of(st.none(), st.integers(1, 10**6)),
    asked=st.integers(0, 30_000),
)
def test_no_known_call_is_lost_and_possible_calls_fill_the_quota_at_most(
    known: list[PastCall], possible: int, requests: int | None, tokens: int | None, asked: int
) -> None:
    booked = bookings(
        PastCalls(known=tuple(known), possible=possible),
        Quota(requests=requests, tokens=tokens),
        asked,
    )

    ages = [age for age, _, _ in booked]
    calls = sum(count for _, count, _ in booked)
    assert ages == sorted(ages, reverse=True)
    # A booking is never older than its call, so it leaves the window after its call.
    for limit_s in range(0, 66, 5):
        younger = sum(max(call.age_s, 0) < limit_s for call in known)
        assert sum(count for age, count, _ in booked if age < limit_s) >= younger
    assert calls == max(len(known), min(len(known) + possible, requests or 10**9))
    spent = sum(each for _, _, each in booked)
    least = sum(call.tokens or 0 for call in known)
    assert spent >= least
    if possible and tokens is not None and possible * asked:
        assert spent >= min(tokens, least + possible * asked)
    assert all(age >= 0 and abs(age / BOOKING_S - round(age / BOOKING_S)) < 1e-6 for age in ages)


def a_ticket(number: int, ago_s: float) -> Ticket:
    return Ticket(
        id=str(number),
        item="",
        generation=0,
        epoch=0,
        bucket="",
        tokens=100,
        estimate=100,
        prompt_version="",
        asked_at=time.monotonic() - ago_s,
    )


def test_a_step_knows_its_calls_of_the_window_by_their_sending_and_their_true_tokens() -> None:
    starts = RecentStarts(60.0)
    old, late, answered = a_ticket(1, 100), a_ticket(2, 30), a_ticket(3, 20)
    for ticket in (old, late, answered):
        starts.add(ticket)

    starts.sent(late)
    starts.correct(answered, 250)
    starts.correct(late, None)

    found: list[object] = [(call.age_s, call.tokens) for call in starts.calls()]
    assert found == [(pytest.approx(0, abs=5), 100), (pytest.approx(20, abs=5), 250)]
