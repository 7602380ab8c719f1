"""Warnings of a record: what a person should know of a result that is there. Imports models.

Kept on `shell_files.warnings` as {code, message, pages}; messages are ours and free of PHI.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pipeline.errors import ErrorCode
from pipeline.models import ShellFile


def warn(shell_file_id: UUID, code: ErrorCode, message: str, pages: Sequence[int] = ()) -> None:
    """Add a warning to a record, once; called inside the step's fence."""
    shell_file = ShellFile.objects.only("warnings").get(id=shell_file_id)
    warning = {"code": code.value, "message": message, "pages": sorted(pages)}
    if warning not in shell_file.warnings:
        ShellFile.objects.filter(id=shell_file_id).update(warnings=[*shell_file.warnings, warning])
