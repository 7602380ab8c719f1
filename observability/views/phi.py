"""Pages that need the right to read PHI: page images, page texts, prompts and replies.

The audit records each reading before the response is sent. No URL contains patient data.
"""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from medproc.reading import reading
from observability.permissions import Right
from observability.phi.calls import read_call
from observability.phi.images import BusyError, is_written_down, page_image, ticket
from observability.phi.pages import page_view
from observability.phi.results import results_page
from observability.phi.source import source_view
from observability.views.decorators import PhiResponse, page, phi
from observability.views.render import render_page
from pipeline.documents import reader
from pipeline.models import Entity, Page, ProviderCall, RecordListItem, ReviewItem, ShellFile

NO_IMAGE = "text/plain; charset=utf-8"


@page(Right.READ_PHI)
def to_page(request: HttpRequest, record_id: UUID) -> HttpResponse:
    """Redirect to the page with the requested number (`?page=7`)."""
    text = request.GET.get("page", "1")
    if not text.isdecimal() or len(text) > 6:
        raise Http404
    return redirect("admin:record_page", record_id, int(text))


@phi
def record_page(request: HttpRequest, record_id: UUID, number: int) -> PhiResponse:
    """Show a page: its image, its text and its entities, linked to each other."""
    with reading():
        try:
            view = page_view(record_id, number)
        except Page.DoesNotExist:
            raise Http404 from None
        image = reverse("admin:page_image", args=[record_id, number])
        shown_by = ticket(str(request.user.pk), record_id, number)
        response = render_page(
            request,
            "console/page.html",
            f"Page {number} of record {str(record_id)[:8]}",
            view=view,
            pages=view.shell_file.page_count or view.shell_file.pages_read,
            image=f"{image}?shown={shown_by}",
        )
    return PhiResponse(
        response=response,
        target_kind="record",
        target_id=record_id,
        facts={"page": number, "entities": len(view.entities)},
    )


@phi
def image(request: HttpRequest, record_id: UUID, number: int) -> PhiResponse:
    """Return the image of a page; the image counts as part of the reading of its page."""
    with reading():
        key = (
            ShellFile.objects.filter(id=record_id, pages__page_number=number)
            .values_list("storage_key", flat=True)
            .first()
        )
    if key is None:
        raise Http404
    response = _png(key, number, large=request.GET.get("size") == "large")
    said = request.GET.get("shown", "")
    is_shown = response.status_code == HTTPStatus.OK
    return PhiResponse(
        response=response,
        target_kind="record",
        target_id=record_id,
        facts={"page": number, "image": True},
        is_written_down=not is_shown
        or is_written_down(said, str(request.user.pk), record_id, number),
    )


@phi
def results(request: HttpRequest, record_id: UUID) -> PhiResponse:
    """Show encounters, narratives, lists, contradictions and codes of a record.

    `?at=<address>` chooses the part of one section (`observability.phi.results`).
    """
    with reading():
        try:
            view = results_page(record_id, request.GET.get("at", ""))
        except ShellFile.DoesNotExist:
            raise Http404 from None
        response = render_page(
            request,
            "console/summary.html",
            f"Results of record {str(record_id)[:8]}",
            view=view,
            found=view.findings,
            record_id=record_id,
            review=ReviewItem.objects.filter(shell_file_id=record_id).first(),
        )
    return PhiResponse(
        response=response,
        target_kind="record",
        target_id=record_id,
        facts={"what": "summary", "entities": view.findings.entities},
    )


@phi
def source(request: HttpRequest, record_id: UUID, entity_id: UUID) -> PhiResponse:
    """Show where an entity is printed; `?item=<id>` adds the mentions of a list entry."""
    with reading():
        try:
            item = UUID(request.GET["item"]) if request.GET.get("item") else None
            view = source_view(record_id, entity_id, item)
        except (ValueError, Entity.DoesNotExist, Page.DoesNotExist, RecordListItem.DoesNotExist):
            raise Http404 from None
        image = reverse("admin:page_image", args=[record_id, view.page])
        shown_by = ticket(str(request.user.pk), record_id, view.page)
        response = render_page(
            request,
            "console/source.html",
            f"Source of a result of record {str(record_id)[:8]}",
            view=view,
            record_id=record_id,
            image=f"{image}?shown={shown_by}",
        )
    # The panel is a part of the results, so the address stays that of the results.
    response["HX-Push-Url"] = "false"
    return PhiResponse(
        response=response,
        target_kind="record",
        target_id=record_id,
        facts={"what": "source", "entity": str(entity_id), "page": view.page},
    )


@phi
def call(request: HttpRequest, call_id: UUID) -> PhiResponse:
    """Show the prompt and the reply of a call."""
    with reading():
        try:
            found = ProviderCall.objects.select_related("payload", "processing_session").get(
                id=call_id
            )
        except ProviderCall.DoesNotExist:
            raise Http404 from None
        record_id = found.processing_session.shell_file_id
        response = render_page(
            request,
            "console/call.html",
            f"Prompt and reply of call {str(call_id)[:8]}",
            read=read_call(found),
            record_id=record_id,
        )
    return PhiResponse(
        response=response,
        target_kind="call",
        target_id=call_id,
        facts={"record": str(record_id)},
    )


def _png(key: str, number: int, *, large: bool) -> HttpResponse:
    """Return the image, or one line with the reason for its absence; the line has no PHI."""
    try:
        png = page_image(key, number, large=large)
    except BusyError:
        busy = HttpResponse(
            "The server draws other images now. Try again in a few seconds.",
            NO_IMAGE,
            HTTPStatus.SERVICE_UNAVAILABLE,
        )
        busy["Retry-After"] = "5"
        return busy
    except FileNotFoundError:
        return HttpResponse("The stored file no longer exists.", NO_IMAGE, HTTPStatus.GONE)
    except reader.InputRefused as refusal:
        return HttpResponse(refusal.message, NO_IMAGE, HTTPStatus.UNPROCESSABLE_ENTITY)
    except reader.ReaderError:
        return HttpResponse(
            "The page could not be drawn.", NO_IMAGE, HTTPStatus.INTERNAL_SERVER_ERROR
        )
    response = HttpResponse(png, "image/png")
    response["Content-Disposition"] = "inline"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
