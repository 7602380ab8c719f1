"""A server that starts, loads or follows a primary is named, and is no fault afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from django.core.cache import cache
from redis.backoff import NoBackoff
from redis.retry import Retry

from medproc import embedded
from medproc.embedded import Places, binaries
from medproc.embedded.postgres import DURABLE, THROW_AWAY
from medproc.embedded.processes import detach
from medproc.unprivileged import server_user
from pipeline.core.server_faults import ServerFault
from pipeline.operations.server_check import postgres_fault, redis_fault
from tests.support.refusing_servers import postgres_at, redis_at
from tests.support.workers import until

pytestmark = pytest.mark.slow(reason="servers of its own are started: 20 s")
KEYS, KEY_BYTES, MICROSECONDS = 150, 200, 20_000
"""Valkey answers other clients after each kilobyte that it has loaded."""


@contextmanager
def a_valkey(folder: Path, *options: str) -> Iterator[redis.Redis]:
    places = Places(base=folder, sockets=folder)
    address = folder / "v.sock"
    program = str(binaries.valkey_binary(places, server_user()))
    place = ["--port", "0", "--unixsocket", str(address), "--dir", str(folder), "--save", ""]
    process = subprocess.Popen([program, *place, *options], stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=str(address), retry=Retry(NoBackoff(), 0))
    try:
        until(address.exists)
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait()


def test_a_redis_that_loads_its_data_is_named_until_it_has_loaded() -> None:
    places = embedded.throw_away_places()
    try:
        with a_valkey(places.base) as client:
            until(lambda: fault_at(places) is None)
            for number in range(KEYS):
                client.set(str(number), os.urandom(KEY_BYTES))
            client.save()
        slow = ("--key-load-delay", str(MICROSECONDS))
        with a_valkey(places.base, *slow, "--loading-process-events-interval-bytes", "1024"):
            until(lambda: fault_at(places) is ServerFault.REDIS_LOADING)
            until(lambda: fault_at(places) is None)
    finally:
        embedded.throw_away(places)


def fault_at(places: Places) -> ServerFault | None:
    with redis_at(str(places.base / "v.sock")):
        return redis_fault()


@pytest.mark.parametrize(
    ("reads", "fault"),
    [("off", ServerFault.POSTGRES_STARTING), ("on", ServerFault.POSTGRES_READ_ONLY)],
)
def test_a_postgresql_that_recovers_or_is_a_standby_is_named(
    reads: str, fault: ServerFault
) -> None:
    places, user = embedded.throw_away_places(), server_user()
    embedded.up(places, with_valkey=False, throw_away=True)
    embedded.down(places)
    mark = places.postgres_data / "standby.signal"
    mark.touch()
    os.chown(mark, user.uid, user.gid)
    options = {**DURABLE, **THROW_AWAY, "hot_standby": reads}
    arguments = [f for name, value in options.items() for f in ("-c", f"{name}={value}")]
    program = binaries.postgres_binaries(places, user) / "postgres"
    pid = detach(
        [program, "-D", places.postgres_data, "-k", places.sockets, *arguments],
        user=user,
        cwd=places.base,
        log=places.postgres_data / "standby.log",
    )
    try:
        cache.clear()
        with postgres_at(str(places.sockets)):
            until(lambda: postgres_fault() is fault)
    finally:
        os.kill(pid, signal.SIGQUIT)
        embedded.throw_away(places)
