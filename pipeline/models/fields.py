"""Column and constraint builders that every table uses, so that all rules are said one way.

Imports `states` only. Defaults live in the database as well as in Python: a row that is inserted
by hand or by plain SQL gets the same values.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now

INTEGER_MAX = 2**31 - 1
"""The largest figure of a counter column."""


def counted(figure: float) -> int:
    """Return a figure as a counter column can hold it.

    A record that was parked for a month has taken more milliseconds than that, and a provider can
    count any tokens: neither may keep a row from being written.
    """
    return int(max(0, min(figure, INTEGER_MAX)))


def storable(text: str) -> str:
    """Return a text from outside without what PostgreSQL refuses: NUL, and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def milliseconds(took: timedelta) -> int:
    """Return a duration as a counter column can hold it."""
    return counted(took.total_seconds() * 1000)


def uuid_pk() -> models.UUIDField[Any, Any]:
    """Return a primary key that is made by us, so that an INSERT can be repeated safely."""
    return models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False
    )


def created_at() -> models.DateTimeField[Any, Any]:
    """Return the time of insertion, by the database's clock."""
    return models.DateTimeField(db_default=Now(), editable=False)


def text(*, null: bool = False, **kwargs: Any) -> models.TextField[Any, Any]:
    """Return a text column; nullable ones mean "not known", never the empty string."""
    return models.TextField(null=null, blank=null, **kwargs)


def status(choices: type[models.TextChoices], default: str) -> models.TextField[Any, Any]:
    """Return a status column; only `transitions` writes it after the insert."""
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
    """Return a point in time that may not have come yet."""
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
    """The wall clock of the database; unlike now(), it moves on within a transaction."""

    function = "clock_timestamp"
    output_field = models.DateTimeField()
