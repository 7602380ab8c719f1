"""One POST to the address of a receiver, with a bounded time and only to a public address.

The name is resolved once, every address is checked, and the connection goes to a checked address;
so a name that changes its address in between reaches nothing inside. No redirect is followed and
no proxy is used. httpx2 resolves names itself, so this module uses Python's own `http.client`.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from socket import (
    IPPROTO_TCP,
    SHUT_RDWR,
    SOCK_STREAM,
    create_connection,
    gaierror,
    getaddrinfo,
    socket,
)
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from api.webhooks.models import DeliveryFailure
from pipeline.core.errors import UserError, UserErrorCode

TIMEOUT_S = 15.0
"""Seconds of one attempt, the shortest value that Standard Webhooks recommends."""
LONGEST_URL = 500
_PORTS = {"http": 80, "https": 443}
_ROUTED = IPv6Network("2000::/3")
_TUNNELS = (IPv6Network("2001::/32"), IPv6Network("2002::/16"))
"""Teredo and 6to4: such an address contains an IPv4 address, which can be private."""


class NotDeliveredError(Exception):
    """No answer in HTTP came."""

    def __init__(self, failure: DeliveryFailure) -> None:
        self.failure = failure
        super().__init__(failure.value)


@dataclass(frozen=True, kw_only=True)
class ReceiverAnswer:
    """The answer of a receiver, without its body."""

    status: int
    retry_after_s: float | None
    """The header Retry-After in seconds; a date is ignored."""

    @property
    def is_ok(self) -> bool:
        """Whether the delivery succeeded."""
        return 200 <= self.status <= 299


def check_url(url: str) -> None:
    """Check an address before any request to it. Raises UserError."""
    parts = _parts(url)
    if parts is None or parts.username is not None or parts.fragment:
        raise _wrong(f"is https://host/path with at most {LONGEST_URL} printable ASCII characters")
    host = parts.hostname or ""
    if host in settings.WEBHOOK_ALLOWED_HOSTS:
        return
    if parts.scheme != "https":
        raise _wrong("begins with https://; WEBHOOK_ALLOWED_HOSTS can name a host for http://")
    try:
        is_private = not is_public(ip_address(host))
    except ValueError:
        is_private = host == "localhost" or host.endswith(".localhost")
    if is_private:
        raise _wrong("has a public host; WEBHOOK_ALLOWED_HOSTS can name another one")


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address belongs to the public Internet."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _ROUTED or any(address in each for each in _TUNNELS):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def post(
    url: str, body: bytes, headers: dict[str, str], *, timeout_s: float = TIMEOUT_S
) -> ReceiverAnswer:
    """Post a body; return the answer. Raises NotDeliveredError.

    The time covers connection, request and answer together, whatever the receiver sends.
    """
    parts = _parts(url)
    if parts is None:
        raise NotDeliveredError(DeliveryFailure.NAME_UNKNOWN)
    ends_at = time.monotonic() + timeout_s
    connection = _connected(parts, _checked(parts), timeout_s)
    watch = Timer(max(0.0, ends_at - time.monotonic()), _shut, [connection])
    watch.daemon = True
    watch.start()
    try:
        answer = _answered(parts, connection, body, headers)
    except (OSError, HTTPException) as error:
        if time.monotonic() >= ends_at or isinstance(error, TimeoutError):
            raise NotDeliveredError(DeliveryFailure.TIMEOUT) from None
        raise NotDeliveredError(_failure_of(error)) from None
    finally:
        watch.cancel()
        connection.close()
    return answer


def _parts(url: str) -> SplitResult | None:
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _wrong(says: str) -> UserError:
    return UserError(f"the address of a webhook {says}", code=UserErrorCode.VALUE_INVALID)


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def _checked(parts: SplitResult) -> list[str]:
    """Return the addresses of the host. Raises NotDeliveredError if one is not public."""
    host = parts.hostname or ""
    try:
        found = getaddrinfo(host, _port(parts), type=SOCK_STREAM, proto=IPPROTO_TCP)
    except (gaierror, UnicodeError):
        raise NotDeliveredError(DeliveryFailure.NAME_UNKNOWN) from None
    addresses = [str(each[4][0]) for each in found]
    if host not in settings.WEBHOOK_ALLOWED_HOSTS and (
        parts.scheme != "https" or not all(is_public(ip_address(each)) for each in addresses)
    ):
        raise NotDeliveredError(DeliveryFailure.ADDRESS_REFUSED)
    return addresses


def _connected(parts: SplitResult, addresses: list[str], timeout_s: float) -> socket:
    """Connect to the first address that answers; the addresses share the time."""
    failure = DeliveryFailure.CONNECTION_FAILED
    for address in addresses:
        try:
            raw = create_connection((address, _port(parts)), timeout_s / len(addresses))
        except OSError as error:
            if isinstance(error, TimeoutError):
                failure = DeliveryFailure.TIMEOUT
            continue
        raw.settimeout(timeout_s)
        if parts.scheme == "http":
            return raw
        # The handshake waits for the watch, which limits its whole time.
        return ssl.create_default_context().wrap_socket(
            raw, server_hostname=parts.hostname, do_handshake_on_connect=False
        )
    raise NotDeliveredError(failure)


def _answered(
    parts: SplitResult, connection: socket, body: bytes, headers: dict[str, str]
) -> ReceiverAnswer:
    if isinstance(connection, ssl.SSLSocket):
        connection.do_handshake()
    http = HTTPConnection(parts.hostname or "", _port(parts))
    # With a socket of its own, the connection resolves no name.
    http.sock = connection
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    http.request("POST", path, body, {"Host": parts.netloc, "Connection": "close", **headers})
    # The body of the answer is never read.
    response = http.getresponse()
    stated = response.headers.get("Retry-After", "")
    return ReceiverAnswer(
        status=response.status,
        retry_after_s=float(stated) if stated.isascii() and stated.isdigit() else None,
    )


def _shut(connection: socket) -> None:
    """End every wait for the receiver."""
    try:
        # The method of a TLS socket would first let a waiting request through in the clear.
        socket.shutdown(connection, SHUT_RDWR)
    except OSError:
        return


def _failure_of(error: Exception) -> DeliveryFailure:
    if isinstance(error, ssl.SSLError):
        return DeliveryFailure.TLS_FAILED
    if isinstance(error, HTTPException):
        return DeliveryFailure.RESPONSE_INVALID
    return DeliveryFailure.CONNECTION_FAILED
