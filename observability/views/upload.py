"""Upload: several files at once, each with a clear word for what became of it."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.conf import settings
from django.core.exceptions import BadRequest
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from observability.rights import Right
from observability.uploading import Taken, take
from observability.views.guard import page, verb
from observability.views.shown import shown


@page(Right.UPLOAD)
def upload(request: HttpRequest) -> HttpResponse:
    """Show the form."""
    return _form(request)


@verb(Right.UPLOAD)
def receive(request: HttpRequest) -> HttpResponse:
    """Take the files; answer with their lines alone where a script asks (`X-Part: results`)."""
    try:
        token = UUID(request.POST.get("token", ""))
    except ValueError:
        raise BadRequest from None
    taken = [
        take(
            file,
            token=token,
            patient=request.POST.get("patient", ""),
            actor=request.user,
            user_agent=request.headers.get("User-Agent", ""),
            address=request.META.get("REMOTE_ADDR") or None,
        )
        for file in request.FILES.getlist("file")
        if isinstance(file, TemporaryUploadedFile)
    ]
    if request.headers.get("X-Part") == "results":
        return TemplateResponse(request, "console/taken.html", {"taken": taken})
    return _form(request, taken)


def _form(request: HttpRequest, taken: list[Taken] | None = None) -> HttpResponse:
    return shown(
        request,
        "console/upload.html",
        "Upload",
        taken=taken or [],
        token=uuid4(),
        max_mb=settings.MAX_UPLOAD_MB,
        max_bytes=settings.MAX_UPLOAD_MB * 1024 * 1024,
    )
