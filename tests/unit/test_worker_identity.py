"""A worker's name is unique for each start, and stable within a start."""

from __future__ import annotations

import os
import re

from django.conf import settings

from pipeline.workers.identity import renew_identity, worker_identity


def test_a_process_keeps_its_name() -> None:
    assert worker_identity() == worker_identity()


def test_each_start_has_a_name_of_its_own_that_an_operator_can_read() -> None:
    names = {renew_identity() for _ in range(3)}

    pattern = rf"{re.escape(settings.WORKER_ID)}-{os.getpid()}-[0-9a-f]{{8}}"
    assert len(names) == 3
    assert all(re.fullmatch(pattern, name) for name in names)
    assert worker_identity() in names


def test_a_name_can_stand_in_a_redis_key() -> None:
    assert ":" not in worker_identity()
