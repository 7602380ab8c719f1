"""Errors for Sentry: off without SENTRY_DSN, and then without an import.

Every process starts this with Django. The library sends in a thread, so a process with forks
reports only an error that ends the process. The forks report, and wait FLUSH_S at most.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

from django.conf import settings

from medproc.telemetry.error_event import event_of, places_of

FLUSH_S = 1.0
"""Seconds that the end of a process waits for the tracker."""
AGAIN_S = 60.0
"""Seconds in which a process sends an error of the same type and place only once."""

_sent_at: dict[str, float] = {}
"""Monotonic seconds of the last report, by type and place. Places are source code, so few."""


def is_on() -> bool:
    """Return whether errors are wanted."""
    return bool(settings.SENTRY_DSN)


def start() -> None:
    """Prepare the library once, if it is wanted; starts no thread."""
    if not is_on():
        return
    import sentry_sdk

    if sentry_sdk.is_initialized():
        return
    from django.core.signals import got_request_exception
    from sentry_sdk.integrations.atexit import AtexitIntegration
    from sentry_sdk.integrations.excepthook import ExcepthookIntegration
    from sentry_sdk.integrations.threading import ThreadingIntegration

    sentry_sdk.init(
        dsn=str(settings.SENTRY_DSN),
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[
            AtexitIntegration(callback=lambda pending, timeout: None),
            ExcepthookIntegration(),
            ThreadingIntegration(propagate_scope=False),
        ],
        before_send=_allowed,
        before_send_transaction=lambda event, hint: None,
        before_breadcrumb=lambda crumb, hint: None,
        # `_allowed` drops all that the library collects. So the library need not collect it.
        auto_session_tracking=False,
        send_client_reports=False,
        include_local_variables=False,
        include_source_context=False,
        max_breadcrumbs=0,
        max_request_body_size="never",
        enable_backpressure_handling=False,
        spotlight=False,
        debug=False,
        release=settings.SENTRY_RELEASE or "none",
        server_name="none",
        shutdown_timeout=FLUSH_S,
    )
    got_request_exception.connect(_of_a_request, dispatch_uid="medproc.telemetry")


def report(error: BaseException, *, step: str = "") -> None:
    """Send the types, code and places of an unexpected error. `step` is a pass or a task."""
    if not is_on() or _was_just_sent(error):
        return
    # The report of an error must never be the next error.
    with suppress(Exception):
        start()
        import sentry_sdk

        sentry_sdk.capture_event(
            {"level": "error"},
            hint={"exc_info": (type(error), error, error.__traceback__), "step": step},
        )


def flush() -> None:
    """Wait until waiting errors are sent, at most FLUSH_S."""
    if is_on() and _sent_at:
        import sentry_sdk

        sentry_sdk.flush(FLUSH_S)


def _allowed(event: Any, hint: dict[str, Any]) -> Any:
    """Return the event to send in place of `event`; None drops an event without an exception."""
    error = (hint.get("exc_info") or (None, None, None))[1]
    if error is None:
        return None
    return event_of(
        error,
        event_id=event["event_id"],
        timestamp=event["timestamp"],
        release=settings.SENTRY_RELEASE,
        service=settings.OTEL_SERVICE_NAME,
        step=str(hint.get("step", "")),
    )


def _was_just_sent(error: BaseException) -> bool:
    place = f"{type(error).__qualname__} {places_of(error)[-1:]}"
    now = time.monotonic()
    is_early = now - _sent_at.get(place, -AGAIN_S) < AGAIN_S
    if not is_early:
        _sent_at[place] = now
    return is_early


def _of_a_request(sender: object, **kwargs: Any) -> None:
    """Report the error that made a page fail; Django has logged it."""
    error = sys.exc_info()[1]
    if error is not None:
        report(error)
