"""Warnings of a record: what a person should know of a result that is there. Imports models.

Kept on `shell_files.warnings` as {code, message, pages}; messages are ours and free of PHI.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pipeline.core.errors import ErrorCode
from pipeline.models import ShellFile


def warn(shell_file_id: UUID, code: ErrorCode, message: str, pages: Sequence[int] = ()) -> None:
    """Put a warning on a record; called inside the step's fence.

    A step that runs again says the same of other pages: its newest word replaces the earlier one.
    """
    shell_file = ShellFile.objects.only("warnings").get(id=shell_file_id)
    warning = {"code": code.value, "message": message, "pages": sorted(pages)}
    others = [w for w in shell_file.warnings if (w["code"], w["message"]) != (code.value, message)]
    ShellFile.objects.filter(id=shell_file_id).update(warnings=[*others, warning])
