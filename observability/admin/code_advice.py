"""The advice of the error table for the code of a row.

A row with used-up attempts shows the advice of the underlying error, as `explain` does.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from observability.drilldown.nodes import FailureCause
from pipeline.core.errors import ERRORS

CODE_COLUMNS = ("error_code", "outcome")
"""The columns that hold an error code."""


def code_column(model: type[Model]) -> str | None:
    """Return the column with the error code, or None."""
    names = {field.name for field in model._meta.fields}
    return next((name for name in CODE_COLUMNS if name in names), None)


def meaning(row: Model) -> str:
    """Return whether a retry helps, the cost of a call with this code, and the advice."""
    column = code_column(type(row))
    code: str = getattr(row, column or "", None) or ""
    root = FailureCause(code=code, underlying=_underlying(row)).explained_by
    if root is None:
        return "-"
    facts = ERRORS[root]
    again = "retryable" if facts.job_retryable else "not retryable"
    return f"{root}: {again}, budget {facts.budget}. {facts.advice}"


def _underlying(row: Model) -> str | None:
    context: Any = getattr(row, "error_context", None) or {}
    details: Any = getattr(row, "error_details", None) or {}
    listed: Any = (getattr(row, "error_drill_down", None) or {}).get("failures") or [{}]
    found: str | None = (
        context.get("final_underlying_error")
        or details.get("underlying_error")
        or listed[0].get("underlying_error")
    )
    return found
