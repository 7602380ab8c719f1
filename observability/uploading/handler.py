"""Files of a request, written to the private folder while they arrive.

Imports settings and rights. Nothing is kept of a file that passes MAX_UPLOAD_MB, nor of any file
whose sender may not upload: Django reads a form before it asks who sent it.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.core.files.uploadhandler import SkipFile, StopUpload, TemporaryFileUploadHandler

from observability.rights import Right

TOO_LARGE = "files_too_large"
"""Attribute of a request: the names of the files that were not kept for their size."""


class RecordUpload(TemporaryFileUploadHandler):
    """Keeps files of those who may upload, up to the limit each."""

    file: TemporaryUploadedFile

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin a file; stop where its sender may not upload."""
        user = getattr(self.request, "user", None)
        if user is None or not user.has_perm(Right.UPLOAD.permission):
            raise StopUpload(connection_reset=False)
        super().new_file(*args, **kwargs)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part; leave the file out once it is too large."""
        if start + len(raw_data) > settings.MAX_UPLOAD_MB * 1024 * 1024:
            name = self.file_name or ""
            self.file.close()
            setattr(self.request, TOO_LARGE, [*getattr(self.request, TOO_LARGE, ()), name])
            raise SkipFile
        super().receive_data_chunk(raw_data, start)
