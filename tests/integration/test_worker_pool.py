"""The worker pool restarts, drains and kills its workers of both kinds."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psutil
import pytest
import redis
from django.core.management import CommandError, call_command, get_commands
from rq.utils import as_text

from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry, entry_id, queue_depths
from pipeline.workers.pool import BACKOFF_CAP_S, STEADY_S, Seat
from tests.support.workers import WorkerCommand, is_alive, until

StartWorker = Callable[..., WorkerCommand]


@pytest.fixture(autouse=True)
def _steps_are_fixtures(redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")


def wake(step: str) -> str:
    entry = entry_id(uuid4(), step, 1)
    queues.push(step, entry)
    return entry


def registered(client: Any, queue: str) -> dict[str, int]:
    """Return the pids of the workers that listen to a queue, by name."""
    keys = client.smembers(f"rq:workers:{queue}")
    pids = {as_text(key): client.hget(key, "pid") for key in keys}
    return {name: int(pid) for name, pid in pids.items() if pid}


def test_both_commands_are_the_projects_own() -> None:
    commands = get_commands()

    assert commands["rqworker"] == "pipeline"
    assert commands["rqworker-pool"] == "pipeline"


def test_by_default_a_pool_has_workers_of_both_kinds(
    start_worker: StartWorker, redis_db: redis.Redis, settings: Any
) -> None:
    pool = start_worker("nothing", "rqworker-pool")

    until(lambda: len(registered(redis_db, "pass1")) == settings.WORKER_CONCURRENCY)
    until(lambda: len(registered(redis_db, "pages")) == settings.PAGES_CONCURRENCY)

    pids = [*registered(redis_db, "pages").values(), *registered(redis_db, "pass1").values()]
    behind = min(19, os.nice(0) + settings.WORKER_NICE)
    assert {psutil.Process(pid).nice() for pid in pids} == {behind} != {os.nice(0)}
    assert not registered(redis_db, "pages").keys() & registered(redis_db, "pass1").keys()
    assert pool.stop() == 0
    assert redis_db.scard("rq:workers") == 0


def test_one_kind_can_be_run_alone(start_worker: StartWorker, redis_db: redis.Redis) -> None:
    pool = start_worker("nothing", "rqworker-pool", "--queues", "pages", "--workers", "2")

    until(lambda: len(registered(redis_db, "pages")) == 2)

    assert redis_db.scard("rq:workers") == 2
    assert pool.stop() == 0


def test_a_pool_warms_the_engine_once_for_all_its_workers_of_provider_calls(
    start_worker: StartWorker,
) -> None:
    for step in ("pages", "pass1", "pass2"):
        wake(step)

    pool = start_worker("report_warmth", "rqworker-pool", "--burst")
    pool.finish()

    steps = {report["pid"]: report["step"] for report in pool.seen("began")}
    warmth = {steps[report["pid"]]: report["compiled"] for report in pool.seen("warmth")}
    assert warmth == {"pages": 0, "pass1": 1, "pass2": 1}
    assert pool.printed().count("the engine is warm") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "2"], "--workers needs --queues"),
        (["--queues", "pages", "--workers", "0"], "at least 1"),
        (["--queues", "pass9"], "there is no queue 'pass9'"),
    ],
)
def test_wrong_options_are_reported_in_one_line(arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("rqworker-pool", *arguments)


def test_a_killed_worker_is_replaced_under_a_new_identity(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    pool = start_worker("nothing", "rqworker-pool", "--queues", "pass1", "--workers", "1")
    ((name, pid),) = until(lambda: registered(redis_db, "pass1")).items()

    os.kill(pid, signal.SIGKILL)

    until(lambda: registered(redis_db, "pass1").keys() - {name})
    wake("pass1")
    (began,) = pool.wait_for("began")
    assert not name.endswith(began["identity"])
    assert pool.stop() == 0


def test_a_worker_killed_in_mid_step_is_replaced_though_its_horse_runs_on(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    wake("pass1")
    pool = start_worker("ignore_stop", "rqworker-pool", "--queues", "pass1", "--workers", "1")
    (began,) = pool.wait_for("began")

    os.kill(next(iter(registered(redis_db, "pass1").values())), signal.SIGKILL)
    wake("pass1")
    second = pool.wait_for("began", 2)[1]

    assert is_alive(began["pid"])
    assert began["identity"] != second["identity"]


def test_the_first_signal_drains_every_worker(start_worker: StartWorker) -> None:
    wake("pass1")
    wake("pass1")
    pool = start_worker("drain", "rqworker-pool", "--queues", "pass1", "--workers", "2")
    pool.wait_for("began", 2)

    exit_code = pool.stop(signal.SIGINT)

    assert exit_code == 0
    assert len(pool.seen("drained")) == 2


def test_one_stop_that_reaches_pool_and_worker_drains_all_the_same(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    wake("pass1")
    pool = start_worker("drain", "rqworker-pool", "--queues", "pass1", "--workers", "1")
    pool.wait_for("began")
    (worker,) = registered(redis_db, "pass1").values()

    os.kill(worker, signal.SIGTERM)
    exit_code = pool.stop(signal.SIGTERM)

    assert exit_code == 0
    assert len(pool.seen("drained")) == 1


def test_the_second_signal_kills_every_horse(start_worker: StartWorker) -> None:
    wake("pass1")
    wake("pass1")
    pool = start_worker("ignore_stop", "rqworker-pool", "--queues", "pass1", "--workers", "2")
    horses = [report["pid"] for report in pool.wait_for("began", 2)]

    def ended_or_told_again() -> bool:
        if any(is_alive(horse) for horse in horses):
            pool.send(signal.SIGTERM)
        return not any(is_alive(horse) for horse in horses)

    until(ended_or_told_again)

    assert pool.finish() == 1


def test_a_storm_of_restarts_loses_no_entry_and_doubles_none(start_worker: StartWorker) -> None:
    steps = ("pass05", "pass1", "pages")
    entries = [wake(steps[number % 3]) for number in range(60)]
    began: list[str] = []

    def waiting() -> bool:
        return any(queue_depths(steps).values())

    def entries_of_a_short_life() -> list[str]:
        pool = start_worker("nothing", "rqworker-pool", "--queues", *steps, "--workers", "2")
        until(lambda: len(pool.seen("began")) >= 8 or not waiting())
        assert pool.stop() == 0
        return [report["entry"] for report in pool.seen("began")]

    while waiting():
        began += entries_of_a_short_life()

    assert sorted(began) == sorted(entries)


def test_workers_leave_when_their_pool_is_killed(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    pool = start_worker("nothing", "rqworker-pool", "--queues", "pass1", "--workers", "2")
    until(lambda: len(registered(redis_db, "pass1")) == 2)

    pool.send(signal.SIGKILL)

    until(lambda: redis_db.scard("rq:workers") == 0)


def test_a_burst_ends_when_no_entry_is_left_even_after_a_steps_wake_up(
    start_worker: StartWorker,
) -> None:
    wake("pages")

    pool = start_worker("wake_next", "rqworker-pool", "--burst")
    exit_code = pool.finish()

    assert exit_code == 0
    steps = [report["step"] for report in pool.seen("began")]
    assert steps == ["pages", "pass05", "pass1", "pass1_5", "pass2", "pass3"]


def test_a_worker_that_dies_again_and_again_is_started_ever_later() -> None:
    seat = Seat(queues=("pass1",))

    delays = [seat.next_delay_s(lived_s=0.0) for _ in range(12)]

    assert delays == sorted(delays)
    assert delays[0] < 1
    assert delays[-1] == BACKOFF_CAP_S


def test_a_worker_that_lived_is_replaced_at_once() -> None:
    seat = Seat(queues=("pass1",), deaths=9)

    assert seat.next_delay_s(lived_s=STEADY_S) < 1
