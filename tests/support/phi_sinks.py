"""The places that must hold no word of a record: how each is read, and how a word is put into it.

A sink whose planted word is not found would prove nothing, so each sink has both functions.
"""

# ruff: noqa: S608 - every statement is built from names of tables and columns
from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType
from urllib.request import Request, urlopen
from uuid import uuid4

from django.apps import apps
from django.contrib.admin import site
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone
from redis import Redis
from sentry_sdk.envelope import Envelope

from medproc.telemetry.otlp import Collector
from medproc.telemetry.spans import TraceSpan
from observability.admin.base import OF_THE_SENDER, ReadOnlyAdmin
from pipeline.models import MetricCount
from tests.support.databases import rewriting
from tests.support.phi_needles import Needles
from tests.support.redis_contents import everything
from tests.support.telemetry_receiver import ENVELOPE, TRACES, TelemetryReceiver
from tests.support.workers import PATIENCE_S, children, until

Contents = Mapping[str, bytes]
"""Bytes by the place that holds them."""
WITHOUT_ADMIN = frozenset({"bulk_operations", "bulk_operation_items"})
"""Tables of ours without a page in the admin; no column of theirs may hold PHI."""


@dataclass(frozen=True)
class Sink:
    """A place that must hold no word of a record."""

    read: Callable[[], Contents]
    planted: Callable[[str], AbstractContextManager[None]]
    """Puts a word into the sink for the duration of a block."""

    def hits(self, needles: Needles) -> dict[str, set[str]]:
        """Return the words that were found, by place."""
        found = {place: needles.found(content) for place, content in self.read().items()}
        return {place: words for place, words in found.items() if words}


def hidden_columns() -> set[tuple[str, str]]:
    """Return the columns that may hold PHI or belong to the sender, as the admin declares them."""
    return {
        (model._meta.db_table, str(model._meta.get_field(name).column))  # type: ignore[union-attr]  # each is a column
        for model, shown in site._registry.items()
        if isinstance(shown, ReadOnlyAdmin)
        for name in (
            *shown.phi,
            *(each.name for each in model._meta.fields if each.name in OF_THE_SENDER),
        )
    }


def undeclared_tables() -> set[str]:
    """Return our tables for whose columns the admin declares nothing."""
    ours = {"pipeline", "observability", "api"}
    declared = {m._meta.db_table for m, a in site._registry.items() if isinstance(a, ReadOnlyAdmin)}
    return {
        model._meta.db_table
        for model in apps.get_models()
        if model._meta.managed and model._meta.app_label in ours
    } - declared


def columns() -> list[tuple[str, str]]:
    """Return every column of every table of the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' ORDER BY 1, 2"
        )
        return list(cursor.fetchall())


def content(table: str, column: str) -> str:
    """Return all values of a column as text."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{column}"::text FROM "{table}"')
        return "\n".join(value or "" for (value,) in cursor.fetchall())


def of_database() -> Sink:
    """Return the columns that may not hold PHI."""

    def read() -> Contents:
        hidden = hidden_columns()
        return {
            f"{table}.{column}": content(table, column).encode()
            for table, column in columns()
            if (table, column) not in hidden
        }

    @contextmanager
    def planted(word: str) -> Iterator[None]:
        with transaction.atomic(), rewriting(), connection.cursor() as cursor:
            for table, column, value in (
                ("job_queue", "last_error", "%s"),
                ("job_queue", "error_details", "jsonb_build_object('a', %s::text)"),
                ("audit_events", "facts", "jsonb_build_object('a', %s::text)"),
                ("pass1_batch_results", "transient_error_history", "jsonb_build_array(%s::text)"),
            ):
                cursor.execute(f"UPDATE {table} SET {column} = {value}", [word])
                assert cursor.rowcount > 0, table
            cursor.execute(
                "INSERT INTO django_admin_log (action_time, object_repr, action_flag,"
                " change_message, user_id) VALUES (now(), %s, 1, %s, (SELECT min(id) FROM"
                " auth_user))",
                [word, word],
            )
            yield
            transaction.set_rollback(True)

    return Sink(read, planted)


def of_redis(client: Redis) -> Sink:
    """Return all keys and values of Redis: as RQ wrote them, unpacked, and as a dump."""

    def read() -> Contents:
        keys = list(client.scan_iter("*"))
        dumps = {f"dump of {key!r}": client.dump(key) or b"" for key in keys}
        return {
            "keys": b"\n".join(keys),
            "values": everything(client).encode("utf-8", "surrogateescape"),
            **{name: bytes(each) for name, each in dumps.items() if isinstance(each, bytes)},
        }

    @contextmanager
    def planted(word: str) -> Iterator[None]:
        client.set(f"planted-{word}", "1")
        client.hset("planted", "exc_info", word)
        yield
        client.delete(f"planted-{word}", "planted")

    return Sink(read, planted)


def with_earlier(sink: Sink, earlier: Contents) -> Sink:
    """Return a sink together with what it held at earlier moments."""
    return Sink(lambda: {**earlier, **sink.read()}, sink.planted)


def of_logs(logs: Mapping[str, tuple[Path, int]]) -> Sink:
    """Return the logs, each from a byte on."""

    def read() -> Contents:
        return {name: path.read_bytes()[start:] for name, (path, start) in logs.items()}

    @contextmanager
    def planted(word: str) -> Iterator[None]:
        for path, _ in logs.values():
            with path.open("a") as file:
                file.write(f"a line with {word}\n")
        yield

    return Sink(read, planted)


