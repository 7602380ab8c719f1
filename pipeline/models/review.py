"""The review of a record by people: the queue, the decisions, and the fields that they lock.

`review_decisions` is append-only. Triggers of the database keep what a person decided; see
docs/review.md. Only `transitions` changes a review item.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from pipeline.models import fields
from pipeline.models.documents import ShellFile
from pipeline.models.encounters import Encounter


class ReviewStatus(models.TextChoices):
    """The state of a review."""

    OPEN = "open"
    """The record waits for a reviewer, or a reviewer holds it (`claimed_until`)."""
    CLOSED = "closed"


class ReviewReason(models.TextChoices):
    """Why a record is reviewed, the gravest reason first."""

    MISMATCH = "mismatch"
    """Pages name another patient; they are held back (PATIENT_MISMATCH)."""
    FAILED = "failed"
    """The job failed, died or was cancelled: the record is incomplete."""
    FLAGGED = "flagged"
    """The record has a warning or a flagged result."""
    COMPLETED = "completed"
    """Each record is reviewed once."""


class ReviewLane(models.TextChoices):
    """The part of the queue in which an item waits; the order within a lane never changes."""

    URGENT = "urgent"
    NORMAL = "normal"
    LOW = "low"
    OVERDUE = "overdue"
    """The target of the SLA has passed, so the SLA adds its whole weight."""


class ReviewRound(models.IntegerChoices):
    """How often the record is reviewed."""

    FIRST = 1
    SECOND = 2
    """A second person decides about the same entities and does not change the first decisions."""
    SETTLING = 3
    """The two persons disagree; one person settles each disputed entity."""


class DecisionAction(models.TextChoices):
    """What a reviewer did."""

    ACCEPT = "accept"
    CORRECT = "correct"
    REJECT = "reject"
    ADD = "add"
    MOVE = "move"
    REOPEN = "reopen"


class ReviewItem(models.Model):
    """The review of one upload: its place in the queue, its claim, and its progress."""

    id = fields.uuid_pk()
    shell_file = models.OneToOneField(
        ShellFile, on_delete=models.CASCADE, related_name="review_item"
    )
    reason = models.TextField(choices=ReviewReason.choices)
    status = fields.status(ReviewStatus, ReviewStatus.OPEN)
    created_at = fields.created_at()
    opened_at = models.DateTimeField(db_default=models.functions.Now(), editable=False)
    """The start of the SLA: the end of the record's job, or the last reopening."""
    due_at = models.DateTimeField(db_default=models.functions.Now(), editable=False)
    """The end of the SLA: `opened_at` and the target of the record's priority."""
    sla = models.TextField(
        choices=[(each, each) for each in ("urgent", "normal", "low")],
        default="normal",
        db_default="normal",
    )
    confidence = models.FloatField(null=True, blank=True)
    """Confidence of the record (0–1); None without an accepted entity."""
    complexity = models.FloatField(default=0.0, db_default=0.0)
    """0–1, from `figures`."""
    value = models.FloatField(default=0.0, db_default=0.0)
    """0–1, from `figures`."""
    figures = models.JSONField(default=dict, db_default={})
    """The counts behind the parts: pages, encounters, entities, flagged, flagged_risks, held,
    reused."""
    weighed_by = fields.text(default="", db_default="")
    """The settings with which the place was computed; a task weighs items of other settings again.
    """
    base = models.FloatField(default=0.0, db_default=0.0)
    """The priority without the part of the SLA."""
    lane = models.TextField(
        choices=ReviewLane.choices, default=ReviewLane.NORMAL, db_default=ReviewLane.NORMAL
    )
    order_key = models.FloatField(default=0.0, db_default=0.0)
    """Higher first within the lane; does not change with time (docs/review.md)."""
    round = models.SmallIntegerField(
        choices=ReviewRound.choices, default=ReviewRound.FIRST, db_default=ReviewRound.FIRST
    )
    round_at = models.DateTimeField(db_default=models.functions.Now(), editable=False)
    """The start of the round; opinions of an earlier review are older."""
    is_double = fields.flag()
    """Two different people review the record (REVIEW_DOUBLE_PERCENT)."""
    claimed_by = fields.text(null=True)
    """`user:<id>` of the reviewer who holds the item, or who held it last."""
    claimed_until = fields.optional_time()
    """The claim ends at this time unless the reviewer renews it by working."""
    first_reviewer = fields.text(null=True)
    """Who closed the first round; another person does the second round."""
    skipped_by = ArrayField(models.TextField(), default=list, db_default=[])
    """Reviewers who are not offered the item again."""
    closed_by = fields.text(null=True)
    closed_at = fields.optional_time()

    class Meta:
        verbose_name = "review item"
        verbose_name_plural = "review items"
        db_table = "review_items"
        db_table_comment = "One review for each upload: reason, priority, claim. No PHI."
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="idx_review_items_newest"),
            # Read by the queue: the best open item of each lane.
            models.Index(
                F("lane"),
                F("order_key").desc(),
                F("id"),
                name="idx_review_items_queue",
                condition=Q(status=ReviewStatus.OPEN),
            ),
            # Read by the task that moves items into the lane `overdue`.
            models.Index(
                fields=["due_at"],
                name="idx_review_items_due",
                condition=Q(status=ReviewStatus.OPEN) & ~Q(lane=ReviewLane.OVERDUE),
            ),
            # Read by the task that weighs items again after a change of the settings.
            models.Index(
                fields=["weighed_by", "id"],
                name="idx_review_items_weighed",
                condition=Q(status=ReviewStatus.OPEN),
            ),
        ]
        constraints = [
            fields.one_of("review_items_status_check", "status", ReviewStatus),
            fields.one_of("review_items_reason_check", "reason", ReviewReason),
            fields.one_of("review_items_lane_check", "lane", ReviewLane),
            models.CheckConstraint(
                name="review_items_round_check", condition=Q(round__in=ReviewRound.values)
            ),
            models.CheckConstraint(
                name="review_items_parts_check",
                condition=Q(complexity__gte=0, complexity__lte=1, value__gte=0, value__lte=1)
                & (Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1)),
            ),
            models.CheckConstraint(
                name="review_items_claim_check",
                condition=Q(claimed_until__isnull=True) | Q(claimed_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"review of {self.shell_file_id}"


class ReviewDecision(models.Model):
    """One change by a person: who, when, which entity, which field, old and new value. PHI."""

    id = fields.uuid_pk()
    created_at = models.DateTimeField(db_default=fields.ClockTimestamp(), editable=False)
    transaction_no = models.BigIntegerField(default=0, db_default=0, editable=False)
    """The transaction that wrote the row, set by a trigger: only this transaction may carry out the
    decision."""
    token = models.UUIDField(editable=False)
    """Token of the request; a double submission finds the same decision."""
    part = models.IntegerField(default=0, db_default=0)
    """0-based within the request: one part for each changed field."""
    review_item = models.ForeignKey(
        ReviewItem, on_delete=models.CASCADE, related_name="decisions", db_index=False
    )
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="review_decisions", db_index=False
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    """The encounter in which the entity was found."""
    entity_id = models.UUIDField(null=True, blank=True)
    """Not a foreign key, because a decision is never changed."""
    action = models.TextField(choices=DecisionAction.choices)
    category = fields.text(null=True)
    page_number = models.IntegerField(null=True, blank=True)
    char_start = models.IntegerField(null=True, blank=True)
    char_end = models.IntegerField(null=True, blank=True)
    field = fields.text()
    """Column of the entity, `attributes.<name>`, `code`, or `opinion…` in the second round."""
    old_value = models.JSONField(null=True, blank=True)
    new_value = models.JSONField(null=True, blank=True)
    reason = fields.text(default="", db_default="")
    decided_by = fields.text()
    """`user:<id>`."""
    round = models.SmallIntegerField(choices=ReviewRound.choices)
    engine = fields.text(default="", db_default="")
    """The engine that found the entity, its rule, and the version of its prompt."""
    rule = fields.text(default="", db_default="")
    prompt_version = fields.text(default="", db_default="")

    class Meta:
        verbose_name = "review decision"
        verbose_name_plural = "review decisions"
        db_table = "review_decisions"
        db_table_comment = (
            "Decisions of reviewers with old and new values. Append-only: triggers refuse UPDATE, "
            "DELETE and TRUNCATE. PHI."
        )
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="idx_review_decisions_newest"),
            models.Index(fields=["entity_id", "field"], name="idx_review_decisions_entity"),
            models.Index(fields=["shell_file"], name="idx_review_decisions_shell"),
            models.Index(fields=["review_item"], name="idx_review_decisions_item"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["token", "part"], name="idx_review_decisions_once"),
            fields.one_of("review_decisions_action_check", "action", DecisionAction),
            models.CheckConstraint(
                name="review_decisions_words_check",
                condition=~Q(field="") & ~Q(decided_by=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} of {self.field}"


class LockedField(models.Model):
    """A field of an entity that a person decided; a trigger writes the row. No PHI.

    The value is `new_value` of the decision, so no copy can differ from it.
    """

    id = models.BigAutoField(primary_key=True)
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="locked_fields", db_index=False
    )
    healthcare_encounter = models.ForeignKey(
        Encounter, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    """The encounter in which the entity was found, also after a move."""
    category = fields.text()
    page_number = models.IntegerField()
    char_start = models.IntegerField(null=True, blank=True)
    char_end = models.IntegerField(null=True, blank=True)
    field = fields.text()
    entity_id = models.UUIDField()
    decision = models.ForeignKey(
        ReviewDecision, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    unmatched_at = fields.optional_time()
    """When a later extraction removed the entity and has not found it again; else empty."""

    class Meta:
        verbose_name = "locked field"
        verbose_name_plural = "locked fields"
        db_table = "locked_fields"
        db_table_comment = (
            "Fields that a person decided. Written by a trigger of review_decisions alone. No PHI."
        )
        indexes = [
            models.Index(
                fields=[
                    "healthcare_encounter", "category", "page_number", "char_start", "char_end",
                ],
                name="idx_locked_fields_place",
            ),
            models.Index(fields=["shell_file"], name="idx_locked_fields_shell"),
            models.Index(fields=["decision"], name="idx_locked_fields_decision"),
        ]  # fmt: skip
        constraints = [
            models.UniqueConstraint(fields=["entity_id", "field"], name="idx_locked_fields_once"),
        ]

    def __str__(self) -> str:
        return f"{self.field} of entity {self.entity_id}"
