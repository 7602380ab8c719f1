"""The admin of every table: read-only, without PHI, fast at millions of rows.

Modules by subject; `base` holds what they share. Nothing here changes a row: the operator's actions
are services, and the passes write their own results. Users and groups alone are changed here.
"""

from __future__ import annotations

from observability.admin import (
    accounts,
    audit,
    calls,
    clinical,
    discovery,
    documents,
    entities,
    incidents,
    jobs,
)

__all__ = [
    "accounts", "audit", "calls", "clinical", "discovery", "documents", "entities", "incidents",
    "jobs",
]  # fmt: skip
