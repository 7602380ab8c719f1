"""Liveness and readiness for a load balancer or an orchestrator.

- `/health/live` answers 200 while the server has a free thread.
- `/health/ready` answers 200 if PostgreSQL and Redis answer, else 503 with their names.

The addresses need no log-in and say nothing else. They work with every host name, because a probe
often uses the address of the machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django_rq import get_connection
from redis.exceptions import RedisError

from medproc.logs import PROBES

LIVE, READY = sorted(PROBES)
KEPT_S = 1.0
"""Seconds for which an answer of readiness counts: strangers may ask as often as they like."""
_TIMEOUT_MS = 2_000


class Probes:
    """The first middleware: nothing before it can refuse a probe."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._lock = threading.Lock()
        self._absent: list[str] = []
        self._asked_at = -KEPT_S

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a probe, or pass the request on."""
        if request.path not in (LIVE, READY):
            return self._get_response(request)
        absent = self._what_is_absent() if request.path == READY else []
        status = HTTPStatus.SERVICE_UNAVAILABLE if absent else HTTPStatus.OK
        answer = JsonResponse({"ok": not absent, "absent": absent}, status=status)
        answer["Cache-Control"] = "no-store"
        return answer

    def _what_is_absent(self) -> list[str]:
        with self._lock:
            if time.monotonic() - self._asked_at >= KEPT_S:
                checks = {"postgresql": _ask_postgresql, "redis": _ask_redis}
                self._absent = [name for name, ask in checks.items() if not ask()]
                self._asked_at = time.monotonic()
            return list(self._absent)


def _ask_postgresql() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET statement_timeout = {_TIMEOUT_MS}")
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
            cursor.execute("RESET statement_timeout")
    except DatabaseError:
        return False
    return True


def _ask_redis() -> bool:
    try:
        return bool(get_connection("pages").ping())
    except RedisError:
        return False
