"""The admin of every table: read-only, without PHI, fast with millions of rows.

Each module covers one subject; `base` holds the shared parts. Only users and groups can be changed.
The actions of operators are in `operator_actions`, and the passes write their own results.
"""

from __future__ import annotations

from observability.admin import (
    accounts,
    audit,
    calls,
    clinical,
    codes,
    discovery,
    documents,
    entities,
    incidents,
    jobs,
    reuse,
    reviews,
)

__all__ = [
    "accounts", "audit", "calls", "clinical", "codes", "discovery", "documents", "entities",
    "incidents", "jobs", "reuse", "reviews",
]  # fmt: skip
