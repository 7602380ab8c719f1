"""The scenes: which server is taken away, how, and for how long, while records are under way.

Imports `house`, `proof` and `kills`. In each, records are handed in before and while it lasts, and
each of them must complete, or fail and say why.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import connection

from medproc import embedded
from medproc.embedded import postgres, valkey
from tests.chaos.house import PATIENT_LEASE_S, House
from tests.chaos.kills import kill_loop
from tests.chaos.lossy import LossyProxy
from tests.chaos.proof import Ledger
from tests.workers import Nursery, until

Scene = Callable[[House], dict[str, Any]]

AWAY_S = 5.0
BETWEEN_RESTARTS_S = 2.0
FULL_S = 2.0
PUBLISHES, ENDS_A_STEP = b'"char_start"', b'"completed_steps" + 1'
"""What only the transaction says that shows an encounter, and the one that ends a step."""


def scenes(*, kills: int, seconds: float, seed: int) -> Mapping[str, Scene]:
    """Give every scene by its name, in the order in which they are played."""
    return {
        "kills": lambda house: kill_loop(house, kills, seed),
        "redis-stopped": partial(_without_redis, away=_stopped),
        "redis-paused": partial(_without_redis, away=_paused),
        "redis-emptied": partial(_without_redis, away=_emptied),
        "redis-full": partial(_without_redis, away=_redis_full),
        "postgres-restarts": partial(_postgres_restarts, seconds=seconds),
        "disk-full": _disk_full,
        "lost-replies": _lost_replies,
    }


@contextmanager
def _stopped(house: House) -> Iterator[None]:
    valkey.shut_down(house.places)
    yield
    time.sleep(AWAY_S)
    embedded.up(house.places, with_postgres=False)


@contextmanager
def _paused(house: House) -> Iterator[None]:
    pid = valkey.running_pid(house.places)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    yield
    time.sleep(AWAY_S)
    os.kill(pid, signal.SIGCONT)


@contextmanager
def _emptied(house: House) -> Iterator[None]:
    pid = valkey.running_pid(house.places)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: valkey.running_pid(house.places) is None)
    shutil.rmtree(house.places.valkey_data)
    yield
    embedded.up(house.places, with_postgres=False)


@contextmanager
def _redis_full(house: House) -> Iterator[None]:
    with redis.Redis.from_url(str(settings.REDIS_URL)) as client:
        client.config_set("maxmemory", 1)
        yield
        time.sleep(FULL_S)
        client.config_set("maxmemory", 0)


def _without_redis(house: House, *, away: Callable[[House], Any]) -> dict[str, Any]:
    """Take Redis away in mid-job; what is handed in meanwhile has no wake-up, and runs after it."""
    ledger = Ledger(house)
    with house.workers(LEASE_S=PATIENT_LEASE_S):
        for _ in range(3):
            house.submit()
        house.in_the_middle()
        with away(house):
            house.submit()
            ledger.look()
        return ledger.close()


def _postgres_restarts(house: House, *, seconds: float) -> dict[str, Any]:
    """Restart PostgreSQL every few seconds, in turn politely and by force, while records come."""
    ledger = Ledger(house)
    restarts = 0
    ends = time.monotonic() + seconds
    with house.workers(LEASE_S=PATIENT_LEASE_S):
        while time.monotonic() < ends:
            for _ in range(4 - len(house.open_jobs())):
                house.submit()
            time.sleep(BETWEEN_RESTARTS_S)
            _restart(house, by_force=restarts % 2 == 1)
            restarts += 1
            ledger.look()
        return {"restarts": restarts, **ledger.close(may_fail=True)}


def _restart(house: House, *, by_force: bool) -> None:
    pid = postgres.running_pid(house.places)
    if by_force and pid is not None:
        os.kill(pid, signal.SIGQUIT)
        until(lambda: postgres.running_pid(house.places) is None)
    else:
        postgres.shut_down(house.places)
    embedded.up(house.places, with_valkey=False)


def _disk_full(house: House) -> dict[str, Any]:
    """Fill the disk of PostgreSQL, as it says so, and that of the workers, by a limit."""
    ledger = Ledger(house)
    refuse = """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          RAISE EXCEPTION 'could not extend file: No space left on device'
            USING ERRCODE = 'disk_full';
        END $$;
    """
    tables = ("pass1_entity_detections", "provider_calls", "shell_file_pages")
    with house.workers(LEASE_S=PATIENT_LEASE_S, file_bytes=0):
        for _ in range(3):
            house.submit()
        house.in_the_middle()
        with connection.cursor() as cursor:
            cursor.execute(refuse)
            for table in tables:
                cursor.execute(
                    f"CREATE TRIGGER full_disk BEFORE INSERT ON {table}"
                    " FOR EACH ROW EXECUTE FUNCTION refuse()"
                )
            house.submit()
            ledger.look()
            time.sleep(FULL_S)
            for table in tables:
                cursor.execute(f"DROP TRIGGER full_disk ON {table}")
            cursor.execute("DROP FUNCTION refuse()")
        return ledger.close(may_fail=True)


def _lost_replies(house: House) -> dict[str, Any]:
    """Lose the replies to commits that publish or end a step: the server has done it."""
    ledger = Ledger(house)
    losing = {PUBLISHES: 4, ENDS_A_STEP: 3}
    with tempfile.TemporaryDirectory(dir=house.places.base, prefix="proxy-") as folder:
        with LossyProxy(house.places.sockets, Path(folder), losing) as proxy:
            with _nursery_at(f"postgresql://medproc@/medproc?host={folder}") as nursery:
                with house.workers(nursery=nursery, LEASE_S=PATIENT_LEASE_S):
                    for _ in range(4):
                        house.submit()
                    figures = ledger.close()
    lost = {"replies lost": proxy.lost.total()}
    if proxy.lost != losing:
        figures["findings"].append(f"only {dict(proxy.lost)} replies were lost")
    return {**lost, **figures}


@contextmanager
def _nursery_at(database_url: str) -> Iterator[Nursery]:
    from pipeline.queues import RUN_STEP

    before = os.environ["DATABASE_URL"]
    os.environ["DATABASE_URL"] = database_url
    try:
        nursery = Nursery(RUN_STEP)
    finally:
        os.environ["DATABASE_URL"] = before
    yield nursery
    nursery.close()
