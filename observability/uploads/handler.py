"""The upload handlers: they write the files of a request to the private folder while they arrive.

A file above MAX_UPLOAD_MB and a file without room on the disk are not kept. The console's handler
also keeps no file of a user who cannot upload, because Django reads a form before a view checks
the permission.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.core.files.uploadhandler import SkipFile, StopUpload, TemporaryFileUploadHandler

from observability.permissions import Right
from pipeline.core.errors import ErrorCode
from pipeline.documents.storage import NO_ROOM

LEFT_OUT = "files_left_out"
"""Attribute of the request: names and codes of the files that were not kept."""


BLOCK = 1 << 20
"""Bytes of a body that are read at once. The web server copies its buffer at each read, so small
reads of a large body copy each byte many times."""


class HashedUpload(TemporaryUploadedFile):
    """A private file that is hashed while it arrives."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._digest = sha256()

    def append(self, part: bytes) -> None:
        """Write a part, and count it in."""
        self._digest.update(part)
        self.write(part)

    @property
    def sha256(self) -> str:
        """The digest of all parts."""
        return self._digest.hexdigest()


class BoundedUpload(TemporaryFileUploadHandler):
    """Keeps files, each up to the limit."""

    chunk_size = BLOCK
    file: HashedUpload

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Start a file."""
        # After a skipped file the parser must not close the previous file, which is complete.
        vars(self).pop("file", None)
        # Django's class for temporary files would make a file that is not hashed.
        super(TemporaryFileUploadHandler, self).new_file(*args, **kwargs)
        with self._room():
            self.file = HashedUpload(
                self.file_name, self.content_type, 0, self.charset, self.content_type_extra
            )

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a part; skip the file as soon as it is too large."""
        if start + len(raw_data) > settings.MAX_UPLOAD_MB * 1024 * 1024:
            self._leave_out(ErrorCode.INPUT_TOO_LARGE)
            raise SkipFile
        with self._room():
            self.file.append(raw_data)

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
