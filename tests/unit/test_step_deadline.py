"""One object moves the deadline of a step, and shared memory shows the deadline outside."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import pytest

from pipeline.core.deadline import StepDeadline
from pipeline.workers.shared_step import SharedStep


def test_nothing_begins_in_the_last_tenth_of_a_step() -> None:
    deadline = StepDeadline(300, now=1000)

    assert (deadline.soft_ends_at, deadline.ends_at) == (1270, 1300)


def test_a_restart_counts_from_now() -> None:
    deadline = StepDeadline(300, now=1000)

    deadline.restart(100, now=1050)

    assert (deadline.soft_ends_at, deadline.ends_at) == (1140, 1150)


def test_waits_that_overlap_are_left_out_once() -> None:
    deadline = StepDeadline(100, now=0)

    deadline.leave_out(10, now=20)
    deadline.leave_out(10, now=25)
    deadline.leave_out(1, now=26)

    assert (deadline.soft_ends_at, deadline.ends_at) == (105, 115)


def test_a_deadline_that_has_passed_says_so() -> None:
    passed = StepDeadline(10, now=time.monotonic() - 9.5)

    assert (passed.is_soft_passed, passed.is_passed) == (True, False)
    assert 0 < passed.left_s <= 0.5


def test_each_new_end_is_published_and_none_when_the_step_is_over() -> None:
    ends: list[float | None] = []
    deadline = StepDeadline(10, now=0, publish=ends.append)

    deadline.extend(5)
    deadline.close()

    assert ends == [10, 15, None]


def test_a_worker_sees_that_a_wait_of_its_horse_is_left_out() -> None:
    shared = SharedStep()
    deadline = StepDeadline(60, publish=shared.publish)

    deadline.leave_out(30, now=time.monotonic())

    assert shared.left_s is not None
    assert 89 < shared.left_s <= 90


def test_the_shared_memory_shows_the_end_of_the_running_step_alone() -> None:
    shared = SharedStep()
    before = shared.left_s
    deadline = StepDeadline(60, publish=shared.publish)
    running = shared.left_s

    deadline.close()

    assert running is not None
    assert 59 < running <= 60
    assert (before, shared.left_s) == (None, None)


def test_a_wait_of_the_time_before_a_restart_is_left_out_again() -> None:
    deadline = StepDeadline(600, now=0)
    deadline.leave_out(900, now=0)

    deadline.restart(600, now=20)
    deadline.leave_out(880, now=20)

    assert deadline.ends_at == 1500


def test_a_horse_must_give_a_sign_of_life_within_its_lease(settings: Any) -> None:
    settings.LEASE_S, settings.TIME_SCALE = 60.0, 1.0
    shared, job = SharedStep(), uuid4()
    before = shared.sign_left_s
    now = time.monotonic()

    shared.clear_lease()
    leaseless, no_lease = shared.sign_left_s, shared.lease
    shared.claimed(job, 7, now - 50)
    claimed = shared.sign_left_s
    StepDeadline(10, sign=shared.sign).sign_of_life(now)

    assert (before, no_lease) == (None, None)
    assert leaseless == pytest.approx(60, abs=1)
    assert claimed == pytest.approx(60 * 0.9 - 50, abs=1)
    assert shared.sign_left_s == pytest.approx(60 * 0.9, abs=1)
    assert shared.lease == (job, 7)
