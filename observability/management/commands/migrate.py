"""`manage.py migrate`: Django's command, run as the owner of the tables.

DATABASE_OWNER_URL names the owner. Afterwards the application role, the user of DATABASE_URL, has
the privileges of `observability.audit.grants`, and no others.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as Migrate
from django.db import DatabaseError, connection, transaction

from observability.audit.grants import can_change_audit, grant
from observability.management.owner import as_owner, is_forbidden


class Command(Migrate):
    """Migrate as the owner, then grant the application role its privileges."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if the role may not migrate, or DATABASE_URL's role does not exist."""
        application = str(connection.settings_dict["USER"])
        with as_owner():
            try:
                super().handle(*args, **options)
            except DatabaseError as error:
                if not is_forbidden(error):
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
