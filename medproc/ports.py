"""The port of the console: read from the command line, and tried before anything starts."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from medproc import serving_user, unprivileged

_HINT = "choose another: make up PORT=8001"


class PortError(Exception):
    """The port cannot be used; the message is one line."""


def port_number(text: str) -> int:
    """Return the port in `text`. Raises PortError unless it is a number from 1 to 65535."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65_535):
        raise PortError(f"PORT must be a number from 1 to 65535; {_HINT}")
    return int(text)


def refuse_unusable(port: int) -> None:
    """Raise PortError if the console cannot open `port` on this machine."""
    if os.geteuid() == 0 and port < _first_open_port() and _console_leaves_root():
        user = unprivileged.server_user().name
        raise PortError(f"Port {port} is for root, and the console runs as {user}; {_HINT}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise PortError(f"Port {port} is for root; {_HINT}") from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortError(f"Port {port} is taken; {_HINT}") from None
            raise PortError(f"Port {port} cannot be opened: {error.strerror}; {_HINT}") from None


def _console_leaves_root() -> bool:
    return unprivileged.obstacle(serving_user.needed_to_serve()) is None


def _first_open_port() -> int:
    """Return the first port that every user may open."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text("ascii"))
    except (OSError, ValueError):
        return 1024
