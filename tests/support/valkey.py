"""The Valkey server of each test process, claimed so that no two processes share a server.

Tests flush, freeze and kill their Valkey, and cut its connections; each would disturb a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from medproc import embedded
from medproc.embedded import Places


class SharedValkeyError(Exception):
    """Two test processes use the same Valkey server."""


def claim(url: str, claims: Path, worker: str) -> Path:
    """Claim the server at `url` for one worker; return the file of the claim.

    `claims` is a folder that all workers of a session share. Raises SharedValkeyError if another
    worker, or this one, has claimed the server before.
    """
    with redis.Redis.from_url(url) as client:
        # The server's own id, because two different URLs can lead to one server.
        claimed = claims / f"valkey-{client.info('server')['run_id']}"
    try:
        with claimed.open("x", encoding="utf-8") as file:
            file.write(worker)
    except FileExistsError:
        raise SharedValkeyError(
            f"{worker} and {claimed.read_text('utf-8')} share the Valkey at {url}"
        ) from None
    return claimed


@contextmanager
def throw_away_valkey() -> Iterator[Places]:
    """Run one more Valkey, without PostgreSQL, for tests that freeze or kill their server."""
    places = embedded.throw_away_places()
    try:
        embedded.up(places, with_postgres=False, throw_away=True)
        yield places
    finally:
        embedded.throw_away(places)
