"""The scenes: the server that is taken away, the way, and the time, while records are processed.

Records are submitted before and during each outage. Each record must complete, or fail with its
reason.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import redis
from django.conf import settings

from medproc import embedded
from medproc.embedded import postgres, valkey
from tests.chaos.crowd import crowd
from tests.chaos.environment import PATIENT_LEASE_S, SHORT, ChaosEnvironment
from tests.chaos.kills import kill_loop
from tests.chaos.lossy_proxy import LossyProxy
from tests.chaos.proof import ChaosObservations
from tests.support.workers import WorkerFixture, lasting, until

Scene = Callable[[ChaosEnvironment], dict[str, Any]]
Trouble = Callable[[ChaosEnvironment], AbstractContextManager[None]]

AWAY_S = 5.0
FULL_S = 2.0
OPEN = 4
"""Records under way at any moment."""
BETWEEN_RESTARTS_S = 2.0
PUBLISHES, ENDS_A_STEP = b'"char_start"', b'"completed_steps" + 1'
"""SQL that only the transaction contains that publishes an encounter, or that ends a step."""


def scenes(*, kills: int, seconds: float, records: int, seed: int) -> Mapping[str, Scene]:
    """Return every scene by its name."""
    restarted = partial(_restarted, seconds=seconds)
    return {
        "kills": lambda chaos: kill_loop(chaos, kills, seed),
        "crowd": lambda chaos: crowd(chaos, records, seed),
        "redis-stopped": lambda chaos: _through(chaos, _stopped),
        "redis-paused": lambda chaos: _through(chaos, _paused),
        "redis-emptied": lambda chaos: _through(chaos, _emptied),
        "redis-full": lambda chaos: _through(chaos, _redis_full),
        "postgres-restarts": lambda chaos: _through(chaos, restarted),
        "disk-full": lambda chaos: _through(chaos, _disk_full, file_bytes=0),
        "lost-replies": _lost_replies,
        SHORT: lambda chaos: _through(chaos, _stopped, _paused, _emptied, restarted, _disk_full),
    }


def _through(
    chaos: ChaosEnvironment, *troubles: Trouble, file_bytes: int | None = None
) -> dict[str, Any]:
    """Play each outage in the middle of a job; records submitted meanwhile run after it at latest.

    `file_bytes` limits the files that the workers write; 0 means that their disk is full too.
    """
    observations = ChaosObservations(chaos)
    with chaos.workers(LEASE_S=PATIENT_LEASE_S, file_bytes=file_bytes):
        for trouble in troubles:
            chaos.keep_coming(OPEN - 1)
            chaos.in_the_middle()
            with trouble(chaos):
                chaos.submit()
                observations.look()
        return observations.close(may_fail=True)


@contextmanager
def _stopped(chaos: ChaosEnvironment) -> Iterator[None]:
    valkey.shut_down(chaos.places)
    yield
    lasting(AWAY_S)
    embedded.up(chaos.places, with_postgres=False)


@contextmanager
def _paused(chaos: ChaosEnvironment) -> Iterator[None]:
    pid = valkey.running_pid(chaos.places)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    yield
    lasting(AWAY_S)
    os.kill(pid, signal.SIGCONT)


@contextmanager
def _emptied(chaos: ChaosEnvironment) -> Iterator[None]:
    pid = valkey.running_pid(chaos.places)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: valkey.running_pid(chaos.places) is None)
    shutil.rmtree(chaos.places.valkey_data)
    yield
    embedded.up(chaos.places, with_postgres=False)


@contextmanager
def _redis_full(chaos: ChaosEnvironment) -> Iterator[None]:
    with redis.Redis.from_url(str(settings.REDIS_URL)) as client:
        client.config_set("maxmemory", 1)
        yield
        lasting(FULL_S)
        client.config_set("maxmemory", 0)


@contextmanager
def _restarted(chaos: ChaosEnvironment, seconds: float) -> Iterator[None]:
    """Restart PostgreSQL every few seconds, in turn by a shutdown and by a kill."""
    ends = time.monotonic() + seconds
    by_force = False
    while time.monotonic() < ends:
        chaos.keep_coming(OPEN)
        lasting(BETWEEN_RESTARTS_S)
        pid = postgres.running_pid(chaos.places)
        if by_force and pid is not None:
            os.kill(pid, signal.SIGQUIT)
            until(lambda: postgres.running_pid(chaos.places) is None)
        else:
            postgres.shut_down(chaos.places)
        embedded.up(chaos.places, with_valkey=False)
        by_force = not by_force
    yield


@contextmanager
def _disk_full(chaos: ChaosEnvironment) -> Iterator[None]:
    """Let PostgreSQL refuse every INSERT as it does when its disk is full."""
    refuse = """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          RAISE EXCEPTION 'could not extend file: No space left on device'
            USING ERRCODE = 'disk_full';
        END $$;
    """
    tables = (
        "shell_file_pages",
        "provider_calls",
        "kept_replies",
        "pass1_entity_detections",
        "pass1_5_code_candidates",
        "pass2_zone_results",
        "pass2_enriched_entities",
        "record_list_items",
        "pass3_narrative_results",
        "pass3_narrative_sentences",
        "review_items",
        "extraction_flights",
    )
    with (
        psycopg.connect(chaos.places.owner_url, autocommit=True) as owner,
        owner.cursor() as cursor,
    ):
        cursor.execute(refuse)
        for table in tables:
            cursor.execute(
                f"CREATE TRIGGER full_disk BEFORE INSERT ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION refuse()"
            )
        yield
        lasting(FULL_S)
        for table in tables:
            cursor.execute(f"DROP TRIGGER full_disk ON {table}")
        cursor.execute("DROP FUNCTION refuse()")


def _lost_replies(chaos: ChaosEnvironment) -> dict[str, Any]:
    """Lose the replies to commits that publish or end a step; the server has committed."""
    observations = ChaosObservations(chaos)
    losing = {PUBLISHES: 4, ENDS_A_STEP: 3}
    with (
        tempfile.TemporaryDirectory(dir=chaos.places.base, prefix="proxy-") as folder,
        LossyProxy(chaos.places.sockets, Path(folder), losing) as proxy,
        _worker_fixture_at(f"postgresql://medproc_app@/medproc?host={folder}") as worker_fixture,
        chaos.workers(worker_fixture=worker_fixture, LEASE_S=PATIENT_LEASE_S),
    ):
        chaos.keep_coming(OPEN)
        figures = observations.close()
    if proxy.lost != losing:
        figures["findings"].append(f"only {dict(proxy.lost)} replies were lost")
    return {"replies lost": proxy.lost.total(), **figures}


@contextmanager
def _worker_fixture_at(database_url: str) -> Iterator[WorkerFixture]:
    from pipeline.queueing.queues import RUN_STEP

    before = os.environ["DATABASE_URL"]
    os.environ["DATABASE_URL"] = database_url
    try:
        worker_fixture = WorkerFixture(RUN_STEP)
    finally:
        os.environ["DATABASE_URL"] = before
    yield worker_fixture
    worker_fixture.close()
