"""Two optional extras: traces for OpenTelemetry, and errors for Sentry. Both are off by default."""

from __future__ import annotations

from medproc.telemetry import errors, traces


def prepare() -> None:
    """Import what the extras need, before this process forks. Starts no thread."""
    traces.prepare()


def flush() -> None:
    """Send what waits, for at most two seconds.

    Each process that ends without its exit handlers calls this.
    """
    traces.flush()
    errors.flush()
