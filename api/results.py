"""The operations that show PHI: entities, results and exports. Each reading is audited first.

An answer is made in memory or in a temporary file before its first byte is sent. So no client
takes half a table for the whole.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django.http import FileResponse, HttpRequest, JsonResponse
from ninja import P, QueryEx, Router

from api.access import BearerToken, require_own
from api.openapi import ANSWERS, EXPORTED
from api.pagination import DEFAULT, Cursor, Limit, cursor_of, place_of_indexes
from api.schemas import EntityPage, ResultsDocument
from api.scopes import TokenScope
from medproc.reading import reading
from observability.audit import log
from observability.phi.clinical_summary import clinical_summary
from observability.phi.downloads import audited_export
from pipeline.exports.columns import plain_row
from pipeline.exports.download import Download, download
from pipeline.exports.formats import Format
from pipeline.exports.snapshot import snapshot

router = Router(tags=["results"])
_RESULTS = BearerToken(TokenScope.RESULTS)


@router.get(
    "/{uuid:record_id}/entities",
    auth=_RESULTS,
    response={200: EntityPage, **ANSWERS.one},
    operation_id="list_entities",
    summary="List the entities of a record",
)
def entities(
    request: HttpRequest,
    record_id: UUID,
    limit: Limit = DEFAULT,
    cursor: Cursor = None,
) -> JsonResponse:
    """Return entities in the order of the text, also those that are not accepted.

    The entities of an encounter appear all at once; `notices` say what is missing.
    """
    require_own(request, record_id)
    place = place_of_indexes(cursor)
    with snapshot(record_id, uuid4(), allow_incomplete=True) as source:
        record = source.record
        found = source.entities_after(place, limit + 1)
    shown = found[:limit]
    items = [plain_row(record, each) for each in shown]
    for each in items:
        # A page is no export, and has no generation.
        del each["generation"]
    more = len(found) > limit
    last = f"{shown[-1].encounter_index}~{shown[-1].entity_index}" if more else ""
    _read(request, record_id, "entities", count=len(items))
    return JsonResponse(
        {
            "record_incomplete": record.is_incomplete,
            "reviewed": record.is_review_closed,
            "notices": list(record.notices),
            "items": items,
            "next_cursor": cursor_of(last),
        }
    )


@router.get(
    "/{uuid:record_id}/results",
    auth=_RESULTS,
    response={200: ResultsDocument, **ANSWERS.one},
    operation_id="get_results",
    summary="Read the results of a record",
)
def results(request: HttpRequest, record_id: UUID) -> JsonResponse:
    """Return encounters, narratives, lists, contradictions and codes of a record."""
    with reading():
        require_own(request, record_id)
        found = clinical_summary(record_id)
    _read(request, record_id, "summary")
    return JsonResponse(found.as_json())


@router.get(
    "/{uuid:record_id}/exports/{form}",
    auth=_RESULTS,
    response={**ANSWERS.exported},
    openapi_extra=EXPORTED,
    operation_id="export_record",
    summary="Export the results of a record",
)
def export(
    request: HttpRequest,
    record_id: UUID,
    form: Format,
    incomplete: QueryEx[bool, P(description="Export a record with missing results too.")] = False,
) -> FileResponse:
    """Return a file: `fhir`, `csv`, `html`, or `pair` (a zip archive of Parquet and JSON).

    409 with RECORD_INCOMPLETE if results are missing and `incomplete` is not set.
    """
    require_own(request, record_id)

    def make() -> Download:
        return download(record_id, form, allow_incomplete=incomplete)

    return audited_export(request.user, record_id, make)


def _read(request: HttpRequest, record_id: UUID, what: str, **facts: Any) -> None:
    log.record(
        request.user,
        log.READ_PHI,
        target_kind="record",
        target_id=record_id,
        facts={"what": what, **facts},
    )
