"""The embedded Valkey: started, stopped and recovered.

The server listens only on a unix socket in a 0700 folder. It holds only ids, so it writes its file
once per second.
"""

from __future__ import annotations

import signal

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from medproc import private
from medproc.embedded import binaries
from medproc.embedded.errors import EmbeddedError
from medproc.embedded.places import Places
from medproc.embedded.processes import (
    command_line,
    detach,
    refusal,
    size,
    stop,
    wait_for,
)
from medproc.unprivileged import ServerUser

START_S = 30.0
STOP_S = 30.0
DATABASES = 64
"""More than Redis's default of 16, so that parallel tests each have their own database."""


def start(places: Places, user: ServerUser, *, throw_away: bool = False) -> None:
    """Start the server unless it answers."""
    if is_ready(places):
        return
    stuck = _recorded_pid(places)
    if stuck is not None:
        raise EmbeddedError(f"Valkey (process {stuck}) runs but does not answer")
    program = binaries.valkey_binary(places, user)
    private.folder(places.sockets, uid=user.uid, gid=user.gid)
    private.folder(places.valkey_data, uid=user.uid, gid=user.gid)
    log = places.valkey_data / "server.log"
    options = {
        "port": "0",
        "unixsocket": str(places.valkey_socket),
        "unixsocketperm": "700",
        "dir": str(places.valkey_data),
        "databases": str(DATABASES),
        "pidfile": str(places.valkey_data / "server.pid"),
        "save": "",
        "appendonly": "no" if throw_away else "yes",
        "maxmemory-policy": "noeviction",
    }
    arguments = [str(program)]
    for name, value in options.items():
        arguments += [f"--{name}", value]
    log_before = size(log)
    pid = detach(arguments, user=user, cwd=places.base, log=log)
    wait_for(lambda: is_ready(places) or not command_line(pid), seconds=START_S)
    if not is_ready(places):
        raise refusal("Valkey", log, log_before)


def shut_down(places: Places) -> bool:
    """Stop the server; return whether it ran."""
    pid = _recorded_pid(places)
    if pid is None:
        return False
    if not (stop(pid, signal.SIGTERM, seconds=STOP_S) or stop(pid, signal.SIGKILL, seconds=5)):
        raise EmbeddedError(f"Valkey (process {pid}) does not stop")
    return True


def is_ready(places: Places) -> bool:
    """Return whether the server answers within two seconds."""
    if not places.valkey_socket.exists():
        return False
    client = redis.Redis(
        unix_socket_path=str(places.valkey_socket), socket_timeout=2, retry=Retry(NoBackoff(), 0)
    )
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()


def running_pid(places: Places) -> int | None:
    """Return the process id of the live server, even if it does not answer."""
    return _recorded_pid(places)


def _recorded_pid(places: Places) -> int | None:
    try:
        text = (places.valkey_data / "server.pid").read_text("utf-8").strip()
    except OSError:
        return None
    pid = int(text) if text.isdigit() else 0
    # Valkey rewrites its title to "<program> unixsocket:<path>"; Redis uses the same form.
    seen = " ".join(command_line(pid)) if pid else ""
    return pid if str(places.valkey_socket) in seen else None
