"""`manage.py services up|down|status`: the embedded PostgreSQL and Valkey.

The command needs no database. A server named by DATABASE_URL or REDIS_URL is foreign: the command
shows whether the server answers, and never starts or stops it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
import redis
from django.conf import settings
from django.core.management.base import CommandError

from medproc import addresses, embedded
from pipeline.management.plain_command import PlainCommand


@dataclass(frozen=True, kw_only=True)
class _ServerRow:
    """One server in the output."""

    name: str
    running: bool
    embedded: bool
    pid: int | None
    data: str | None
    """The folder of the server's files; None for a foreign server."""


class Command(PlainCommand):
    """Start, stop or show the embedded servers."""

    help = "Start, stop or show the embedded PostgreSQL and Valkey."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the action and the options."""
        parser.add_argument("verb", choices=("up", "down", "status"))
        parser.add_argument("--json", action="store_true", help="print one JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the action and show the servers; `status` exits with 1 unless every server runs."""
        if options["verb"] == "up":
            self.check()
        try:
            self._act(options["verb"])
        except (embedded.EmbeddedError, OSError) as error:
            raise CommandError(str(error)) from None
        rows = _rows()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(row) for row in rows], indent=2))
        else:
            for row in rows:
                self.stdout.write(_line(row))
        if options["verb"] == "status" and not all(row.running for row in rows):
            raise SystemExit(1)

    def _act(self, verb: str) -> None:
        if verb == "up" and (settings.EMBEDDED_POSTGRES or settings.EMBEDDED_VALKEY):
            embedded.up(
                settings.EMBEDDED,
                with_postgres=settings.EMBEDDED_POSTGRES,
                with_valkey=settings.EMBEDDED_VALKEY,
            )
        elif verb == "down":
            embedded.down(settings.EMBEDDED)


def _rows() -> list[_ServerRow]:
    rows = []
    asked = (
        (settings.EMBEDDED_POSTGRES, _postgres_answers),
        (settings.EMBEDDED_VALKEY, _redis_answers),
    )
    for found, (ours, answers) in zip(embedded.status(settings.EMBEDDED), asked, strict=True):
        rows.append(
            _ServerRow(
                name=found.name,
                running=found.running if ours else answers(),
                embedded=ours,
                pid=found.pid if ours else None,
                data=str(found.data) if ours else None,
            )
        )
    return rows


def _line(row: _ServerRow) -> str:
    state = "running" if row.running else "not running"
    if not row.embedded:
        state = f"{state}, not ours"
    where = f"process {row.pid}, files in {row.data}" if row.pid else (row.data or "")
    return f"{row.name:<11} {state:<12} {where}".rstrip()


def _postgres_answers() -> bool:
    try:
        psycopg.connect(settings.DATABASE_URL, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


def _redis_answers() -> bool:
    client = redis.Redis(**addresses.redis_kwargs(settings.REDIS_URL) | {"socket_timeout": 3})
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()
