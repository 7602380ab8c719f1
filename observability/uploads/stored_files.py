"""The audited sweep of stored files, as a periodic task and for the command line.

The audit row is committed before the first deletion, so no file disappears without a row.
"""

from __future__ import annotations

from medproc.timing import scaled
from observability.audit import log
from pipeline.core.labels import counted
from pipeline.models import FileSweep
from pipeline.operations import stored_files
from pipeline.operations.stored_files import Survey

SCHEDULER = log.SCHEDULER


def sweep() -> str:
    """Run the periodic sweep; return the deletions in words."""
    _, row = sweep_audited(SCHEDULER, scaled(stored_files.SAFE_AGE_S))
    if row.held:
        return f"deleted no stored file: {row.held}"
    gone = counted(row.deleted_files, "stored file")
    return f"deleted {gone} without a record" if row.deleted_files else ""


def sweep_audited(
    actor: log.Actor, older_s: float, *, after_restore: bool = False, reason: str = ""
) -> tuple[Survey, FileSweep]:
    """Sweep, with an audit row before the first deletion and another one for undeleted files."""

    def announce(found: Survey) -> None:
        log.record(
            actor,
            "sweep_files",
            target_kind="stored files",
            reason=reason,
            facts={
                "older_s": older_s,
                "files": len(found.orphans),
                "bytes": sum(file.size_bytes for file in found.orphans),
                "after_restore": after_restore,
            },
        )

    found, row = stored_files.sweep(older_s, after_restore=after_restore, announce=announce)
    left = row.orphaned_files - row.deleted_files
    if left and not row.held:
        log.record(
            actor,
            "sweep_files",
            target_kind="stored files",
            result=log.AuditResult.FAILED,
            facts={"files_left": left, "sweep": str(row.id)},
        )
    return found, row
