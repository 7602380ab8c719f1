"""The address of the client of a request, behind any number of trusted proxies.

A client can write any X-Forwarded-For. Each proxy appends the address that it sees, so only the
entries that trusted proxies appended, at the right end, are true.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

MOST_HOPS = 20
"""Entries of the header that are read; a longer chain of own proxies is a mistake."""

_Address = IPv4Address | IPv6Address


def client_address(request: HttpRequest) -> str | None:
    """Return the nearest address that is not a trusted proxy; None for a unix socket.

    A trusted proxy that names no valid address counts as the client itself.
    """
    found = _parsed(request.META.get("REMOTE_ADDR", ""))
    if found is None:
        return None
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    for entry in entries[: -MOST_HOPS - 1 : -1]:
        if not _is_trusted(found) or (named := _parsed(entry)) is None:
            break
        found = named
    return str(found)


def is_from_trusted_proxy(request: HttpRequest) -> bool:
    """Return whether a proxy in TRUSTED_PROXIES sent the request."""
    sender = _parsed(request.META.get("REMOTE_ADDR", ""))
    return sender is not None and _is_trusted(sender)


def _is_trusted(address: _Address) -> bool:
    return any(address in ip_network(each) for each in settings.TRUSTED_PROXIES)


def _parsed(text: str) -> _Address | None:
    """Parse an address, without a port, brackets or a zone; IPv4 in IPv6 becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
