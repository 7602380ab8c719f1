"""The audited pruning, for the command line and for the scheduler.

A run writes an audit row in the transaction of its first deletion, and another one at its end. So
no row disappears without a row of the audit, also if the run is killed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from medproc.timing import scaled
from observability.audit import log
from observability.models import AuditEvent
from pipeline.core.errors import UserError
from pipeline.core.labels import counted
from pipeline.operations.retention.erase import Erased, erase_record
from pipeline.operations.retention.prune import Pruned, prune, stays_now
from pipeline.operations.retention.rules import RULES, RetentionRule

SCHEDULER = log.SCHEDULER
PRUNE, ERASE = "prune", "erase"
"""The audit's names for a run of the pruning, and for the erasure of a record."""
BUDGET_S = 40.0
"""Seconds of one run of the scheduler, which kills a task after 60 s. The next run continues."""
DAILY_S = 23 * 3600.0
"""Seconds after a finished run before the scheduler prunes again."""
RETENTION = "retention_ended"
"""The reason that the audit names for a record that `prune` erases."""

ALL_RULES: dict[str, RetentionRule] = {
    **RULES,
    "django_session": RetentionRule(
        table="django_session",
        key="session_key",
        age="expire_date",
        what="expired sessions of the console",
        stays="false",
        why="",
        fixed_days=0,
    ),
    # The console does not know the API, so the rules name the tables alone.
    "api_webhook_deliveries": RetentionRule(
        table="api_webhook_deliveries",
        key="id",
        age="created_at",
        what="deliveries of webhooks",
        # A waiting delivery of this age belongs to a webhook that is disabled: its last attempt
        # comes after 76 hours.
        stays="false",
        why="",
        fixed_days=30,
    ),
    "api_idempotency_keys": RetentionRule(
        table="api_idempotency_keys",
        key="id",
        age="created_at",
        what="keys of repeated requests of API clients",
        stays="false",
        why="",
        fixed_days=30,
    ),
    "sla_snapshots": RetentionRule(
        table="sla_snapshots",
        key="id",
        age="hour",
        what="hourly snapshots of the service level",
        stays="false",
        why="",
        setting="SLA_SNAPSHOT_RETENTION_DAYS",
    ),
    "bulk_operations": RetentionRule(
        table="bulk_operations",
        key="id",
        age="created_at",
        what="ended bulk operations with their items",
        stays="r.finished_at IS NULL",
        why="the operation has not ended",
    ),
}
"""The rules of all tables, in the order in which a run carries them out."""


def due_rules() -> dict[str, int]:
    """Return the tables whose rows go by themselves, with the age in days."""
    return {name: rule.days for name, rule in ALL_RULES.items() if rule.days is not None}


def prune_audited(
    actor: log.Actor,
    tables: Mapping[str, int],
    *,
    dry_run: bool = False,
    reason: str = "",
    budget_s: float | None = None,
) -> list[Pruned]:
    """Prune these tables at these ages in days; return what each rule did.

    With `budget_s`, the run ends between two transactions after so many seconds.
    """
    ends_at = None if budget_s is None else time.monotonic() + budget_s
    run = _Run(actor, tables, reason, dry_run, ends_at)
    found = list(run.results())
    run.close(found)
    return found


def prune_daily() -> str:
    """Run the periodic pruning once a day, or each hour while rows are left; return the counts."""
    if _has_just_finished():
        return ""
    found = prune_audited(SCHEDULER, due_rules(), budget_s=scaled(BUDGET_S))
    return ", ".join(f"{each.table}: {each.removed} deleted" for each in found if each.removed)


def erased(actor: log.Actor, reason: str, record_id: UUID, found: Erased) -> None:
    """Write the tombstone of a record: who, when, why and how much; no PHI."""
    log.record(
        actor,
        ERASE,
        target_kind="record",
        target_id=record_id,
        reason=reason,
        facts={**found.facts(), "exports_made": exports_made(record_id)},
    )


def exports_made(record_id: UUID) -> int:
    """Return how many exports of a record the audit knows."""
    made = AuditEvent.objects.filter(target_id=str(record_id), action=log.EXPORT)
    return made.filter(result=log.AuditResult.DONE).count()


class _Run:
    """One run over some tables."""

    def __init__(
        self,
        actor: log.Actor,
        tables: Mapping[str, int],
        reason: str,
        dry_run: bool,
        ends_at: float | None,
    ) -> None:
        self._actor, self._tables, self._reason = actor, tables, reason
        self._dry_run, self._ends_at = dry_run, ends_at
        self._has_begun = False

    def results(self) -> Iterator[Pruned]:
        """Carry out the rules, one after the other."""
        for name, days in self._tables.items():
            rule = ALL_RULES[name]
            yield prune(
                rule,
                days,
                dry_run=self._dry_run,
                announce=self._announce,
                erase=self._erase if rule.erases else None,
                is_over=self._is_over,
            )

    def close(self, found: list[Pruned]) -> None:
        """Write the audit row of the end, if anything was deleted."""
        if not self._has_begun:
            return
        removed = {each.table: each.removed for each in found if each.removed}
        kept = {each.table: each.kept for each in found if each.kept}
        is_finished = all(each.finished for each in found)
        self._record({"removed": removed, "kept": kept, "finished": is_finished})

    def _announce(self) -> None:
        if not self._has_begun:
            self._record({"older_than_days": dict(self._tables)})
            self._has_begun = True

    def _erase(self, record_id: UUID) -> bool:
        rule = RULES["shell_files"]
        try:
            erase_record(
                record_id,
                keeps=lambda: stays_now(rule, record_id),
                audit=lambda found: erased(self._actor, RETENTION, record_id, found),
            )
        except UserError:
            # A reviewer, or an operator, was faster.
            return False
        return True

    def _is_over(self) -> bool:
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def _record(self, facts: dict[str, object]) -> None:
        log.record(self._actor, PRUNE, target_kind="retention", reason=self._reason, facts=facts)


def _has_just_finished() -> bool:
    since = timezone.now() - timedelta(seconds=scaled(DAILY_S))
    runs = AuditEvent.objects.filter(actor=SCHEDULER, action=PRUNE, created_at__gte=since)
    return runs.filter(facts__finished=True).exists()


def line_of(found: Pruned, *, dry_run: bool) -> str:
    """Return the result of one rule as a line."""
    rule = ALL_RULES[found.table]
    action = "would be deleted" if dry_run else "deleted"
    said = (
        f"{found.table}: {counted(found.removed, 'row')} {action}"
        f" ({rule.what}, older than {counted(found.days, 'day')})"
    )
    if found.kept:
        said += f"; {found.kept} kept: {rule.why}"
    return said if found.finished else f"{said}; more rows are left"
