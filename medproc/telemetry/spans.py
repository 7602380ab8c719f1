"""A span of a trace, and its ids: each process derives the same ids, so no process asks another.

The trace id is the record's id, without its dashes. Records have random ids (UUID version 4), whose
last seven bytes are random, as the second level of W3C Trace Context wants. A span id is a part of
a digest of what the span is about, so a child can name a parent that another process sends later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from uuid import UUID

ROOT = "record"
"""The key of the span of the whole record, which has no parent."""
_RANDOM_BITS = 56


@dataclass(frozen=True, kw_only=True)
class TraceSpan:
    """Something that took time for a record. All texts are ours, and none is PHI."""

    record_id: UUID
    key: str
    """What the span is about, unique in the trace: the span id is derived from it."""
    parent: str = ROOT
    """The key of the parent; the span with the key ROOT has none."""
    name: str
    began_at: datetime
    ended_at: datetime
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    has_failed: bool = False

    @property
    def trace_id(self) -> int:
        """The id of the trace."""
        return self.record_id.int

    @property
    def span_id(self) -> int:
        """The id of the span."""
        return span_id_of(self.record_id, self.key)

    @property
    def parent_id(self) -> int | None:
        """The id of the parent; None for the span of the record."""
        return None if self.key == ROOT else span_id_of(self.record_id, self.parent)


def span_id_of(record_id: UUID, key: str) -> int:
    """Return the id of a span: eight bytes that are not all zero, as W3C Trace Context wants."""
    digest = sha256(record_id.bytes + key.encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1


def is_sampled(record_id: UUID, share: float) -> bool:
    """Return whether the spans of a record are sent, so that `share` of all records are.

    Compares the random bits of the trace id, as OpenTelemetry's consistent sampling does. The
    sampler of its SDK compares 64 bits. The first two of these are the same in every UUID.
    """
    return record_id.int % (1 << _RANDOM_BITS) >= round((1 - share) * (1 << _RANDOM_BITS))
