"""The console's own tables: audit, bulk operations, hourly snapshots, and permissions.

An audit row is written once; the database refuses to change, delete or truncate it.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from observability.permissions import RIGHT_NAMES
from pipeline.core.states import Step
from pipeline.models import fields
from pipeline.models.sla import PRIORITIES


class Console(models.Model):
    """A model without a table; the console's permissions belong to its content type."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = [(right.value, name) for right, name in RIGHT_NAMES.items()]

    def __str__(self) -> str:
        return "console"


class FederatedIdentity(models.Model):
    """A person at the identity provider, by issuer and subject, and their user here."""

    id = fields.uuid_pk()
    created_at = fields.created_at()
    issuer = models.TextField()
    subject = models.TextField()
    """The claim `sub`: stable, and never given to another person of the issuer."""
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="federated_identity"
    )

    class Meta:
        db_table = "federated_identities"
        db_table_comment = (
            "Users who log in through the identity provider: issuer and subject. No PHI."
        )
        default_permissions = ()
        verbose_name = "federated identity"
        verbose_name_plural = "federated identities"
        constraints = [
            models.UniqueConstraint(
                fields=["issuer", "subject"], name="federated_identities_one_user"
            ),
        ]

    def __str__(self) -> str:
        return f"identity of {self.user}"


