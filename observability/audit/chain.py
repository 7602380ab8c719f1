"""The hash chain of the audit: each row's hash includes the previous hash, in commit order.

A database trigger inserts the links; this module verifies them. A row that was changed, removed or
inserted without the triggers breaks the chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
ORDER BY c.seq
"""
_LOOSE = """
SELECT e.id FROM audit_events e
WHERE NOT EXISTS (SELECT FROM audit_chain c WHERE c.event_id = e.id)
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


def say_head() -> str:
    """Return the newest link as a text for the log, out of reach of database users.

    The scheduler runs this as a periodic task (`settings.PERIODIC_TASKS`).
    """
    found = head()
    return f"head of the audit {found}" if found else ""


def verify(known: ChainHead | None = None) -> ChainHead | None:
    """Verify the whole chain, including a head known from a log; return the newest link.

    Raises BrokenChainError.
    """
    last: ChainHead | None = None
    for seq, event_id, stored, is_gone, text in _links():
        before, expected = (last.hash, last.seq + 1) if last else ("", 1)
        if seq != expected:
            raise BrokenChainError(f"link {expected} is missing from audit_chain")
        if is_gone:
            raise BrokenChainError(f"event {event_id} (link {seq}) is missing from audit_events")
        if sha256(f"{before} {seq} {text}".encode()).hexdigest() != stored:
            raise BrokenChainError(f"event {event_id} (link {seq}) was changed")
        last = ChainHead(seq, stored)
        if known is not None and known.seq == seq and known.hash != stored:
            raise BrokenChainError(f"link {seq} differs from the head that was logged")
    if known is not None and known.seq > (last.seq if last else 0):
        raise BrokenChainError(f"link {known.seq}, which was logged as a head, is missing")
    with connection.cursor() as cursor:
        cursor.execute(_LOOSE)
        if loose := cursor.fetchone():
            raise BrokenChainError(f"event {loose[0]} is not in the chain")
    return last


def _links() -> Iterator[tuple[int, UUID, str, bool, Any]]:
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(_LINKS)
        while links := cursor.fetchmany(READ):
            yield from links
