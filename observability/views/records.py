"""Records: the list, with status and reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from observability.listing.pagination import ListPage
from observability.listing.records import FIELDS, READ, STATES, Chosen, chosen, whys
from observability.views.decorators import page
from observability.views.list_navigation import RECORDS, within
from observability.views.render import render_page
from pipeline.core.errors import ErrorCode, UserError
from pipeline.core.labels import PASS_TITLES
from pipeline.models import Job


@page()
def records(request: HttpRequest) -> HttpResponse:
    """List the records that match the filter in the URL (`?is=failed&patient=…`), newest first."""
    asked = {name: request.GET[name] for name in FIELDS if request.GET.get(name)}
    problem = ""
    try:
        filtered = chosen(asked)
        listed = filtered.page(request.GET.get("after", ""))
    except UserError as error:
        problem = error.message
        filtered, listed = Chosen(), ListPage[Job](rows=(), next_place="")
    word = asked.get("is", "") if filtered.status else ""
    said = whys(listed.rows)
    return render_page(
        request,
        "console/records.html",
        _title(word, filtered),
        status=HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK,
        problem=problem,
        listed=listed,
        rows=[(job, said.get(job.shell_file_id, "")) for job in listed.rows],
        fields={name: asked.get(name, "") for name in FIELDS},
        word=word,
        is_of_word_alone=set(asked) <= {"is", "window"},
        words=list(STATES),
        steps=_choice("step", "Pass", PASS_TITLES.items(), asked),
        causes=_choice("cause", "Cause", ((code, code) for code in ErrorCode), asked),
        others=urlencode({name: of for name, of in asked.items() if name not in {"is", "window"}}),
        window=filtered.window,
        query=urlencode(asked),
        within=within(RECORDS, asked),
        column=filtered.column,
        read=READ if filtered.is_sifted else 0,
    )


def _choice(
    name: str, label: str, options: Iterable[tuple[str, str]], asked: Mapping[str, str]
) -> dict[str, Any]:
    """Return a filter field with a fixed set of values."""
    return {"name": name, "label": label, "options": options, "chosen": asked.get(name, "")}


def _title(word: str, filtered: Chosen) -> str:
    """Return `Records: failed in the last 24 hours`, `Records of batch 0b02ca07: waiting`."""
    of = f" of batch {str(filtered.batch_id)[:8]}" if filtered.batch_id else ""
    when = f" in the last {filtered.window.words}" if filtered.window else ""
    return f"Records{of}: {word}{when}" if word else f"Records{of}"
