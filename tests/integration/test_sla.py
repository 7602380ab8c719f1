"""The check of the service level names late records and the expected end of the backlog."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.utils import timezone

from pipeline.core.errors import ErrorCode
from pipeline.core.states import Step
from pipeline.models import Job
from pipeline.models.sla import PRIORITIES
from pipeline.operations.scheduler import periodic_tasks
from pipeline.transitions import Failure, claim, fail_step, fenced
from pipeline.transitions.rollup import Leaving, settle
from tests.support.rows import a_job

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("metrics")]


def test_the_check_is_silent_until_a_record_is_late(redis_db: redis.Redis, settings: Any) -> None:
    settings.TIME_SCALE = 1.0
    settings.MEDPROC_PROVIDER, settings.GEMINI_API_KEY = "gemini", "none"
    (task,) = [task for task in periodic_tasks() if task.name == "check_sla"]
    assert task.interval_s == 300
    job = a_job(priority=1)
    assert task.run() == ""

    Job.objects.filter(id=job.id).update(created_at=timezone.now() - timedelta(minutes=16))

    said = task.run()
    assert said.startswith("1 record late (1 urgent); expected end of the backlog: 20")
    assert "at the present quota" in said
    assert str(job.id) not in said


def test_the_command_shows_targets_late_records_and_compliance(
    redis_db: redis.Redis, settings: Any
) -> None:
    settings.TIME_SCALE = 1.0
    a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    with fenced(lease):
        fail_step(lease, Failure(code=ErrorCode.API_4XX, message="a test"))
        settle([Leaving.by(lease, "pass1: API_4XX", has_ended=True)])
    output, lines = io.StringIO(), io.StringIO()

    call_command("check_sla", json=True, stdout=output)
    call_command("check_sla", stdout=lines)

    levels = {each["priority"]: each for each in json.loads(output.getvalue())["levels"]}
    assert [levels[name]["target_s"] for name in PRIORITIES] == [900, 14_400, 86_400]
    normal = levels["normal"]
    assert (normal["late"], normal["met"], normal["missed"], normal["compliance"]) == (0, 0, 1, 0)
    assert levels["low"]["compliance"] is None
    assert "no record late; expected end of the backlog: 20" in lines.getvalue()
