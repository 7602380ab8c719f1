"""A real worker refuses foreign entries, drains, and cleans up in a real Redis."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from rq.serializers import DefaultSerializer
from rq.utils import as_text

from medproc.env import PROJECT_ROOT
from pipeline.core.server_faults import ServerFault
from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry, StepQueue, entry_id, queue_depths
from pipeline.workers import memory
from pipeline.workers.rq_worker import Worker
from tests.support import jobs
from tests.support.redis_contents import everything
from tests.support.refusing_servers import refusing
from tests.support.workers import WorkerCommand, is_alive, until

StartWorker = Callable[..., WorkerCommand]
CALL = b'["tests.support.jobs.run_step", null, ["pass1"], {}]'


@pytest.fixture(autouse=True)
def _steps_are_fixtures(redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")


def wake(step: str, number: int = 1) -> str:
    """Add a wake-up to Redis, as `enqueue_step` does after a commit."""
    entry = entry_id(uuid4(), step, number)
    queues.push(step, entry)
    return entry


def craft(client: Any, entry: str, step: str, **fields: str | bytes) -> None:
    """Write an entry by hand, as an intruder with access to Redis could."""
    client.hset(f"rq:job:{entry}", mapping={"origin": step, "status": "queued", **fields})
    client.rpush(f"rq:queue:{step}", entry)


class Exploit:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("queue", ["pass1", "pages"])
def test_a_pickled_entry_is_refused_dropped_and_never_executed(
    queue: str, start_worker: StartWorker, tmp_path: Path, redis_db: redis.Redis
) -> None:
    payload = pickle.dumps(("os.getpid", None, (Exploit(tmp_path / "executed"),), {}))
    craft(redis_db, "pickled", queue, data=zlib.compress(payload), meta=payload, result=payload)

    worker = start_worker("nothing", "rqworker", queue, "--burst")
    exit_code = worker.finish()

    assert exit_code == 0
    assert "pickled refused" in worker.printed()
    assert not (tmp_path / "executed").exists()
    assert redis_db.keys("rq:job:*") == []
    assert redis_db.keys("rq:queue:*") == []


def test_a_json_entry_that_names_another_function_is_refused(
    start_worker: StartWorker, tmp_path: Path, redis_db: redis.Redis
) -> None:
    craft(redis_db, "crafted", "pass1", data=f'["os.mkdir", null, ["{tmp_path}/executed"], {{}}]')

    worker = start_worker("nothing", "rqworker", "pass1", "--burst")
    worker.finish()

    assert "crafted refused" in worker.printed()
    assert not (tmp_path / "executed").exists()


def test_a_worker_for_another_serializer_cannot_be_made(redis_db: redis.Redis) -> None:
    queue = StepQueue("pass1", connection=redis_db)

    for serializer in (DefaultSerializer, "pickle", pickle):
        with pytest.raises(ImproperlyConfigured, match="JSON"):
            Worker([queue], connection=redis_db, serializer=serializer)


def test_an_unknown_queue_is_reported_in_one_line() -> None:
    with pytest.raises(CommandError, match="there is no queue 'pass9'; the queues are pages, "):
        call_command("rqworker", "pass9")


def test_a_missing_redis_at_the_start_is_reported_in_one_line() -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "rqworker", "pass1"],
        cwd=PROJECT_ROOT,
        env={**os.environ, "REDIS_URL": "unix:///nonexistent/valkey.sock"},
        capture_output=True,
        text=True,
        check=False,
    )

    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert line.startswith("CommandError: Redis cannot be reached at ")


def test_later_passes_are_taken_first(start_worker: StartWorker) -> None:
    for step in ("pass05", "pass1", "pass1", "pass1_5", "pass2", "pass3"):
        wake(step)

    worker = start_worker("nothing", "rqworker", "--burst")
    worker.finish()

    began = [report["step"] for report in worker.seen("began")]
    assert began == ["pass3", "pass2", "pass1_5", "pass1", "pass1", "pass05"]


def test_each_step_runs_in_a_process_of_its_own_under_the_workers_identity(
    start_worker: StartWorker,
) -> None:
    wake("pass1")
    wake("pass1")

    worker = start_worker("nothing", "rqworker", "pass1", "--burst")
    worker.finish()

    first, second = worker.seen("began")
    assert len({first["pid"], second["pid"], worker.pid}) == 3
    assert first["identity"] == second["identity"]
    assert f"-{worker.pid}-" in first["identity"]


def test_later_steps_with_provider_calls_inherit_the_compiled_engine(
    start_worker: StartWorker,
) -> None:
    for number, step in enumerate(("pass3", "pass2", "pass1_5", "pass1", "pass05")):
        wake(step, number)

    worker = start_worker("report_warmth", "rqworker", "--burst")
    worker.finish()

    assert [report["step"] for report in worker.seen("began")][:2] == ["pass3", "pass2"]
    assert [report["compiled"] for report in worker.seen("warmth")] == [0, 1, 1, 1, 1]
    assert worker.printed().count("the engine is warm") == 1


def test_one_step_with_provider_calls_warms_no_engine(start_worker: StartWorker) -> None:
    for step in ("pass1_5", "pass1"):
        wake(step)

    worker = start_worker("report_warmth", "rqworker", "--burst")
    worker.finish()

    assert [report["compiled"] for report in worker.seen("warmth")] == [0, 0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_first_signal_drains_the_running_step_and_no_other_is_taken(
    number: signal.Signals, start_worker: StartWorker
) -> None:
    wake("pass1")
    wake("pass1")
    worker = start_worker("drain", "rqworker", "pass1")
    worker.wait_for("began")

    exit_code = worker.stop(number)

    (drained,) = worker.seen("drained")
    assert exit_code == 0
    assert drained["stop_requested"]
    assert 0 < drained["grace_left"] <= 600
    assert queue_depths(["pass1"]) == {"pass1": 1}


def test_an_idle_worker_leaves_at_sigterm_and_unregisters(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    worker = start_worker("nothing", "rqworker", "pass1")
    until(lambda: redis_db.scard("rq:workers"))

    exit_code = worker.stop()

    assert exit_code == 0
    assert redis_db.scard("rq:workers") == 0


def test_a_second_sigterm_kills_the_horse(start_worker: StartWorker) -> None:
    wake("pass1")
    worker = start_worker("ignore_stop", "rqworker", "pass1")
    horse = worker.wait_for("began")[0]["pid"]

    def ended_or_told_again() -> bool:
        if is_alive(horse):
            worker.send(signal.SIGTERM)
        return not is_alive(horse)

    until(ended_or_told_again)

    assert worker.finish() == 1


def test_a_horse_that_outlives_its_grace_is_killed(start_worker: StartWorker) -> None:
    wake("pass1")
    worker = start_worker("ignore_stop", "rqworker", "pass1", grace_s=0)
    horse = worker.wait_for("began")[0]["pid"]

    exit_code = worker.stop()

    assert exit_code == 1
    assert not is_alive(horse)


def test_a_horse_leaves_though_one_of_its_threads_hangs(start_worker: StartWorker) -> None:
    wake("pass1")

    worker = start_worker("leave_a_thread", "rqworker", "pass1", "--burst")
    exit_code = worker.finish()

    assert exit_code == 0
    assert len(worker.seen("returned")) == 1


def test_a_horse_that_dies_is_noticed_and_the_worker_takes_the_next_entry(
    start_worker: StartWorker,
) -> None:
    wake("pass1")
    wake("pass1")
    worker = start_worker("drain", "rqworker", "pass1")
    horse = worker.wait_for("began")[0]["pid"]

    os.kill(horse, signal.SIGKILL)

    worker.wait_for("began", 2)
    assert worker.stop() == 0
    assert len(worker.seen("drained")) == 1


def test_no_alarm_is_armed_while_a_step_runs_whatever_the_entry_says(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    craft(redis_db, "short", "pass1", data=CALL, timeout="1")

    worker = start_worker("report_alarms", "rqworker", "pass1", "--burst")
    worker.finish()

    assert [report["left"] for report in worker.seen("alarm")] == [0.0]


def test_a_horse_shares_no_connection_with_its_worker(
    start_worker: StartWorker, cloned_db: str
) -> None:
    wake("pass1")
    wake("pass1")

    worker = start_worker("report_connections", "rqworker", "pass1", "--burst", parent_queries=True)
    worker.finish()

    backends = [report["backend"] for report in worker.seen("parent") + worker.seen("database")]
    assert len(set(backends)) == 3
    # A worker names its Redis connection; a horse that shared the connection would read the name.
    assert [report["name"] for report in worker.seen("redis")] == [None, None]


def test_a_failed_step_leaves_no_value_in_redis_and_none_in_the_log(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    entry = wake("pass1")

    worker = start_worker("fail", "rqworker", "pass1", "--burst")
    worker.finish()

    kept, printed = everything(redis_db), worker.printed()
    for text in (kept, printed):
        assert entry in text
        assert "PipelineError [DB_ERROR] from JSONDecodeError at tests.support.jobs.fail" in text
        assert not [word for word in jobs.PATIENT.split() if word in text]
    assert 0 < int(redis_db.ttl(f"rq:job:{entry}")) <= queues.FAILURE_TTL_S


def test_after_a_step_nothing_of_its_entry_is_left(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    wake("pass1")
    wake("pages")

    worker = start_worker("nothing", "rqworker", "pass1", "pages", "--burst")
    worker.finish()

    assert {as_text(key).split(":")[1] for key in redis_db.keys("*")} == {"queues", "worker"}


def test_redis_holds_only_ids_times_and_memory_while_a_step_runs(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    entry = wake("pages")
    worker = start_worker("drain", "rqworker", "pages")
    (began,) = worker.wait_for("began")

    held = everything(redis_db)

    for known in (entry, began["identity"], "tests.support.jobs.run_step", "pages"):
        held = held.replace(known, "")
    # Without hexadecimal ids, only RQ's own words of four or more letters remain.
    words = set(re.findall(r"[A-Za-z_]{4,}", re.sub(r"\b[0-9a-f]{32}\b", "", held)))
    assert words <= RQ_WORDS


RQ_WORDS = frozenset(
    [
        *("queue", "queues", "worker", "workers", "execution", "executions", "intermediate"),
        *("birth", "last_heartbeat", "version", "state", "busy", "status", "started", "null"),
        *("created_at", "enqueued_at", "started_at", "ended_at", "data", "description", "origin"),
        *("timeout", "result_ttl", "failure_ttl", "worker_name", "group_id", "job_id"),
        *memory.FIELDS,
        *("success_callback_name", "failure_callback_name", "stopped_callback_name"),
    ]
)


def test_a_worker_outlives_an_emptied_redis_and_registers_again(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    worker = start_worker("nothing", "rqworker", "pass1")
    until(lambda: redis_db.scard("rq:workers"))

    redis_db.flushdb()

    until(lambda: redis_db.scard("rq:workers"))
    wake("pass1")
    worker.wait_for("began")
    assert worker.stop() == 0


def test_a_worker_survives_the_loss_of_its_connections_in_mid_step(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    wake("pass1")
    worker = start_worker("drain", "rqworker", "pass1")
    worker.wait_for("began")

    redis_db.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    assert worker.stop() == 0
    assert len(worker.seen("drained")) == 1


def test_a_worker_that_stops_leaves_although_redis_refuses_its_last_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wake("pass1")
    worker = Worker.on(("pass1",))
    worker.register_birth()
    monkeypatch.setattr(worker, "_should_leave", iter([False, True]).__next__)
    take = StepQueue.dequeue_any

    with ExitStack() as until_the_end:

        def taken(*arguments: Any, **named: Any) -> Any:
            found = take(*arguments, **named)
            until_the_end.enter_context(refusing(ServerFault.REDIS_READ_ONLY))
            return found

        monkeypatch.setattr(StepQueue, "dequeue_any", taken)
        assert worker.dequeue_job_and_maintain_ttl(None) is None
