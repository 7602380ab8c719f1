"""The address of a client is true behind trusted proxies, and a client cannot forge it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from medproc.web.client_address import MOST_HOPS, client_address

PROXIES = ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"]


@pytest.mark.parametrize(
    ("proxies", "remote", "header", "expected"),
    [
        ([], "10.0.0.1", "198.51.100.7", "10.0.0.1"),
        (PROXIES, "10.0.0.1", "198.51.100.7", "198.51.100.7"),
        (PROXIES, "10.0.0.1", "198.51.100.7, 10.9.9.9", "198.51.100.7"),
        # The client wrote the left entries.
        (PROXIES, "10.0.0.1", "203.0.113.1, 10.2.2.2, 198.51.100.7", "198.51.100.7"),
        (PROXIES, "203.0.113.9", "198.51.100.7", "203.0.113.9"),
        (PROXIES, "10.0.0.1", None, "10.0.0.1"),
        (PROXIES, "10.0.0.1", "", "10.0.0.1"),
        (PROXIES, "10.0.0.1", "198.51.100.7, unknown", "10.0.0.1"),
        (PROXIES, "10.0.0.1", "<script>, 198.51.100.7", "198.51.100.7"),
        (PROXIES, "10.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
        (PROXIES, "2001:db8::1", "[2606:4700::1]:443", "2606:4700::1"),
        (PROXIES, "::ffff:10.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"),
        (PROXIES, "10.0.0.1", ", ".join(["10.0.0.2"] * 5000), "10.0.0.2"),
        (PROXIES, "10.0.0.1", ", ".join(["198.51.100.7", *["10.0.0.2"] * MOST_HOPS]), "10.0.0.2"),
        (PROXIES, "", "198.51.100.7", None),
    ],
)
def test_the_address_is_the_nearest_that_no_trusted_proxy_has(
    settings: Any,
    proxies: list[str],
    remote: str,
    header: str | None,
    expected: str | None,
) -> None:
    settings.TRUSTED_PROXIES = proxies
    headers: dict[str, Any] = {} if header is None else {"HTTP_X_FORWARDED_FOR": header}

    request = RequestFactory().get("/", REMOTE_ADDR=remote, **headers)

    assert client_address(request) == expected
