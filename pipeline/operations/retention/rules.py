"""The rules of retention: for each table the age at which a row goes, and the rows that stay.

A rule is data. `prune` carries out every rule in the same way. docs/retention.md names the tables
that have no rule, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, kw_only=True)
class RetentionRule:
    """The retention of one table."""

    table: str
    key: str
    """The primary key."""
    age: str
    """The column with the time from which the age counts; an index begins with this column."""
    what: str
    """The rows in words."""
    stays: str
    """SQL that is true for a row `r` that stays, whatever its age."""
    why: str
    """Why such a row stays, in words; empty if no row stays."""
    setting: str | None = None
    """The setting with the age in days; None if rows go only on request."""
    fixed_days: int | None = None
    """The age in days of a rule without a setting."""
    erases: bool = False
    """Whether a row goes by the erasure of its record."""

    @property
    def days(self) -> int | None:
        """Return the age in days at which rows go; None if rows go only on request."""
        return getattr(settings, self.setting) if self.setting else self.fixed_days


_UNFINISHED = """EXISTS (SELECT FROM job_queue j
  WHERE j.status IN ('pending', 'processing', 'parked') AND j.shell_file_id = {record})"""
_RECORD_OF_CALL = """(SELECT s.shell_file_id FROM provider_calls c
  JOIN ai_processing_sessions s ON s.id = c.processing_session_id WHERE c.id = r.call_id)"""
_NOT_REVIEWED = """NOT EXISTS (SELECT FROM review_items i
  WHERE i.shell_file_id = r.id AND i.status = 'closed')"""
_LOCKED = "EXISTS (SELECT FROM locked_fields l WHERE l.shell_file_id = r.id)"
_WHY = "the record's job has not ended"

REPLIES = RetentionRule(
    table="provider_payloads",
    key="call_id",
    age="created_at",
    what="raw replies",
    # A step that resumes reads the replies to its splits again.
    stays=_UNFINISHED.format(record=_RECORD_OF_CALL),
    why=_WHY,
    setting="PAYLOAD_RETENTION_DAYS",
)
KEPT_REPLIES = RetentionRule(
    table="kept_replies",
    key="work_item_id",
    age="created_at",
    what="replies that other records can reuse",
    stays=_UNFINISHED.format(record="r.shell_file_id"),
    why=_WHY,
    setting="PAYLOAD_RETENTION_DAYS",
)
RECORDS = RetentionRule(
    table="shell_files",
    key="id",
    age="created_at",
    what="records with all their results and files",
    stays=" OR ".join([_UNFINISHED.format(record="r.id"), _NOT_REVIEWED, _LOCKED]),
    why="not reviewed, locked by a reviewer, or the job has not ended",
    erases=True,
)

RULES: dict[str, RetentionRule] = {rule.table: rule for rule in (REPLIES, KEPT_REPLIES, RECORDS)}
"""The rules of the pipeline's tables. `observability.actions.retention` adds others."""
