"""The throttle of log-ins: attempts that failed, counted in Redis for all web processes.

django-axes does the same, but stores what was typed as a user name, which may be a password, in
rows that strangers can add without end; its counters in a cache fail while Redis is away.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address, ip_network

from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from redis.exceptions import RedisError

from medproc.timing import scaled
from medproc.web.client_address import client_address
from pipeline.core.labels import counted
from pipeline.queueing.queues import producer

WINDOW_S = 900.0
"""Seconds from the first attempt until the count starts again."""
OF_ACCOUNT = 5
"""Attempts for one user name from one address in a window. No count covers all addresses: a
stranger could lock an operator out in an outage. Passwords have at least 12 characters."""
OF_ADDRESS = 50
"""Attempts from one address in a window, for all user names. So a failed attempt of a known user,
which the permanent audit keeps, is possible 50 times."""
_IPV6_CUSTOMER = 64
"""Length in bits of the prefix that one customer of IPv6 holds."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a log-in, already counted."""

    of_address: str
    """Key of the address's count."""
    of_account: str = ""
    """Key of the count of the user name; empty while the user is unknown."""
    wait_s: int = 0
    """Seconds to wait before the next attempt; 0 if this attempt may check the password."""

    @property
    def wait(self) -> str:
        """The wait in whole minutes, in words."""
        return counted(-(-self.wait_s // 60), "minute")

    def succeeded(self) -> None:
        """Forget the attempts for this user, and take this attempt from those of the address."""
        try:
            with producer().pipeline() as commands:
                if self.of_account:
                    commands.delete(self.of_account)
                commands.decr(self.of_address)
                # An expired count that begins at -1 must end too.
                commands.expire(self.of_address, _window_s(), nx=True)
                commands.execute()
        except (RedisError, OSError):
            return


def attempt_of(request: HttpRequest, username: str | None = None) -> Attempt:
    """Return an attempt of this address, counted before. The keys tell no names and addresses."""
    address = _network_of(client_address(request))
    of_account = "" if username is None else _key(username, address)
    return Attempt(_key(address), of_account)


def attempted(request: HttpRequest, username: str | None = None) -> Attempt:
    """Count an attempt before the password is checked, so that parallel attempts are counted too.

    A Redis that does not answer causes no refusal: operators log in during its outage.
    """
    attempt = attempt_of(request, username)
    limits = {attempt.of_account: OF_ACCOUNT, attempt.of_address: OF_ADDRESS}
    limits.pop("", None)
    try:
        with producer().pipeline() as commands:
            for key in limits:
                commands.incr(key)
                commands.expire(key, _window_s(), nx=True)
                commands.ttl(key)
            found = commands.execute()
    except (RedisError, OSError):
        return attempt
    counts, rest = found[::3], found[2::3]
    waits = [
        max(1, left)
        for count, most, left in zip(counts, limits.values(), rest, strict=True)
        if count > most
    ]
    return replace(attempt, wait_s=max(waits, default=0))


def _window_s() -> int:
    return max(1, round(scaled(WINDOW_S)))


def _network_of(address: str | None) -> str:
    found = ip_address(address) if address else None
    if isinstance(found, IPv6Address):
        return str(ip_network((found, _IPV6_CUSTOMER), strict=False))
    return str(found)


def _key(*parts: str) -> str:
    digest = salted_hmac("medproc.log-in", json.dumps(parts), algorithm="sha256").hexdigest()
    return f"medproc:log-in:{digest}"
