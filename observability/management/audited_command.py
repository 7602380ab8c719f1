"""What the commands of the operator's verbs share: who gives them, on what, and how they refuse.

Imports the audit and the pipeline's errors and states. A verb and its row of the audit are one
transaction; what it is about is a queue, or a provider with or without a model, or an id.
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
    """Declare the queue or provider, and the reason."""
    parser.add_argument("queue", nargs="?", choices=Step.values, metavar="QUEUE")
    parser.add_argument("--provider", metavar="P", help="every pass that asks it, on all workers")
    parser.add_argument("--model", metavar="M", help="only this model of the provider")
    parser.add_argument("--reason", required=True, help="why; kept in the row, not in the log")


def target_of(options: dict[str, Any]) -> Step | None:
    """Return the queue, or None where a provider is named. Raises CommandError."""
    if (options["queue"] is None) == (options["provider"] is None):
        raise CommandError("name a queue, or a provider with --provider")
    if options["model"] is not None and options["provider"] is None:
        raise CommandError("--model needs --provider")
    return Step(options["queue"]) if options["queue"] is not None else None


def deed(verb: str, **row: Any) -> AbstractContextManager[dict[str, Any]]:
    """Let a verb be done and write it down as the operator's at the command line."""
    return log.deed(command_line(), verb, **row)


def held(verb: str, options: dict[str, Any]) -> AbstractContextManager[dict[str, Any]]:
    """Let a pause or resume be done and write it down, named as the console names it."""
    queue, provider, model = options["queue"], options["provider"], options["model"]
    if queue is not None:
        return deed(verb, target_kind="queue", target_id=queue, reason=options["reason"])
    return deed(
        f"{verb}-provider",
        target_kind="provider",
        target_id=f"{provider}:{model}" if model else provider,
        reason=options["reason"],
    )


@contextmanager
def one_line() -> Iterator[None]:
    """Turn a verb that cannot be carried out into one line and exit code 1, or 2 for its reason."""
    try:
        yield
    except UserError as error:
        returncode = 2 if isinstance(error, ReasonError) else 1
        raise CommandError(f"{error.message} ({error.code})", returncode=returncode) from None