class AuditEvent(models.Model):
    """One action or one reading of PHI: who, when, what, why, and with which result."""

    id = fields.uuid_pk()
    created_at = models.DateTimeField(db_default=fields.ClockTimestamp(), editable=False)
    actor = models.TextField()
    """The user's name at the time of the event; `command line: root@host` for a command."""
    actor_id = models.BigIntegerField(null=True, blank=True)
    """Not a foreign key, because the row outlives the user."""
    action = models.TextField()
    target_kind = models.TextField()
    """record, job, encounter, batch, call, queue, provider, …"""
    target_id = models.TextField(blank=True, default="", db_default="")
    reason = models.TextField(blank=True, default="", db_default="")
    """The reason as typed."""
    result = models.TextField(
        choices=[(each, each) for each in ("done", "refused", "failed")],
        default="done",
        db_default="done",
    )
    facts = models.JSONField(default=dict, db_default={})
    """Counts, codes and ids; no PHI."""

    class Meta:
        db_table = "audit_events"
        db_table_comment = (
            "Every operator action and every reading of PHI. Append-only: triggers refuse UPDATE, "
            "DELETE and TRUNCATE. reason is free text."
        )
        default_permissions = ()
        verbose_name = "audit event"
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="idx_audit_events_recent"),
            models.Index(fields=["target_id", "-created_at"], name="idx_audit_events_target"),
            models.Index(fields=["actor", "-created_at"], name="idx_audit_events_actor"),
        ]
        constraints = [
            models.CheckConstraint(
                name="audit_events_result_check",
                condition=models.Q(result__in=["done", "refused", "failed"]),
            ),
            models.CheckConstraint(
                name="audit_events_words_check",
                condition=~models.Q(actor="") & ~models.Q(action="") & ~models.Q(target_kind=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"


class AuditLink(models.Model):
    """An audit event's place in the hash chain; a trigger inserts the link at commit."""

    seq = models.BigIntegerField(primary_key=True)
    event_id = models.UUIDField(unique=True)
    """Not a foreign key, because a link must outlive a removed event."""
    hash = models.TextField()
    """sha256 over the previous link and the event, in hexadecimal digits."""

    class Meta:
        db_table = "audit_chain"
        db_table_comment = (
            "Each audit event's link: sha256 over the previous link and the event. Inserted by a "
            "trigger at commit; UPDATE, DELETE and TRUNCATE are refused."
        )
        default_permissions = ()
        verbose_name = "link of the audit"
        verbose_name_plural = "links of the audit"

    def __str__(self) -> str:
        return f"link {self.seq}"


class AuditCheck(models.Model):
    """The only row: how far the audit has been verified, and the alarm if it was changed."""

    ONLY = 1

    id = models.SmallIntegerField(primary_key=True, default=ONLY, db_default=ONLY)
    checked_at = fields.optional_time()
    fresh_seq = models.BigIntegerField(default=0, db_default=0)
    """The last link that was verified after its insertion."""
    fresh_hash = models.TextField(blank=True, default="", db_default="")
    full_seq = models.BigIntegerField(default=0, db_default=0)
    """The last link that the present daily verification has reached."""
    full_hash = models.TextField(blank=True, default="", db_default="")
    full_started_at = fields.optional_time()
    full_finished_at = fields.optional_time()
    problem = models.TextField(blank=True, default="", db_default="")
    """The first row that does not fit; empty without an alarm."""
    broken_at = fields.optional_time()

    class Meta:
        db_table = "audit_checks"
        db_table_comment = "How far the audit has been verified, and the alarm. One row. No PHI."
        default_permissions = ()
        verbose_name = "verification of the audit"
        verbose_name_plural = "verifications of the audit"
        constraints = [
            models.CheckConstraint(name="audit_checks_one_row", condition=models.Q(id=1)),
        ]

    def __str__(self) -> str:
        return f"verified up to link {self.fresh_seq}"


class BulkOperation(models.Model):
    """A bulk operation: its frozen filter, its preview, its user and its reason."""

    id = fields.uuid_pk()
    created_at = fields.created_at()
    token = models.UUIDField(unique=True, editable=False)
    """Token of the form that started the operation; a double click finds the same operation."""
    action = models.TextField()
    selection = models.JSONField()
    """The filter with the time limit that the preview used."""
    expected = models.JSONField(default=dict, db_default={})
    """The preview's figures: jobs, ineligible by reason, calls, tokens, cost, quota minutes."""
    reason = models.TextField()
    requested_by = models.TextField()
    started_at = fields.optional_time()
    finished_at = fields.optional_time()
    abort_requested_at = fields.optional_time()
    abort_requested_by = fields.text(null=True)

    class Meta:
        db_table = "bulk_operations"
        db_table_comment = "Bulk operations: frozen filter, preview, reason, who, when. No PHI."
        default_permissions = ()
        verbose_name = "bulk operation"
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="idx_bulk_operations_recent"),
            models.Index(
                fields=["created_at"],
                name="idx_bulk_operations_open",
                condition=models.Q(finished_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"

    @property
    def word(self) -> str:
        """The state as one of the console's status words."""
        if self.finished_at is not None:
            return "cancelled" if self.abort_requested_at else "done"
        return "running" if self.started_at else "waiting"


class BulkItem(models.Model):
    """One job of a bulk operation, and its result."""

    WAITING, DONE, SKIPPED, FAILED = STATES = ("waiting", "done", "skipped", "failed")

    id = fields.uuid_pk()
    operation = models.ForeignKey(
        BulkOperation, on_delete=models.CASCADE, related_name="items", db_index=False
    )
    position = models.IntegerField()
    job_id = models.UUIDField()
    shell_file_id = models.UUIDField()
    """Not foreign keys, because the history outlives erased records."""
    step = models.TextField(choices=Step.choices)
    scope = models.JSONField()
    """Ids of the selected encounters and work items; null if all are selected."""
    state = models.TextField(
        choices=[(each, each) for each in STATES],
        default=WAITING,
        db_default=WAITING,
    )
    message = models.TextField(blank=True, default="", db_default="")
    """Why the job was skipped, or the type of the error; no PHI."""
    tries = models.SmallIntegerField(default=0, db_default=0)
    """Ticks in which the database prevented this item."""
    settled_at = fields.optional_time()
    created_at = fields.created_at()

    class Meta:
        db_table = "bulk_operation_items"
        db_table_comment = "Jobs of a bulk operation with the result of each. No PHI."
        default_permissions = ()
        verbose_name = "item of a bulk operation"
        verbose_name_plural = "items of bulk operations"
        constraints = [
            models.UniqueConstraint(
                fields=["operation", "position"], name="idx_bulk_items_position"
            ),
            models.UniqueConstraint(fields=["operation", "job_id"], name="idx_bulk_items_once"),
            models.CheckConstraint(
                name="bulk_items_state_check",
                condition=models.Q(state__in=["waiting", "done", "skipped", "failed"]),
            ),
        ]
        indexes = [
            models.Index(
                fields=["operation", "position"],
                name="idx_bulk_items_waiting",
                condition=models.Q(state="waiting"),
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.position} of {self.operation_id}"


class SlaSnapshot(models.Model):
    """The service level of one hour and one class of priority. Written once, never changed."""

    id = fields.uuid_pk()
    hour = models.DateTimeField()
    """The start of the hour, in UTC."""
    priority = models.TextField(choices=[(each, each) for each in PRIORITIES])
    target_s = models.FloatField()
    """The target when the row was written."""
    finished = fields.count()
    """Records that completed, failed or died within the hour; none cancelled."""
    met = fields.count()
    missed = fields.count()
    median_s = models.FloatField(null=True, blank=True)
    """Seconds from submission to end of completed records; NULL without any."""
    p95_s = models.FloatField(null=True, blank=True)
    backlog = fields.count()
    """Records that had not ended at the end of the hour."""
    late = fields.count()
    """Records of the backlog that were past the target."""
    backlog_ends_at = fields.optional_time()
    """The forecast for all priorities; NULL if none was possible, or if the hour was missed."""
    created_at = fields.created_at()

    class Meta:
        db_table = "sla_snapshots"
        db_table_comment = (
            "The service level by hour and priority: counts, seconds and a forecast. No PHI."
        )
        default_permissions = ()
        verbose_name = "hour of the service level"
        verbose_name_plural = "hours of the service level"
        constraints = [
            # Two schedulers, or a repeated hour, write one row. Also for trends and for `prune`.
            models.UniqueConstraint(fields=["hour", "priority"], name="idx_sla_snapshots_once"),
            models.CheckConstraint(
                name="sla_snapshots_priority_check",
                condition=models.Q(priority__in=list(PRIORITIES)),
            ),
            models.CheckConstraint(
                name="sla_snapshots_counts_check",
                condition=models.Q(
                    finished=models.F("met") + models.F("missed"),
                    met__gte=0,
                    missed__gte=0,
                    late__gte=0,
                    backlog__gte=models.F("late"),
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.priority} at {self.hour:%Y-%m-%d %H:%M} UTC"
