"""Commands that run as the owner of the tables, whom DATABASE_OWNER_URL names.

The application role cannot delete records, calls or the audit. So a process of the service that was
taken over cannot delete them either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, connection

from medproc.addresses import database_settings

INSUFFICIENT_PRIVILEGE = "42501"
"""The SQLSTATE of a statement that a role must not run."""
_OF_THE_ROLE = ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
"""The settings that the owner's URL replaces. The name of the database stays."""


@contextmanager
def as_owner() -> Iterator[None]:
    """Let the default connection log in as the owner; without an owner's URL nothing changes."""
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


@contextmanager
def deleting_records() -> Iterator[None]:
    """Log in as the owner. Raises CommandError if the role must not delete records."""
    try:
        with as_owner():
            yield
    except DatabaseError as error:
        if not is_forbidden(error):
            raise
        raise CommandError(
            "This role must not delete records; set DATABASE_OWNER_URL to the owner of the"
            " tables (docs/configuration.md, The roles of the database)."
        ) from None


def is_forbidden(error: BaseException | None) -> bool:
    """Return whether the cause of an error is a missing privilege; Django wraps some errors."""
    while error is not None:
        if getattr(error, "sqlstate", "") == INSUFFICIENT_PRIVILEGE:
            return True
        error = error.__cause__ or error.__context__
    return False
