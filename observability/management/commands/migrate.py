"""`manage.py migrate`: Django's command, run as the owner of the tables, beside running workers.

DATABASE_OWNER_URL names the owner. Afterwards the application role, the user of DATABASE_URL, has
the privileges of `observability.audit.grants`, and no others.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as Migrate
from django.db import DatabaseError, connection, transaction
from psycopg.errors import LockNotAvailable
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from medproc.timing import scaled
from observability.audit.grants import can_change_audit, grant
from observability.management.owner import as_owner, is_forbidden

LOCK_TIMEOUT_MS = 2_000
"""Milliseconds that a statement waits for a lock; later statements on the table wait behind it."""
ATTEMPTS, PAUSE_S = 15, 4.0
"""Seconds between two attempts. All attempts take 86 s at most, with their waits for one lock."""


class Command(Migrate):
    """Migrate as the owner, then grant the application role its privileges."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if the role may not migrate, or DATABASE_URL's role does not exist."""
        application = str(connection.settings_dict["USER"])
        with as_owner():
            try:
                self._migrate(*args, **options)
            except DatabaseError as error:
                if _is_locked(error):
                    raise CommandError(
                        "Other transactions hold the tables. Earlier migrations are applied."
                        " Run migrate again while less work runs (docs/runbook.md, Deploy)."
                    ) from None
                if not is_forbidden(error):
                    raise
                raise CommandError(
                    "This role must not change the tables; set DATABASE_OWNER_URL to their owner"
                    " (docs/configuration.md, The roles of the database)."
                ) from None
            if options.get("plan") or options.get("check_unapplied"):
                return
            self._grant(application)

    def _migrate(self, *args: Any, **options: Any) -> None:
        """Migrate. A migration that waits too long for a lock is rolled back and repeated.

        So no worker waits long behind the migration. A migration is one transaction, so the
        repetition starts from its beginning.
        """
        for attempt in Retrying(
            retry=retry_if_exception(_is_locked),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_fixed(scaled(PAUSE_S)),
            before_sleep=self._say_locked,
            reraise=True,
        ):
            with attempt:
                with connection.cursor() as cursor:
                    cursor.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
                try:
                    super().handle(*args, **options)
                finally:
                    connection.close()  # also ends the setting

    def _say_locked(self, state: RetryCallState) -> None:
        self.stderr.write(
            f"Other transactions hold the tables; attempt {state.attempt_number} of {ATTEMPTS}."
        )

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


def _is_locked(error: BaseException) -> bool:
    """Return whether a statement waited longer than `lock_timeout`."""
    return isinstance(error.__cause__, LockNotAvailable)
