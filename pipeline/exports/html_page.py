"""HTML: the text of each page with the entities marked, in one file without scripts.

Every text is escaped, and the page forbids scripts and loading by its own policy. A mark has a
shape and a word beside its colour. Characters that could turn a line around are shown as codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from medproc.printable import printable
from pipeline.clinical import enrichment_flags
from pipeline.clinical.page_text.marks import HighlightRun, Place, halves, runs
from pipeline.core.labels import counted
from pipeline.exports.rows import EntityRow, PageRow, RecordRow, is_reviewed
from pipeline.exports.source import RecordSource
from pipeline.exports.style import SHAPES, STYLE, UNKNOWN_SHAPE
from pipeline.stages.pass1 import review_flags

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PRINTED = ("value", "unit", "reference_range", "abnormal_flag", "strength", "dose",
            "previous_dose", "route", "frequency", "status", "reaction", "entity_date")  # fmt: skip
_ASSERTIONS = ("temporality", "certainty", "experiencer")
HELD_NOTE = (
    "Text of this page is left out: it names, or may belong to, another patient. It is held for"
    " review."
)
_PLAIN = frozenset({"current", "certain", "patient", None})


class _Marked(NamedTuple):
    """An entity with its number on the page, and whether the mark begins on the page before."""

    number: int
    entity: EntityRow
    place: Place | None


def html_page(source: RecordSource) -> Iterator[str]:
    """Yield the document, page by page."""
    record = source.record
    yield _head(record)
    by_page = groupby(source.entities_by_page(), lambda each: each.page_number)
    waiting = next(by_page, None)
    carried: list[EntityRow] = []
    for page, following in _with_next(source.pages()):
        own: list[EntityRow] = []
        while waiting is not None and waiting[0] <= page.page_number:
            own += waiting[1]
            waiting = next(by_page, None)
        yield from _page(record, page, following, own, carried)
        carried = [each for each in own if each.page_end and following]
    while waiting is not None:
        # No text is stored for this page; its entities are shown all the same.
        empty = PageRow(waiting[0], "", "")
        yield from _page(record, empty, None, list(waiting[1]), [])
        waiting = next(by_page, None)
    yield "</main></body></html>\n"


def _with_next(pages: Iterable[PageRow]) -> Iterator[tuple[PageRow, PageRow | None]]:
    held: PageRow | None = None
    for page in pages:
        if held is not None:
            yield held, page
        held = page
    if held is not None:
        yield held, None


def _head(record: RecordRow) -> str:
    notices = "".join(f'<p class="notice" role="note">{_html(each)}</p>' for each in record.notices)
    warnings = "".join(f"<li>{_html(each)}</li>" for each in record.warnings_in_words)
    shapes = "".join(f"<li>{shape} {category}</li>" for category, shape in SHAPES.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Record {record.id}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>Record {record.id}</h1>{notices}"
        f"<p>{counted(record.page_count or 0, 'page')},"
        f" {counted(len(record.encounters), 'encounter')}. Patient {_html(record.pseudonym)}."
        f" Taken at {record.taken_at:%Y-%m-%d %H:%M} UTC. Generation {record.generation}.</p>"
        f"{f'<h2>Warnings</h2><ul>{warnings}</ul>' if warnings else ''}"
        f'<h2>Marks</h2><ul class="legend">{shapes}<li>⚑ to be checked</li>'
        "<li>⊘ denied, or not about the patient now</li></ul>\n"
    )


def _page(
    record: RecordRow,
    page: PageRow,
    following: PageRow | None,
    own: Sequence[EntityRow],
    carried: Sequence[EntityRow],
) -> Iterator[str]:
    number = page.page_number
    marked = [_Marked(n, each, _place(n, each, page, following)) for n, each in enumerate(own, 1)]
    # Negative numbers: the end of a quote that begins on the page before.
    ends = [(-n, 0, each.char_end or 0) for n, each in enumerate(carried, 1)]
    places = [*ends, *(each.place for each in marked if each.place)]
    by_number = {each.number: each.entity for each in marked}
    by_number |= {-n: each for n, each in enumerate(carried, 1)}
    yield f'<section aria-labelledby="p{number}"><h2 id="p{number}">Page {number}</h2>\n'
    if page.is_held:
        yield f'<p class="notice" role="note">{HELD_NOTE}</p>\n'
    yield "<pre>"
    yield from (_run(run, number, by_number) for run in runs(page.text.rstrip(), places))
    yield "</pre>\n"
    if marked:
        yield "<table><thead><tr><th>No.</th><th>What</th><th>As printed</th><th>Code</th>"
        yield "<th>To be checked</th></tr></thead><tbody>\n"
        yield from (_row(record, number, each) for each in marked)
        yield "</tbody></table>\n"
    yield "</section>\n"


def _place(
    number: int, entity: EntityRow, page: PageRow, following: PageRow | None
) -> Place | None:
    if entity.char_start is None or entity.char_end is None:
        return None
    if entity.page_end is None:
        return number, entity.char_start, entity.char_end
    after = following.text if following else ""
    until, _ = halves(entity.quote, page.text, after, entity.char_start, entity.char_end)
    return number, entity.char_start, until


def _run(run: HighlightRun, page: int, entities: dict[int, EntityRow]) -> str:
    text = _html(run.text)
    if not run.numbers:
        return text
    labels = "".join(_label(number, page, entities[number]) for number in run.first_of)
    innermost = entities[run.numbers[-1]]
    return f'{labels}<mark class="k-{_kind(innermost)}">{text}</mark>'


def _label(number: int, page: int, entity: EntityRow) -> str:
    if number < 0:
        return "<sup>(continued)</sup>"
    is_doubted = entity.is_doubted or not entity.accepted
    signs = f"{_shape(entity)}{number}{'⚑' * bool(is_doubted)}{'⊘' * bool(_assertions(entity))}"
    return f'<sup><a href="#e{page}-{number}">{signs}</a></sup>'


def _row(record: RecordRow, page: int, marked: _Marked) -> str:
    entity = marked.entity
    printed = [f"{name.replace('_', ' ')}: {value}" for name in _PRINTED
               if (value := getattr(entity, name)) is not None]  # fmt: skip
    checks = [
        *((_withheld(entity),) if not entity.accepted else ()),
        *(("its text is not on the page",) if marked.place is None else ()),
        *review_flags.in_words(entity.review_flags),
        *enrichment_flags.in_words(entity.enrichment_flags or ()),
    ]
    code = f"{entity.code_system} {entity.code} {entity.code_display or ''}" if entity.code else ""
    what = f"{_shape(entity)} {_html(entity.category)}: {_html(entity.name)}"
    apart = ", ".join(_assertions(entity))
    review = "" if is_reviewed(record, entity) else " Not reviewed."
    return (
        f'<tr id="e{page}-{marked.number}"><td>{marked.number}</td>'
        f"<td>{what}{f' <b>⊘ {_html(apart)}</b>' if apart else ''}</td>"
        f"<td>{_html('; '.join(printed))}</td><td>{_html(code)}</td>"
        f"<td>{'⚑ ' if checks else ''}{_html('; '.join(checks))}{review}</td></tr>\n"
    )


def _withheld(entity: EntityRow) -> str:
    return "rejected by a reviewer" if entity.is_rejected else "held back until reviewed"


def _assertions(entity: EntityRow) -> list[str]:
    found = ["denied"] if entity.negated else []
    return found + [value for name in _ASSERTIONS if (value := getattr(entity, name)) not in _PLAIN]


def _kind(entity: EntityRow) -> str:
    return entity.category if entity.category in SHAPES else "other"


def _shape(entity: EntityRow) -> str:
    return SHAPES.get(entity.category, UNKNOWN_SHAPE)


def _html(text: str) -> str:
    return escape(printable(text))
