"""The audit of the pipeline's own commands, by the function that `settings.COMMAND_AUDIT` names.

The pipeline does not know the audit. The row is in the transaction of the caller.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from pipeline.core.errors import MedprocError


def record_command(
    action: str,
    *,
    target_kind: str,
    target_id: object = "",
    refusal: MedprocError | None = None,
    facts: dict[str, Any] | None = None,
) -> None:
    """Write one audit row under the name of the command line's user."""
    import_string(settings.COMMAND_AUDIT)(
        action, target_kind=target_kind, target_id=target_id, refusal=refusal, facts=facts or {}
    )
