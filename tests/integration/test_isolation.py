"""Each xdist worker has its own Valkey, and the suite refuses a shared server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis

from medproc.embedded import Places
from tests.support import databases, valkey


def test_this_worker_has_claimed_its_valkey(servers: Places) -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        run_id = client.info("server")["run_id"]

    assert (servers.base / f"valkey-{run_id}").read_text("utf-8") == databases.worker_name()


def test_a_second_worker_at_the_same_valkey_is_refused(servers: Places, tmp_path: Path) -> None:
    valkey.claim(os.environ["REDIS_URL"], tmp_path, "gw0")

    with pytest.raises(valkey.SharedValkeyError, match="gw1 and gw0 share"):
        valkey.claim(f"{os.environ['REDIS_URL']}&protocol=2", tmp_path, "gw1")
