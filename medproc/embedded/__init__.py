"""The embedded PostgreSQL 18 and Valkey: found, started, stopped, and thrown away after tests.

The servers listen only on private unix sockets, and no folder of the user becomes readable for
others. The package knows no Django, because the settings ask it for addresses.
"""

from __future__ import annotations

from medproc.embedded.errors import EmbeddedError, no_room
from medproc.embedded.places import Places, absent_places, places_of
from medproc.embedded.servers import (
    ServerStatus,
    down,
    in_use,
    status,
    throw_away,
    throw_away_places,
    throw_away_servers,
    up,
)

__all__ = [
    "EmbeddedError",
    "Places",
    "ServerStatus",
    "absent_places",
    "down",
    "in_use",
    "no_room",
    "places_of",
    "status",
    "throw_away",
    "throw_away_places",
    "throw_away_servers",
    "up",
]
