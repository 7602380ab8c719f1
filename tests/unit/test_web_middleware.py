"""A stranger can send neither the headers of a proxy nor a long body."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from medproc.web.bodies import ShortAnonymousBodies
from medproc.web.forwarding import ForwardedByTrustedProxies
from medproc.web.limits import ANONYMOUS_BODY

FORWARDED = {
    "HTTP_X_FORWARDED_FOR": "198.51.100.7",
    "HTTP_X_FORWARDED_PROTO": "https",
    "HTTP_X_FORWARDED_HOST": "evil.example",
    "HTTP_FORWARDED": "for=198.51.100.7",
    "HTTP_X_REAL_IP": "198.51.100.7",
}


def _echo(request: HttpRequest) -> HttpResponse:
    return HttpResponse(" ".join(sorted(FORWARDED.keys() & request.META.keys())))


@pytest.mark.parametrize(
    ("proxies", "remote", "is_kept"),
    [
        ([], "127.0.0.1", False),
        (["10.0.0.0/8"], "127.0.0.1", False),
        (["10.0.0.0/8"], "", False),
        (["10.0.0.0/8"], "10.1.2.3", True),
        (["127.0.0.1"], "::ffff:127.0.0.1", True),
    ],
)
def test_headers_of_a_proxy_count_only_from_trusted_proxies(
    settings: Any, proxies: list[str], remote: str, is_kept: bool
) -> None:
    settings.TRUSTED_PROXIES = proxies
    extra: dict[str, Any] = FORWARDED
    request = RequestFactory().get("/", REMOTE_ADDR=remote, **extra)

    answer = ForwardedByTrustedProxies(_echo)(request)

    assert isinstance(answer, HttpResponse)
    assert answer.content.decode().split() == (sorted(FORWARDED) if is_kept else [])


@pytest.mark.parametrize(
    ("length", "is_logged_in", "status"),
    [
        ("", False, 200),
        (str(ANONYMOUS_BODY), False, 200),
        (str(ANONYMOUS_BODY + 1), False, 413),
        (str(ANONYMOUS_BODY + 1), True, 200),
        ("-1", False, 413),
        ("many", False, 413),
    ],
)
def test_a_long_body_needs_a_log_in(length: str, is_logged_in: bool, status: int) -> None:
    request = RequestFactory().generic("POST", "/", CONTENT_LENGTH=length)
    user: Any = SimpleNamespace(is_authenticated=is_logged_in)
    request.user = user

    assert ShortAnonymousBodies(_echo)(request).status_code == status
