"""The body of a submission: one file, written to the private folder while it arrives.

The body is a form (`multipart/form-data`) or the file itself. Memory stays bounded, and the name
of the file and the reference of the patient are never part of an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser
from django.utils.http import parse_header_parameters

from api.problems import ApiError, ApiErrorCode
from observability.uploads.handler import BLOCK, LEFT_OUT, BoundedUpload, HashedUpload
from pipeline.core.errors import (
    ERRORS,
    ErrorCode,
    InputError,
    PipelineError,
    UserError,
    UserErrorCode,
)
from pipeline.documents.storage import NO_ROOM
from pipeline.stages.intake import LONGEST_REFERENCE

FILE, PATIENT = "file", "patient"
"""The parts of a form."""
PATIENT_HEADER, NAME_HEADER = "Patient-Reference", "Content-Disposition"
"""The headers that say the same for a body that is the file itself."""
FORM = "multipart/form-data"
FILE_TYPES = frozenset(
    {
        "application/octet-stream", "application/pdf", "application/rtf", "application/xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    }
)  # fmt: skip
FILE_FAMILIES = ("image/", "text/")
"""The content of a file decides its type; these types only say that the body is a file."""
_FORM_OVERHEAD = 65_536
"""Bytes of a form beside its file."""


@dataclass(frozen=True, kw_only=True)
class ReceivedFile:
    """A file that has arrived whole."""

    path: Path
    size_bytes: int
    sha256: str
    """The digest of the bytes, computed while they arrived."""
    name: str = field(repr=False)
    patient: str = field(repr=False)


@contextmanager
def received_file(request: HttpRequest) -> Iterator[ReceivedFile]:
    """Receive the file of a submission; the file is deleted at the end of the block.

    Raises ApiError, UserError, and PipelineError INPUT_TOO_LARGE or STORAGE_FULL.
    """
    kind = (request.content_type or "").lower()
    length = _length(request)
    limit = settings.MAX_UPLOAD_MB * 1024 * 1024
    if length > limit + (_FORM_OVERHEAD if kind == FORM else 0):
        raise too_large()
    patient = _checked(_stated(request.headers.get(PATIENT_HEADER, "")))
    if kind == FORM:
        file, patient = _form(request, length, patient)
        name = file.name or ""
    elif kind in FILE_TYPES or kind.startswith(FILE_FAMILIES):
        name = _name(request)
        file = _whole_body(request, length)
    else:
        raise ApiError(ApiErrorCode.MEDIA_TYPE_UNSUPPORTED)
    with file:
        yield ReceivedFile(
            path=Path(file.temporary_file_path()),
            size_bytes=file.size or 0,
            sha256=file.sha256,
            name=name,
            patient=patient,
        )


def too_large() -> InputError:
    """Return the refusal of a file that exceeds the limit."""
    return InputError(
        f"The file is larger than {settings.MAX_UPLOAD_MB} MB; split it, or raise MAX_UPLOAD_MB.",
        code=ErrorCode.INPUT_TOO_LARGE,
    )


class _Counted:
    """The body of a request; counts the bytes that were read."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes."""
        block = self._request.read(size)
        self.read_bytes += len(block)
        return block


def _length(request: HttpRequest) -> int:
    # The web server refuses a body without a length.
    text = str(request.META.get("CONTENT_LENGTH") or "0")
    if not text.isascii() or not text.isdigit():
        raise ApiError(
            ApiErrorCode.REQUEST_MALFORMED, "Send the length of the body as Content-Length."
        )
    return int(text)


def _form(request: HttpRequest, length: int, patient: str) -> tuple[HashedUpload, str]:
    body = _Counted(request)
    handlers = [BoundedUpload(request)]
    parser = MultiPartParser(request.META, body, handlers, request.encoding)  # type: ignore[arg-type]  # only `read` is used
    fields, files = parser.parse()
    found = [each for name in files for each in files.getlist(name)]
    try:
        _whole(body.read_bytes, length)
        for _, code in getattr(request, LEFT_OUT, ()):
            raise too_large() if code is ErrorCode.INPUT_TOO_LARGE else PipelineError(code=code)
        stated = _checked(str(fields.get(PATIENT, "")))
        if patient and stated and patient != stated:
            raise UserError(
                "the header and the form name different patients; name the patient once",
                code=UserErrorCode.VALUE_INVALID,
            )
        unknown = {*fields, *files} - {FILE, PATIENT}
        if unknown or len(found) != 1 or FILE not in files or len(fields.getlist(PATIENT)) > 1:
            # A reference under a wrong name must not be lost without a word.
            raise UserError(
                f"a form has one file in the part `{FILE}`, and at most the field `{PATIENT}`",
                code=UserErrorCode.VALUE_INVALID,
            )
    except BaseException:
        for each in found:
            each.close()
        raise
    return found[0], stated or patient


def _whole_body(request: HttpRequest, length: int) -> HashedUpload:
    body = _Counted(request)
    try:
        file = HashedUpload("record", request.content_type or "", 0, None)
        try:
            while block := body.read(BLOCK):
                file.append(block)
            file.flush()
            _whole(body.read_bytes, length)
        except BaseException:
            file.close()
            raise
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise PipelineError(
            ERRORS[ErrorCode.STORAGE_FULL].advice, code=ErrorCode.STORAGE_FULL
        ) from None
    file.size = body.read_bytes
    file.seek(0)
    return file


def _whole(read: int, length: int) -> None:
    """Refuse a body whose sender stopped early: half a record is no record."""
    if read != length:
        raise ApiError(ApiErrorCode.REQUEST_MALFORMED, "The body ended before its stated length.")


def _name(request: HttpRequest) -> str:
    _, parameters = parse_header_parameters(_stated(request.headers.get(NAME_HEADER, "")))
    return parameters.get("filename", "")


def _stated(header: str) -> str:
    """Return a header in UTF-8; WSGI passes its bytes as Latin-1."""
    try:
        return header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise UserError("a header is not UTF-8", code=UserErrorCode.VALUE_INVALID) from None


def _checked(patient: str) -> str:
    patient = patient.strip()
    if len(patient) > LONGEST_REFERENCE // 2 or (patient and not patient.isprintable()):
        raise UserError(
            f"a patient reference has at most {LONGEST_REFERENCE // 2} printable characters",
            code=UserErrorCode.VALUE_INVALID,
        )
    return patient
