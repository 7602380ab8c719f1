"""The targets of the service level: seconds from the submission of a record to its end."""

from __future__ import annotations

from django.conf import settings

from medproc.timing import scaled

PRIORITIES = ("urgent", "normal", "low")
"""The classes of priority, by the sign of `job_queue.priority`."""


def targets_s() -> dict[str, float]:
    """Return the target of each class in seconds of this process's clock."""
    return {name: scaled(getattr(settings, f"SLA_{name.upper()}_S")) for name in PRIORITIES}


def class_sql(priority: str) -> str:
    """Return the SQL of the class of a priority."""
    return (
        f"CASE WHEN {priority} > 0 THEN 'urgent' WHEN {priority} < 0 THEN 'low' ELSE 'normal' END"
    )


def target_sql(class_name: str) -> str:
    """Return the SQL of the target of a class; the parameters are those of `targets_s`."""
    return (
        f"CASE {class_name} WHEN 'urgent' THEN %(urgent)s WHEN 'low' THEN %(low)s"
        " ELSE %(normal)s END::float8"
    )
