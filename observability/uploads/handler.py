"""Files of a request, written to the private folder while they arrive.

Imports settings, rights and the pipeline's errors. Nothing is kept of a file that passes
MAX_UPLOAD_MB or for which the disk has no room, nor of any file whose sender may not upload: Django
reads a form before it asks who sent it.
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
"""Attribute of a request: names and codes of the files that were not kept."""


class RecordUpload(TemporaryFileUploadHandler):
    """Keeps files of those who may upload, up to the limit each."""

    file: TemporaryUploadedFile

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin a file; stop where its sender may not upload."""
        user = getattr(self.request, "user", None)
        if user is None or not user.has_perm(Right.UPLOAD.permission):
            raise StopUpload(connection_reset=False)
        # The parser closes the present file when one is left out; the last one is not ours to lose.
        vars(self).pop("file", None)
        with self._room():
            super().new_file(*args, **kwargs)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part; leave the file out once it is too large."""
        if start + len(raw_data) > settings.MAX_UPLOAD_MB * 1024 * 1024:
            self._leave_out(ErrorCode.INPUT_TOO_LARGE)
            raise SkipFile
        with self._room():
            super().receive_data_chunk(raw_data, start)

    def file_complete(self, file_size: int) -> UploadedFile[Any] | None:
        """End a file; the last of it is written only now."""
        try:
            with self._room():
                return super().file_complete(file_size)
        except SkipFile:
            return None

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Leave the file out where the disk is full."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._leave_out(ErrorCode.STORAGE_FULL)
            raise SkipFile from None

    def _leave_out(self, code: ErrorCode) -> None:
        """Delete what has come of the file, and note it."""
        if "file" in vars(self):
            # It is deleted all the same where what is buffered cannot be written.
            with suppress(OSError):
                self.file.close()
        left_out = [*getattr(self.request, LEFT_OUT, ()), (self.file_name or "", code)]
        setattr(self.request, LEFT_OUT, left_out)
