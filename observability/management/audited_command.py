"""The shared parts of commands that act as an operator: target, audit and errors.

An action and its audit row are one transaction. The target is a queue, a provider with or without
a model, or an id.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.core.management.base import CommandError

from observability.audit import log
from observability.audit.actor import command_line
from pipeline.core.errors import UserError
from pipeline.core.states import Step
from pipeline.operations.reasons import ReasonError


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare the options for a queue or provider, and for the reason."""
    parser.add_argument("queue", nargs="?", choices=Step.values, metavar="QUEUE")
    parser.add_argument("--provider", metavar="P", help="all passes that call it, on all workers")
    parser.add_argument("--model", metavar="M", help="only this model of the provider")
    parser.add_argument("--reason", required=True, help="stored in the row, not in the log")


def target_of(options: dict[str, Any]) -> Step | None:
    """Return the queue, or None if a provider is named. Raises CommandError."""
    if (options["queue"] is None) == (options["provider"] is None):
        raise CommandError("name a queue, or a provider with --provider")
    if options["model"] is not None and options["provider"] is None:
        raise CommandError("--model needs --provider")
    return Step(options["queue"]) if options["queue"] is not None else None


def audited(action: str, **row: Any) -> AbstractContextManager[dict[str, Any]]:
    """Run an action, and audit it under the name of the command line's user."""
    return log.audited(command_line(), action, **row)


def held(action: str, options: dict[str, Any]) -> AbstractContextManager[dict[str, Any]]:
    """Run a pause or resume and audit the action under the console's name for it."""
    queue, provider, model = options["queue"], options["provider"], options["model"]
    if queue is not None:
        return audited(action, target_kind="queue", target_id=queue, reason=options["reason"])
    return audited(
        f"{action}-provider",
        target_kind="provider",
        target_id=f"{provider}:{model}" if model else provider,
        reason=options["reason"],
    )


@contextmanager
def one_line() -> Iterator[None]:
    """Turn a UserError into one line and exit code 1, or 2 if the reason is missing."""
    try:
        yield
    except UserError as error:
        returncode = 2 if isinstance(error, ReasonError) else 1
        raise CommandError(f"{error.message} ({error.code})", returncode=returncode) from None
