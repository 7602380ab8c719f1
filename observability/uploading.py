"""Uploads: bytes go straight to a private file, never beyond the limit; then they are a submission.

Imports Django's upload handlers, the pipeline's services and the audit. The content decides what a
file is, never its name or its type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler

from observability import audit
from pipeline import services
from pipeline.errors import PipelineError
from pipeline.stages.intake import Submission

FORM_BYTES = 1024 * 1024
"""What the rest of a form may add to its files."""


def request_limit() -> int:
    """Return how many bytes one request may carry."""
    return int(settings.MAX_UPLOAD_MB) * 1024 * 1024 + FORM_BYTES


class BoundedUploadHandler(TemporaryFileUploadHandler):
    """Keeps no file in memory, and reads nothing of a request that is too large."""

    def handle_raw_input(
        self,
        input_data: Any,
        META: Mapping[str, Any],  # noqa: N803 - Django's own name
        content_length: int,
        boundary: str,
        encoding: str | None = None,
    ) -> None:
        """Refuse by the announced length; the parser reads no further than that."""
        if content_length > request_limit():
            raise RequestDataTooBig


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of one file."""

    name: str
    """As the browser gave it; shown to its sender alone."""
    record_id: UUID | None = None
    problem: str = ""
    code: str = ""


def take(
    file: TemporaryUploadedFile,
    *,
    token: UUID,
    patient: str,
    actor: AbstractBaseUser | AnonymousUser,
    user_agent: str,
    address: str | None,
) -> Taken:
    """Submit one file; the same one twice from one form is one record."""
    name = file.name or "file"
    # The key is kept with the record, so it must not hold the name.
    key = hashlib.sha256(f"{token}\n{name}\n{file.size}".encode()).hexdigest()
    try:
        received = services.record_submit(
            Submission(
                path=Path(file.temporary_file_path()),
                filename=name,
                patient_reference=patient.strip() or None,
                idempotency_key=f"upload-{key}",
                user_agent=user_agent[:300] or None,
                ip_address=address,
            )
        )
    except PipelineError as error:
        audit.record(
            actor,
            "upload",
            target_kind="record",
            result=audit.Result.REFUSED,
            facts={"code": error.code.value},
        )
        return Taken(name=name, problem=error.message, code=error.code.value)
    audit.record(actor, "upload", target_kind="record", target_id=received.shell_file_id)
    return Taken(name=name, record_id=received.shell_file_id)
