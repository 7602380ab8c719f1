"""`manage.py rqworker [QUEUE…]`: one worker, in the foreground. Replaces the command of django-rq.

The command has no option for a serializer, a job class or a scheduler: entries are always JSON.
"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser
from redis.exceptions import RedisError

from pipeline.core.server_faults import explain
from pipeline.documents import scratch
from pipeline.management.plain_command import PlainCommand
from pipeline.queueing.queues import ALL_QUEUES, RECORD_QUEUES
from pipeline.workers.pool import refusal_of_redis
from pipeline.workers.rq_worker import Worker
from pipeline.workers.warming import warm


class Command(PlainCommand):
    """Run one worker until SIGTERM or Ctrl-C, which let the running step drain."""

    help = "Run one worker on the named queues; without names, on all queues after the pages"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queues", nargs="*", metavar="QUEUE", help=", ".join(ALL_QUEUES))
        parser.add_argument("--burst", action="store_true", help="exit when the queues are empty")

    def handle(self, *args: Any, queues: list[str], burst: bool, **options: Any) -> None:
        """Raise CommandError for an unknown queue, and if Redis does not answer."""
        names = known_queues(queues) or RECORD_QUEUES
        if refusal := refusal_of_redis():
            raise CommandError(explain(refusal))
        scratch.delete_abandoned_copies()
        warm()
        try:
            sys.exit(Worker.on(names).run(burst=burst))
        except RedisError as error:
            raise CommandError(explain(error)) from None


def known_queues(names: list[str]) -> tuple[str, ...]:
    """Return the names in their order; raise CommandError for a name that is not a queue."""
    for name in names:
        if name not in ALL_QUEUES:
            known = ", ".join(ALL_QUEUES)
            raise CommandError(f"there is no queue {name!r}; the queues are {known}")
    return tuple(names)
