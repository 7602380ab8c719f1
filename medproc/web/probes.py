"""Liveness and readiness for a load balancer or an orchestrator.

- `/health/live` answers 200 while the server has a free thread.
- `/health/ready` answers 200 if PostgreSQL and Redis accept writes, else 503 with the faults.

The addresses need no log-in and say nothing else. They work with every host name, because a probe
often uses the address of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponseBase, JsonResponse

from medproc.logs import PROBES
from pipeline.operations.server_check import recent_server_faults

LIVE, READY = sorted(PROBES)


class Probes:
    """The first middleware: nothing before it can refuse a probe."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a probe, or pass the request on."""
        if request.path not in (LIVE, READY):
            return self._get_response(request)
        # Strangers may ask as often as they like: the check keeps an answer for seconds.
        found = recent_server_faults() if request.path == READY else ()
        status = HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK
        answer = JsonResponse({"ok": not found, "faults": found}, status=status)
        answer["Cache-Control"] = "no-store"
        return answer
