"""The database fixtures give each test the database that it needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection


@pytest.mark.django_db
@pytest.mark.parametrize("_again", range(2))
def test_a_marked_test_rolls_back(_again: int) -> None:
    Group.objects.create(name="operators")

    assert Group.objects.filter(name="operators").count() == 1


def test_a_clone_commits_and_child_processes_see_it(cloned_db: str) -> None:
    Group.objects.create(name="operators")

    script = (
        "import django; django.setup();"
        "from django.contrib.auth.models import Group;"
        "print(Group.objects.get(name='operators').name)"
    )
    seen = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout

    assert seen.strip() == "operators"


def test_each_clone_is_fresh_and_another(cloned_db: str) -> None:
    assert not Group.objects.filter(name="operators").exists()
    assert cloned_db == os.environ["DATABASE_URL"] == settings.DATABASE_URL
    assert connection.settings_dict["NAME"] in cloned_db


def test_redis_starts_empty_and_is_the_one_of_the_queues(redis_db: redis.Redis) -> None:
    from django_rq import get_connection

    assert redis_db.dbsize() == 0

    get_connection("pass1").set("seen", "yes")

    assert redis_db.get("seen") == b"yes"
