"""Column and constraint builders that every table uses, so that each rule is written once.

Defaults are in the database as well as in Python: a row that plain SQL inserts gets the same
values.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now

INTEGER_MAX = 2**31 - 1
"""The largest value of a counter column."""


def counted(figure: float) -> int:
    """Round a figure to an integer, and limit it to what a counter column can hold.

    A record that was parked for a month exceeds the limit in milliseconds, and a provider can
    report any token count. Neither must stop a row from being written.
    """
    return int(max(0, min(figure, INTEGER_MAX)))


def storable(text: str) -> str:
    """Remove the characters that PostgreSQL refuses, NUL and lone surrogates, from a text."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def milliseconds(took: timedelta) -> int:
    """Return a duration in milliseconds, limited to what a counter column can hold."""
    return counted(took.total_seconds() * 1000)


def uuid_pk() -> models.UUIDField[Any, Any]:
    """Return a primary key that Python generates, so that an INSERT can be repeated safely."""
    return models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False
    )


def created_at() -> models.DateTimeField[Any, Any]:
    """Return the time of insertion, by the database's clock."""
    return models.DateTimeField(db_default=Now(), editable=False)


def text(*, null: bool = False, **kwargs: Any) -> models.TextField[Any, Any]:
    """Return a text column; a nullable column stores NULL for "not known", not an empty string."""
    return models.TextField(null=null, blank=null, **kwargs)


def status(choices: type[models.TextChoices], default: str) -> models.TextField[Any, Any]:
    """Return a status column; after the insert only `transitions` writes it."""
    return models.TextField(
        choices=choices.choices, default=default, db_default=default, editable=False
    )


def count(default: int = 0, **kwargs: Any) -> models.IntegerField[Any, Any]:
    """Return a non-null counter."""
    return models.IntegerField(default=default, db_default=default, **kwargs)


def optional_count(**kwargs: Any) -> models.IntegerField[Any, Any]:
    """Return a counter that is empty until the figure is known."""
    return models.IntegerField(null=True, blank=True, **kwargs)


def flag(default: bool = False) -> models.BooleanField[Any, Any]:
    """Return a non-null boolean."""
    return models.BooleanField(default=default, db_default=default)


def optional_time(**kwargs: Any) -> models.DateTimeField[Any, Any]:
    """Return a time column that is empty until the event happens."""
    return models.DateTimeField(null=True, blank=True, **kwargs)


def one_of(name: str, column: str, choices: type[models.TextChoices]) -> models.CheckConstraint:
    """Return a CHECK that the column holds one of the enum's values (or NULL)."""
    return models.CheckConstraint(
        name=name, condition=models.Q(**{f"{column}__in": choices.values})
    )


def not_negative(name: str, *columns: str) -> models.CheckConstraint:
    """Return a CHECK that no column is below zero; NULL passes."""
    condition = models.Q()
    for column in columns:
        condition &= models.Q(**{f"{column}__gte": 0}) | models.Q(**{f"{column}__isnull": True})
    return models.CheckConstraint(name=name, condition=condition)


def page_range(name: str, first: str, last: str) -> models.CheckConstraint:
    """Return a CHECK on a 1-based, inclusive range of pages."""
    return models.CheckConstraint(
        name=name, condition=models.Q(**{f"{first}__gte": 1, f"{last}__gte": models.F(first)})
    )


class ClockTimestamp(models.Func):
    """The wall clock of the database; unlike now(), it advances within a transaction."""

    function = "clock_timestamp"
    output_field = models.DateTimeField()
