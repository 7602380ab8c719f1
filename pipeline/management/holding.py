"""What `pause` and `resume` share: the target, the reason, and who says so.

Imports services' errors and states; a target is a queue, or a provider with or without a model.
"""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError

from pipeline.errors import UserError
from pipeline.states import Step


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
    if not options["reason"].strip():
        raise CommandError("give a reason")
    return Step(options["queue"]) if options["queue"] is not None else None


def operator() -> str:
    """Return the name of the system's user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


@contextmanager
def one_line() -> Iterator[None]:
    """Turn a verb that cannot be carried out into one line and exit code 1."""
    try:
        yield
    except UserError as error:
        raise CommandError(error.message) from None
