"""The hash chain of the audit: each row's hash includes the previous hash, in commit order.

A database trigger inserts the links; this module verifies them. A row that was changed, removed or
inserted without the triggers breaks the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from observability.models import AuditLink

READ = 2_000
"""Number of links that are kept in memory at once."""

# Repeats the trigger's SQL instead of calling a shared function: a person who can change a row
# could change that function too.
_LINKS = """
SELECT c.seq, c.event_id, c.hash, e.id IS NULL, jsonb_build_object(
    'id', e.id,
    'created_at', to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'),
    'actor', e.actor, 'actor_id', e.actor_id, 'action', e.action, 'target_kind', e.target_kind,
    'target_id', e.target_id, 'reason', e.reason, 'result', e.result, 'facts', e.facts)::text
FROM audit_chain c LEFT JOIN audit_events e ON e.id = c.event_id
WHERE c.seq > %(after)s ORDER BY c.seq LIMIT %(limit)s
"""
_LOOSE = """
SELECT e.id FROM audit_events e
WHERE (%(since)s::timestamptz IS NULL OR e.created_at >= %(since)s)
  AND NOT EXISTS (SELECT FROM audit_chain c WHERE c.event_id = e.id)
ORDER BY e.created_at, e.id LIMIT 1
"""


@dataclass(frozen=True)
class ChainHead:
    """A link of the chain: its number and its hash."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


class BrokenChainError(Exception):
    """Describes the first row that does not fit the chain."""


def head() -> ChainHead | None:
    """Return the newest link; None if the chain is empty."""
    last = AuditLink.objects.order_by("-seq").first()
    return None if last is None else ChainHead(last.seq, last.hash)


def verify(known: Iterable[ChainHead] = ()) -> ChainHead | None:
    """Verify the whole chain, including heads known from files; return the newest link.

    Raises BrokenChainError.
    """
    last = walk()
    check_heads(known)
    check_loose()
    return last


def walk(after: ChainHead | None = None, limit: int | None = None) -> ChainHead | None:
    """Verify at most `limit` links after a verified link; return the last link that was reached.

    Raises BrokenChainError.
    """
    last = after
    for seq, event_id, stored, is_gone, text in _links(after.seq if after else 0, limit):
        before, expected = (last.hash, last.seq + 1) if last else ("", 1)
        if seq != expected:
            raise BrokenChainError(f"link {expected} is missing from audit_chain")
        if is_gone:
            raise BrokenChainError(f"event {event_id} (link {seq}) is missing from audit_events")
        if sha256(f"{before} {seq} {text}".encode()).hexdigest() != stored:
            raise BrokenChainError(f"event {event_id} (link {seq}) was changed")
        last = ChainHead(seq, stored)
    return last


def check_heads(known: Iterable[ChainHead]) -> None:
    """Compare heads with the chain. Raises BrokenChainError for a missing or different link."""
    wanted = sorted(set(known), key=lambda each: each.seq)
    found = dict(
        AuditLink.objects.filter(seq__in={each.seq for each in wanted}).values_list("seq", "hash")
    )
    for each in wanted:
        if each.seq not in found:
            raise BrokenChainError(f"link {each.seq}, which was logged as a head, is missing")
        if found[each.seq] != each.hash:
            raise BrokenChainError(f"link {each.seq} differs from the head that was logged")


def check_loose(since: datetime | None = None) -> None:
    """Look for events without a link, of all times or since a time. Raises BrokenChainError."""
    with connection.cursor() as cursor:
        cursor.execute(_LOOSE, {"since": since})
        if loose := cursor.fetchone():
            raise BrokenChainError(f"event {loose[0]} is not in the chain")


def _links(after: int, limit: int | None) -> Iterator[tuple[int, UUID, str, bool, Any]]:
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(_LINKS, {"after": after, "limit": limit})
        while links := cursor.fetchmany(READ):
            yield from links