def of_folders(folders: Mapping[str, Path], *, names_only: bool = False) -> Sink:
    """Return the names, and the contents, of all files below folders."""

    def read() -> Contents:
        found: dict[str, bytes] = {}
        for name, folder in folders.items():
            for path in folder.rglob("*"):
                place = os.fsencode(path.relative_to(folder))
                is_read = path.is_file() and not names_only
                with suppress(OSError):
                    found[f"{name}: {path}"] = place + (path.read_bytes() if is_read else b"")
        return found

    @contextmanager
    def planted(word: str) -> Iterator[None]:
        made = []
        for folder in folders.values():
            (folder / f"{word}.pdf").touch()
            (folder / "planted").write_text(f"{word if not names_only else ''}")
            made += [folder / f"{word}.pdf", folder / "planted"]
        yield
        for path in made:
            path.unlink()

    return Sink(read, planted)


class ProcessList(threading.Thread):
    """Looks at the command lines, names and environments of this process's descendants."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._seen: set[bytes] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        """Look until `end`."""
        while not self._ended.wait(0.2):
            self.look()

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()
        self.join()

    def look(self) -> None:
        """Note what `ps` and a process of the same user can see at this moment."""
        waiting = [os.getpid()]
        while waiting:
            pid = waiting.pop()
            waiting += children(pid)
            for name in ("cmdline", "comm", "environ"):
                with suppress(OSError):
                    self._seen.add(Path(f"/proc/{pid}/{name}").read_bytes())

    def sink(self) -> Sink:
        """Return all that was seen."""

        @contextmanager
        def planted(word: str) -> Iterator[None]:
            with subprocess.Popen(
                ["/bin/sh", "-c", "read line", word], stdin=subprocess.PIPE, env={"PATIENT": word}
            ) as process:
                until(lambda: self._looked(word))
                process.send_signal(signal.SIGKILL)
            yield

        return Sink(lambda: {"processes": b"\n".join(self._seen)}, planted)

    def _looked(self, word: str) -> bool:
        """Look, and return whether a command line and an environment with a word were seen."""
        self.look()
        return sum(word.encode() in each for each in self._seen) == 2


def of_traces(receiver: TelemetryReceiver) -> Sink:
    """Return what a collector of traces got."""

    def send(word: str) -> None:
        now = timezone.now()
        span = TraceSpan(
            record_id=uuid4(),
            key="planted",
            name="planted",
            began_at=now,
            ended_at=now,
            attributes={"planted": word},
        )
        with override_settings(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url):
            collector = Collector()
            assert collector.send([span])
            collector.close()

    return _of_posts(receiver, TRACES, send)


def of_error_tracker(receiver: TelemetryReceiver) -> Sink:
    """Return what a tracker of errors got."""

    def send(word: str) -> None:
        # The library packs the event, without the rules of medproc.
        envelope, packed = Envelope(), io.BytesIO()
        envelope.add_event({"message": word})
        envelope.serialize_into(packed)
        asked = Request(  # noqa: S310 - the address is this machine
            f"{receiver.url}{ENVELOPE}",
            gzip.compress(packed.getvalue()),
            {"Content-Encoding": "gzip"},
        )
        urlopen(asked, timeout=PATIENCE_S).close()  # noqa: S310 - the address is this machine

    return _of_posts(receiver, ENVELOPE, send)


def _of_posts(receiver: TelemetryReceiver, path: str, send: Callable[[str], None]) -> Sink:
    def read() -> Contents:
        posts = receiver.posted_to(path)
        return {f"{number}: {path}": each.everything for number, each in enumerate(posts)}

    @contextmanager
    def planted(word: str) -> Iterator[None]:
        before = list(receiver.posted)
        send(word)
        yield
        receiver.posted[:] = before

    return Sink(read, planted)


@dataclass
class Answer:
    """An answer of the web server: what was asked, the status, and the bytes with the head."""

    asked: str
    status: int
    said: bytes


class Asker:
    """Asks a web server and keeps the answers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.answers: list[Answer] = []

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> Answer:  # fmt: skip
        """Send a request, and keep the answer."""
        client = HTTPConnection("127.0.0.1", self._port, timeout=60)
        client.request(method, path, body or None, dict(headers))
        answer = client.getresponse()
        said = str(answer.headers).encode() + answer.read()
        client.close()
        self.answers.append(Answer(f"{method} {path}", answer.status, said))
        return self.answers[-1]

    def errors(self, log_in: Mapping[str, str]) -> Sink:
        """Return the answers that report an error. `log_in` opens a page that echoes a word."""

        def read() -> Contents:
            return {
                f"{number}: {each.status} {each.asked}": each.said
                for number, each in enumerate(self.answers)
                if each.status >= 400
            }

        @contextmanager
        def planted(word: str) -> Iterator[None]:
            # No page about an error repeats a word, so the page of the search plays such a page.
            page = self.ask("GET", f"/admin/search/?q={word}", log_in)
            page.status = 400
            yield
            self.answers.remove(page)

        return Sink(read, planted)

    def metrics(self, token: str) -> Sink:
        """Return the exposition of `/metrics`."""

        def read() -> Contents:
            answer = self.ask("GET", "/metrics", {"Authorization": f"Bearer {token}"})
            assert answer.status == 200
            return {"/metrics": answer.said}

        @contextmanager
        def planted(word: str) -> Iterator[None]:
            labels = {"provider": "gemini", "model": word}
            MetricCount.objects.create(name="accepted_calls", labels=labels, value=1)
            yield
            with rewriting():
                # The scheduler may have folded the row into another row meanwhile.
                MetricCount.objects.filter(labels=labels).delete()

        return Sink(read, planted)
