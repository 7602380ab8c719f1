"""Unique words in every place that can hold the data of a record, and the search for them.

The search covers each column of each table, with packed columns unpacked; the files of folders; and
all of Redis.
"""

# ruff: noqa: S608 - every statement is built from the constants below
from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from redis import Redis

from tests.support.databases import rewriting
from tests.support.redis_contents import everything

Places = dict[str, str]
"""The word of each place."""

_OF_RECORD = "shell_file_id = %(record)s"
_OF_SESSION = """processing_session_id IN (
  SELECT id FROM ai_processing_sessions WHERE shell_file_id = %(record)s)"""
_COLUMNS: dict[str, tuple[str, str, str]] = {
    "a facility": ("healthcare_encounters", "facility_name", _OF_RECORD),
    "the name of an entity": ("pass1_entity_detections", "name", _OF_RECORD),
    "a quote": ("pass1_entity_detections", "quote", _OF_RECORD),
    "a code": ("pass2_enriched_entities", "code_display", _OF_RECORD),
    "a sentence": ("pass3_narrative_sentences", "text", _OF_RECORD),
    "a list entry": ("record_list_items", "name", _OF_RECORD),
    "the error of a job": ("job_queue", "last_error", _OF_RECORD),
    "the error of a session": ("ai_processing_sessions", "error_message", _OF_RECORD),
    "the browser": ("ai_processing_summary", "user_agent", _OF_RECORD),
    "the message of a call": ("provider_calls", "message", _OF_SESSION),
    "a key": ("shell_files", "idempotency_key", "id = %(record)s"),
    "a sighting": (
        "pass05_pending_encounters",
        "patient_name",
        """discovery_session_id IN (
          SELECT id FROM pass05_progressive_sessions WHERE shell_file_id = %(record)s)""",
    ),
}
_JSON: dict[str, tuple[str, str, str]] = {
    "attributes": ("pass2_enriched_entities", "attributes", _OF_RECORD),
    "the output of a zone": ("pass2_zone_results", "output", _OF_SESSION),
}


def word() -> str:
    """Return a word that occurs nowhere else."""
    return f"zq{uuid4().hex}"


def plant(record_id: UUID) -> Places:
    """Put a word into the columns of a record's rows; return the words by their places."""
    places: Places = {}
    with rewriting(), connection.cursor() as cursor:
        for place, (table, column, of) in _COLUMNS.items():
            statement = f"UPDATE {table} SET {column} = %(word)s WHERE {of}"
            _set(cursor, places, place, statement, record_id)
        for place, (table, column, of) in _JSON.items():
            statement = (
                f"UPDATE {table} SET {column} = jsonb_build_object('x', %(word)s::text) WHERE {of}"
            )
            _set(cursor, places, place, statement, record_id)
        for place, table, of in (
            ("a raw reply", "provider_payloads",
             f"call_id IN (SELECT id FROM provider_calls WHERE {_OF_SESSION})"),
            ("a kept reply", "kept_replies", _OF_RECORD),
        ):  # fmt: skip
            places[place] = word()
            reply = zlib.compress(places[place].encode())
            cursor.execute(
                f"UPDATE {table} SET reply = %(reply)s WHERE {of}",
                {"reply": reply, "record": record_id},
            )
            assert cursor.rowcount > 0, place
    return places


def found_in_database(words: Iterable[str]) -> set[str]:
    """Return the words that a column of a table holds."""
    wanted, found = set(words), set()
    for table in _tables():
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor.fetchall():
                text = " ".join(_text(value) for value in row)
                found |= {each for each in wanted if each in text}
    return found


def found_in_files(words: Iterable[str], *folders: Path) -> set[str]:
    """Return the words that a file, or the name of a file, holds."""
    wanted, found = set(words), set()
    for folder in folders:
        for path in folder.rglob("*"):
            text = path.name
            if path.is_file():
                text += path.read_bytes().decode("utf-8", "replace")
            found |= {each for each in wanted if each in text}
    return found


def found_in_redis(words: Iterable[str], client: Redis) -> set[str]:
    """Return the words that a key or a value of Redis holds."""
    text = everything(client)
    return {each for each in words if each in text}


def rows_of_all_tables() -> dict[str, set[str]]:
    """Return every row of every table as text."""
    found = {}
    for table in _tables():
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            found[table] = {text for (text,) in cursor.fetchall()}
    return found


def _tables() -> Sequence[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        return [name for (name,) in cursor.fetchall()]


def _set(cursor: Any, places: Places, place: str, statement: str, record_id: UUID) -> None:
    places[place] = word()
    cursor.execute(statement, {"word": places[place], "record": record_id})
    assert cursor.rowcount > 0, place


def _text(value: Any) -> str:
    if isinstance(value, (bytes, memoryview)):
        packed = bytes(value)
        with suppress(zlib.error):
            packed = zlib.decompress(packed)
        return packed.decode("utf-8", "replace")
    return str(value)
