"""The headers of proxies count only from the addresses in TRUSTED_PROXIES."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from medproc.web.client_address import is_from_trusted_proxy

_HEADERS = ("HTTP_FORWARDED", "HTTP_X_REAL_IP")
_BEGINNING = "HTTP_X_FORWARDED_"


class ForwardedByTrustedProxies:
    """Removes the headers of a proxy from the request of every other client.

    Such a header would let a client choose the address in the audit log and claim https.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request without the headers of strangers."""
        if not is_from_trusted_proxy(request):
            for name in [*request.META]:
                if name in _HEADERS or name.startswith(_BEGINNING):
                    del request.META[name]
        return self._get_response(request)
