"""Deploy checks of the roles of the database: the service must not be able to change its audit.

W201 needs no database. W202 asks the database, so it runs with `check --deploy --database default`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Tags, register
from django.db import DatabaseError, connection

from observability.audit.grants import can_change_audit

_HINT = (
    "Give DATABASE_URL the role medproc_app, and set DATABASE_OWNER_URL for migrate; see"
    " docs/configuration.md, The roles of the database."
)


@register(Tags.security, deploy=True)
def check_owner(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Warn if one role both owns the tables and serves."""
    if settings.DATABASE_OWNER_URL:
        return []
    text = "DATABASE_OWNER_URL is not set, so the role of the service owns the audit."
    return [checks.Warning(text, hint=_HINT, id="medproc.W201")]


@register(Tags.database, deploy=True)
def check_rights(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Warn if the role of DATABASE_URL is a superuser, owns the audit, or may change its rows."""
    if not databases or "default" not in databases:
        return []
    try:
        if not can_change_audit(connection):
            return []
    except DatabaseError:
        # Without its tables the database has no audit yet.
        return []
    text = "The role of DATABASE_URL can change the audit."
    return [checks.Warning(text, hint=_HINT, id="medproc.W202")]
