"""The address of the console: read from the command line, and tried before anything starts."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from medproc import serving_user, unprivileged

_HINT = "choose another: make up PORT=8001"
_SERVE_HINT = "choose another: manage.py serve 127.0.0.1:8001"


class PortError(Exception):
    """The port cannot be used; the message is one line."""


def port_number(text: str) -> int:
    """Return the port in `text`. Raises PortError unless it is a number from 1 to 65535."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65_535):
        raise PortError(f"PORT must be a number from 1 to 65535; {_HINT}")
    return int(text)


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `host:port`. Raises PortError unless the port is a number."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port[:6]) <= 65_535):
        raise PortError("The address must have the form 127.0.0.1:8000 or [::1]:8000")
    return host.strip("[]"), int(port)


def refuse_unusable(port: int) -> None:
    """Raise PortError if `make up` cannot open `port` on this machine."""
    if os.geteuid() == 0 and port < _first_open_port() and _console_leaves_root():
        user = unprivileged.server_user().name
        raise PortError(f"Port {port} is for root, and the console runs as {user}; {_HINT}")
    refuse_taken("127.0.0.1", port, _HINT)


def refuse_taken(host: str, port: int, hint: str = _SERVE_HINT) -> None:
    """Raise PortError if this process cannot open the address."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise PortError(f"The host {host} has no address; {hint}") from None
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except PermissionError:
            raise PortError(f"Port {port} is for root; {hint}") from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortError(f"Port {port} is taken; {hint}") from None
            raise PortError(f"Port {port} cannot be opened: {error.strerror}; {hint}") from None


def _console_leaves_root() -> bool:
    return unprivileged.obstacle(serving_user.needed_to_serve()) is None


def _first_open_port() -> int:
    """Return the first port that every user may open."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text("ascii"))
    except (OSError, ValueError):
        return 1024
