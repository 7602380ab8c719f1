"""Each command of RQ works on medproc's queues, or says in one line which command to use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import redis
from django.core.management import CommandError, call_command, get_commands

from medproc.env import PROJECT_ROOT
from observability.models import AuditEvent
from pipeline.operations.health import examine
from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry, queue_depths
from tests.support.workers import WorkerCommand, until

REFUSED = {
    "rqenqueue": "workers run no function by name; submit a record with `manage.py process FILE`",
    "rqscheduler": "there is no rq-scheduler; the scheduler is `manage.py rqcron`",
}


def test_every_command_of_rq_is_ours_or_was_tried_here() -> None:
    of_rq = {name: app for name, app in get_commands().items() if name.startswith("rq")}

    assert {name for name, app in of_rq.items() if app == "django_rq"} == {"rqstats"}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_command_that_does_not_fit_names_the_right_one(name: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command(name, "os.getpid")

    assert str(refused.value) == REFUSED[name]


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_the_statistics_show_each_queue(redis_db: redis.Redis, arguments: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "rqstats", *arguments],
        cwd=PROJECT_ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "medproc.settings"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(queue in ended.stdout for queue in queues.QUEUES)


@pytest.mark.usefixtures("cloned_db")
def test_suspended_workers_begin_no_step_until_they_are_resumed(
    start_worker: Callable[..., WorkerCommand],
    redis_db: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")
    call_command("rqsuspend")
    queues.push("pass1", "an-entry")
    worker = start_worker("nothing", "rqworker", "pass1")
    until(
        lambda: (
            b"suspended" in {redis_db.hget(key, "state") for key in redis_db.keys("rq:worker:*")}
        )
    )
    problems = examine().problems
    waiting = queue_depths(["pass1"])

    call_command("rqresume")
    worker.wait_for("began")
    call_command("rqresume")

    assert waiting == {"pass1": 1}
    assert queues.SUSPENSION in problems
    assert queues.SUSPENSION not in examine().problems
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "No worker begins a step, until rqresume. Running steps continue.",
        "Resumed.",
        "The workers were not suspended.",
    ]
    actions = AuditEvent.objects.filter(target_kind="workers").order_by("created_at")
    assert [(each.action, each.facts["message"]) for each in actions] == [
        ("suspend", "suspended until rqresume"),
        ("resume", "resumed"),
        ("resume", "was not suspended"),
    ]


@pytest.mark.usefixtures("cloned_db")
def test_a_suspension_can_end_by_itself_and_a_wrong_duration_is_one_line(
    redis_db: redis.Redis,
) -> None:
    call_command("rqsuspend", "--duration", "600")

    assert 590 < int(redis_db.ttl("rq:suspended")) <= 600
    for wrong in ("0", "-1", "soon", "1e9"):
        with pytest.raises(CommandError, match="a whole number of seconds, 1 to 31536000"):
            call_command("rqsuspend", f"--duration={wrong}")
