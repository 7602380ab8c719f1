"""`manage.py rqworker-pool`: all workers of this host. Replaces the command of django-rq.

WORKER_CONCURRENCY workers run every pass after the pages, later passes first. PAGES_CONCURRENCY
workers read pages, so that OCR never occupies a worker of the later passes. One more worker sends
webhooks, so that a slow receiver never occupies a worker of a pass.
"""
# ruff: noqa: N999
# The file has the name of the command, which contains a hyphen.

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from pipeline.core.server_faults import explain, line_of
from pipeline.documents import scratch, storage
from pipeline.management.commands.rqworker import known_queues
from pipeline.management.plain_command import PlainCommand
from pipeline.operations.service_hooks import serving
from pipeline.queueing.queues import (
    ALL_QUEUES,
    PAGES_QUEUES,
    RECORD_QUEUES,
    SIDE_QUEUES,
)
from pipeline.workers.pool import WorkerPool, refusal_of_redis


class Command(PlainCommand):
    """Run workers until SIGTERM or Ctrl-C, which drain all; a second signal kills."""

    help = "Run this host's workers: WORKER_CONCURRENCY for the passes, PAGES_CONCURRENCY for OCR"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queues",
            nargs="+",
            default=[],
            metavar="QUEUE",
            help=f"run only workers of these queues, in this order: {', '.join(ALL_QUEUES)}",
        )
        parser.add_argument("--workers", type=int, metavar="N", help="number of workers")
        parser.add_argument("--burst", action="store_true", help="exit when the queues are empty")

    def handle(
        self, *args: Any, queues: list[str], workers: int | None, burst: bool, **options: Any
    ) -> None:
        """Raise CommandError for a wrong option, and if Redis does not answer."""
        seats = _seats(known_queues(queues), workers)
        if refusal := refusal_of_redis():
            raise CommandError(explain(refusal))
        scratch.delete_abandoned_copies()
        if fault := storage.fault():
            # The steps wait for the bucket, so the pool starts.
            self.stderr.write(line_of(fault))
        with serving("workers"):
            code = WorkerPool(seats, burst=burst).run()
        sys.exit(code)


def _seats(queues: tuple[str, ...], workers: int | None) -> list[tuple[str, ...]]:
    if workers is not None and (workers < 1 or not queues):
        raise CommandError("--workers needs --queues and a number of at least 1")
    if queues:
        return [queues] * (workers or settings.WORKER_CONCURRENCY)
    return [
        *[PAGES_QUEUES] * settings.PAGES_CONCURRENCY,
        SIDE_QUEUES,
        *[RECORD_QUEUES] * settings.WORKER_CONCURRENCY,
    ]
