"""The upload handlers: they write the files of a request to the private folder while they arrive.

A file above MAX_UPLOAD_MB and a file without room on the disk are not kept. The console's handler
also keeps no file of a user who cannot upload, because Django reads a form before a view checks
the permission.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.core.files.uploadhandler import SkipFile, StopUpload, TemporaryFileUploadHandler

from observability.permissions import Right
from pipeline.core.errors import ErrorCode
from pipeline.documents.storage import NO_ROOM

LEFT_OUT = "files_left_out"
"""Attribute of the request: names and codes of the files that were not kept."""


class BoundedUpload(TemporaryFileUploadHandler):
    """Keeps files, each up to the limit."""

    file: TemporaryUploadedFile

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Start a file."""
        # After a skipped file the parser must not close the previous file, which is complete.
        vars(self).pop("file", None)
        with self._room():
            super().new_file(*args, **kwargs)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part; skip the file as soon as it is too large."""
        if start + len(raw_data) > settings.MAX_UPLOAD_MB * 1024 * 1024:
            self._leave_out(ErrorCode.INPUT_TOO_LARGE)
            raise SkipFile
        with self._room():
            super().receive_data_chunk(raw_data, start)

    def file_complete(self, file_size: int) -> UploadedFile[Any] | None:
        """End a file; this writes the last buffered part."""
        try:
            with self._room():
                return super().file_complete(file_size)
        except SkipFile:
            return None

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Skip the file if the disk is full."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._leave_out(ErrorCode.STORAGE_FULL)
            raise SkipFile from None

    def _leave_out(self, code: ErrorCode) -> None:
        """Delete the partial file and note the reason."""
        if "file" in vars(self):
            # The file is deleted even if its buffer cannot be written.
            with suppress(OSError):
                self.file.close()
        left_out = [*getattr(self.request, LEFT_OUT, ()), (self.file_name or "", code)]
        setattr(self.request, LEFT_OUT, left_out)


class RecordUpload(BoundedUpload):
    """Keeps the files of users of the console who can upload."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Start a file; stop if the sender cannot upload."""
        user = getattr(self.request, "user", None)
        if user is None or not user.has_perm(Right.UPLOAD.permission):
            raise StopUpload(connection_reset=False)
        super().new_file(*args, **kwargs)
