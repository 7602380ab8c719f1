"""The console's permissions, one for each action, and the roles that have them.

The migrations create permissions and roles from these tables. Viewing pages, reading PHI and each
action are separate permissions.
"""

from __future__ import annotations

from enum import StrEnum


class Right(StrEnum):
    """A permission of the console; the value is Django's codename."""

    VIEW = "view_console"
    READ_PHI = "read_phi"
    READ_AUDIT = "read_audit"
    UPLOAD = "upload_record"
    RETRY = "retry_work"
    CANCEL = "cancel_job"
    REQUEUE = "requeue_job"
    RESET = "reset_stale"
    RELEASE = "release_job"
    PAUSE = "pause_work"
    RESUME = "resume_work"
    REVIEW = "review_results"
    EXPORT = "export_results"
    ERASE = "erase_patient"

    @property
    def permission(self) -> str:
        """The name that Django's `has_perm` takes."""
        return f"observability.{self.value}"


RIGHT_NAMES: dict[Right, str] = {
    Right.VIEW: "See the console's pages and tables, without PHI",
    Right.READ_PHI: "Read document text, page images, prompts and replies",
    Right.READ_AUDIT: "Read who did what",
    Right.UPLOAD: "Upload records",
    Right.RETRY: "Retry what failed",
    Right.CANCEL: "Cancel jobs",
    Right.REQUEUE: "Requeue dead jobs",
    Right.RESET: "Reset stale work",
    Right.RELEASE: "Release parked jobs",
    Right.PAUSE: "Pause queues and providers",
    Right.RESUME: "Resume queues and providers",
    Right.REVIEW: "Review results",
    Right.EXPORT: "Export results",
    Right.ERASE: "Erase a patient's records",
}


class Role(StrEnum):
    """A role; the value is the name of the Django group."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    REVIEWER = "reviewer"
    ADMINISTRATOR = "administrator"


ROLES: dict[Role, frozenset[Right]] = {
    Role.VIEWER: frozenset({Right.VIEW}),
    Role.OPERATOR: frozenset(
        {
            Right.VIEW, Right.UPLOAD, Right.RETRY, Right.CANCEL, Right.REQUEUE, Right.RESET,
            Right.RELEASE, Right.PAUSE, Right.RESUME,
        }
    ),
    Role.REVIEWER: frozenset({Right.VIEW, Right.READ_PHI, Right.REVIEW, Right.EXPORT}),
    Role.ADMINISTRATOR: frozenset(Right),
}  # fmt: skip
"""The permissions of each role; a user with several roles has the permissions of all."""

USER_PERMISSIONS = ("add_user", "change_user", "view_user", "view_group")
"""Django's own permissions that an administrator needs to assign roles."""
