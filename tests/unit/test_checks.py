"""The system checks refuse a mistaken environment, a queue that pickles, and a pool for workers."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from medproc.env import VariableProblem


def _ids() -> list[str | None]:
    return [message.id for message in run_checks(tags=["environment"])]


def test_a_right_environment_has_no_complaint() -> None:
    assert _ids() == []


def test_a_problem_is_an_error_with_its_id_and_hint(settings: Settings) -> None:
    settings.ENVIRONMENT_PROBLEMS = (
        VariableProblem(
            variable="LEASE_S", message="LEASE_S: is odd.", hint="Seconds.", id="medproc.E030"
        ),
    )

    (error,) = run_checks(tags=["environment"])

    assert (error.id, error.hint) == ("medproc.E030", "Seconds.")
    assert error.is_serious()


@pytest.mark.parametrize("serializer", [None, "pickle", "rq.serializers.PickleSerializer"])
def test_a_queue_that_unpickles_is_refused(serializer: str | None, settings: Settings) -> None:
    queue = {**settings.RQ_QUEUES["pass1"], "SERIALIZER": serializer}
    settings.RQ_QUEUES = {**settings.RQ_QUEUES, "pass1": queue}

    (error,) = run_checks(tags=["environment"])

    assert error.id == "medproc.E101"
    assert "pass1" in error.msg


@pytest.mark.parametrize("pool", [True, "true", {}, {"min_size": 4}])
def test_a_pool_in_the_settings_is_refused(
    pool: object, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"]["OPTIONS"], "pool", pool)

    (error,) = run_checks(tags=["environment"])

    assert error.id == "medproc.E102"
    assert error.msg == 'The database default sets OPTIONS["pool"], which workers must not have.'
