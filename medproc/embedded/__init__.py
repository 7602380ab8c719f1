"""The embedded PostgreSQL 18 and Valkey: found, started, stopped, and thrown away after tests.

Imports nothing of Django, so that settings can ask it for addresses. Servers listen on private
unix sockets only, and no folder of the user's is ever opened to anybody.
"""

from __future__ import annotations

from medproc.embedded.errors import EmbeddedError
from medproc.embedded.places import Places, places_of
from medproc.embedded.servers import (
    ServerStatus,
    down,
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
    "down",
    "places_of",
    "status",
    "throw_away",
    "throw_away_places",
    "throw_away_servers",
    "up",
]
