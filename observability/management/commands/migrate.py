"""`manage.py migrate`: Django's command, run as the owner of the tables.

DATABASE_OWNER_URL names the owner. Afterwards the application role, the user of DATABASE_URL, has
the privileges of `observability.audit.grants`, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as Migrate
from django.db import DatabaseError, connection, transaction

from medproc.addresses import database_settings
from observability.audit.grants import can_change_audit, grant

INSUFFICIENT_PRIVILEGE = "42501"
"""The SQLSTATE of a statement that a role must not run."""
_OF_THE_ROLE = ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
"""The settings that the owner's URL replaces. The name of the database stays."""


class Command(Migrate):
    """Migrate as the owner, then grant the application role its privileges."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if the role may not migrate, or DATABASE_URL's role does not exist."""
        application = str(connection.settings_dict["USER"])
        with _as_owner():
            try:
                super().handle(*args, **options)
            except DatabaseError as error:
                if not _is_forbidden(error):
                    raise
                raise CommandError(
                    "This role must not change the tables; set DATABASE_OWNER_URL to their owner"
                    " (docs/configuration.md, The roles of the database)."
                ) from None
            if options.get("plan") or options.get("check_unapplied"):
                return
            self._grant(application)

    def _grant(self, application: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_user, to_regclass('public.audit_chain') IS NOT NULL")
            user, is_migrated = cursor.fetchone()
        if not is_migrated:
            return
        if user != application:
            with transaction.atomic():
                is_known = grant(connection, application)
            if not is_known:
                raise CommandError(
                    "The role of DATABASE_URL does not exist. Create the role, then run migrate"
                    " again (docs/configuration.md, The roles of the database)."
                )
        if can_change_audit(connection, application):
            self.stderr.write(
                "The role of DATABASE_URL can change the audit. Give DATABASE_URL a role that owns"
                " no table, and set DATABASE_OWNER_URL for migrate (docs/configuration.md, The"
                " roles of the database)."
            )


def _is_forbidden(error: BaseException | None) -> bool:
    """Return whether the cause of an error is a missing privilege; Django wraps some errors."""
    while error is not None:
        if getattr(error, "sqlstate", "") == INSUFFICIENT_PRIVILEGE:
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _as_owner() -> Iterator[None]:
    """Let the default connection log in as the owner."""
    if not settings.DATABASE_OWNER_URL:
        yield
        return
    owner = database_settings(settings.DATABASE_OWNER_URL)
    before = {name: connection.settings_dict[name] for name in _OF_THE_ROLE}
    connection.close()
    connection.settings_dict.update({name: owner[name] for name in _OF_THE_ROLE})
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)
