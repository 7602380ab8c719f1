"""`/metrics`: the metrics for a scraper that sends METRICS_TOKEN in its Authorization header.

The endpoint needs no log-in and no session, and works with every host name, because Prometheus
often uses the address of the machine. Without METRICS_TOKEN the answer is 404.
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from medproc.logs import METRICS
from observability.metrics.prometheus.collector import exposition

SCHEME = "bearer "


class MetricsEndpoint:
    """A middleware before all that could refuse or redirect a scrape."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a scrape, or pass the request on."""
        if request.path != METRICS:
            return self._get_response(request)
        answer = _answer(request)
        answer["Cache-Control"] = "no-store"
        answer["X-Content-Type-Options"] = "nosniff"
        return answer


def _answer(request: HttpRequest) -> HttpResponse:
    if not settings.METRICS_TOKEN:
        return _refusal("METRICS_TOKEN is not set, so there are no metrics here.", 404)
    if not _is_authorized(request, settings.METRICS_TOKEN):
        refused = _refusal("Send METRICS_TOKEN: Authorization: Bearer <token>", 401)
        refused["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refused
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _is_authorized(request: HttpRequest, token: str) -> bool:
    """Return whether the header holds the token; the comparison takes the same time for all."""
    header = request.headers.get("Authorization", "")
    sent = header[len(SCHEME) :] if header[: len(SCHEME)].lower() == SCHEME else ""
    return compare_digest(sent.encode(), str(token).encode())


def _refusal(words: str, status: int) -> HttpResponse:
    return HttpResponse(
        f"{words}\n", status=HTTPStatus(status), content_type="text/plain; charset=utf-8"
    )
