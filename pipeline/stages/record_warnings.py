"""Warnings of a record: what a person should know about a result that was published.

`shell_files.warnings` keeps them as {code, message, pages}, and `count` if the warning counts
something. The messages are fixed texts without PHI.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pipeline.core.errors import ErrorCode
from pipeline.models import ShellFile


def warn(
    shell_file_id: UUID,
    code: ErrorCode,
    message: str,
    pages: Sequence[int] = (),
    *,
    count: int | None = None,
) -> None:
    """Put a warning on a record; call this inside the step's fence.

    If a step runs again, its new warning replaces the earlier one with the same code and message.
    """
    shell_file = ShellFile.objects.only("warnings").get(id=shell_file_id)
    warning: dict[str, object] = {"code": code.value, "message": message, "pages": sorted(pages)}
    if count is not None:
        warning["count"] = count
    others = [w for w in shell_file.warnings if (w["code"], w["message"]) != (code.value, message)]
    ShellFile.objects.filter(id=shell_file_id).update(warnings=[*others, warning])
