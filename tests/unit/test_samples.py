"""The committed samples equal the generator's output, and their truth is true.

These tests need no database and no service.
"""

from __future__ import annotations

import io
from typing import get_args

import pypdfium2
import pytest
from PIL import Image

from pipeline.providers import schemas
from samples import bulk, check, generate, markup, truth

TEXT_RECORDS = sorted(generate.TEXT_RECORDS)
ALL_RECORDS = [*TEXT_RECORDS, generate.SCAN]


@pytest.mark.parametrize("name", TEXT_RECORDS)
def test_a_committed_text_record_is_what_the_generator_makes(name: str) -> None:
    pdf, record = generate.text_record(name)

    committed = truth.HERE / f"{name}.pdf"

    assert check.page_texts(committed) == check.page_texts(pdf)
    assert truth.load(name) == record


def test_the_committed_scan_has_the_generated_truth_and_no_text_layer() -> None:
    _, record = generate.scanned_record()

    texts = check.page_texts(truth.HERE / f"{generate.SCAN}.pdf")

    assert truth.load(generate.SCAN) == record
    assert texts == [""] * record.pages


def test_the_scan_shows_the_generated_pages() -> None:
    pdf, _ = generate.scanned_record()

    committed = _thumbnails((truth.HERE / f"{generate.SCAN}.pdf").read_bytes())

    for ours, theirs in zip(_thumbnails(pdf), committed, strict=True):
        assert ours.size == theirs.size
        assert max(abs(a - b) for a, b in zip(_pixels(ours), _pixels(theirs), strict=True)) < 40


@pytest.mark.parametrize("name", TEXT_RECORDS)
def test_every_quote_of_the_truth_is_on_its_page(name: str) -> None:
    texts = check.page_texts(truth.HERE / f"{name}.pdf")

    assert check.misplaced_quotes(truth.load(name), texts) == []


def test_every_quote_of_the_scan_is_in_its_clean_text() -> None:
    record = truth.load(generate.SCAN)

    assert record.page_texts is not None
    assert check.misplaced_quotes(record, record.page_texts) == []


@pytest.mark.parametrize("name", ALL_RECORDS)
def test_every_page_is_assigned_or_reported_as_unassigned(name: str) -> None:
    record = truth.load(name)

    assigned = {page for encounter in record.encounters for page in encounter.pages}
    others = [
        *record.unassigned_pages,
        *record.blank_pages,
        *record.unsupported_language_pages,
    ]

    assert sorted([*assigned, *others]) == list(range(1, record.pages + 1))


@pytest.mark.parametrize("name", ALL_RECORDS)
def test_an_encounters_spans_and_entities_stay_on_its_pages(name: str) -> None:
    for encounter in truth.load(name).encounters:
        assert [span.page for span in encounter.spans] == encounter.pages
        assert {entity.page for entity in encounter.entities} <= set(encounter.pages)


def test_the_records_have_the_shapes_that_they_are_made_for() -> None:
    lab, visits, long = (truth.load(n) for n in ("lab_5p_8enc", "visits_20p_4enc", "long_72p"))

    shared = [sum(page in e.pages for e in lab.encounters) for page in range(1, 6)]

    assert (lab.pages, len(lab.encounters), max(shared)) == (5, 8, 3)
    assert [len(e.entities) for e in lab.encounters if len(e.pages) == 2] == [38]
    assert [e.pages for e in visits.encounters] == [
        list(range(first, first + 5)) for first in (1, 6, 11, 16)
    ]
    assert (long.pages, max(len(e.pages) for e in long.encounters)) == (72, 30)


def test_the_trap_record_holds_one_page_of_each_trap() -> None:
    traps = truth.load("traps_10p")

    mismatched = [e.pages for e in traps.encounters if e.patient_mismatch]
    same_day = [e.facility for e in traps.encounters if f"{e.date_start}" == "2023-03-17"]

    assert mismatched == [[6]]
    assert len(set(same_day)) == 2
    assert (traps.blank_pages, traps.unsupported_language_pages) == ([7], [8])
    assert "02/29/2001" in check.page_texts(truth.HERE / "traps_10p.pdf")[1]


def test_truth_and_pipeline_speak_of_the_same_categories_and_types() -> None:
    assert set(get_args(truth.Category)) == set(get_args(schemas.Category))
    assert set(get_args(truth.EncounterType)) <= set(get_args(schemas.EncounterType))


def test_the_samples_stay_small() -> None:
    sizes = [path.stat().st_size for path in truth.HERE.glob("*.pdf")]

    assert sum(sizes) < 4_000_000


@pytest.mark.parametrize(("pages", "encounters"), [(1, 1), (7, 7), (40, 3)])
def test_a_bulk_record_has_the_pages_and_encounters_asked_for(pages: int, encounters: int) -> None:
    book = bulk.make_book(pages, encounters, seed=5)

    record = book.record("bulk.pdf")

    assert (record.pages, len(record.encounters)) == (pages, encounters)
    assert record.unassigned_pages == []
    assert check.misplaced_quotes(record, check.page_texts(book.pdf())) == []


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert bulk.make_text_record(6, 2, seed=3) == bulk.make_text_record(6, 2, seed=3)
    assert bulk.make_text_record(6, 2, seed=3) != bulk.make_text_record(6, 2, seed=4)


def test_a_bulk_record_with_more_encounters_than_pages_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        bulk.make_text_record(3, 4)


def test_markup_prints_its_parts_and_reads_them_as_an_entity() -> None:
    printed, found = markup.read("Start {m|apixaban;5 mg;PO;BID}, no {s-|cough}; {v|SpO2;94%}.")

    assert printed == "Start apixaban 5 mg PO BID, no cough; SpO2 94%."
    assert [(m.category, m.assertion) for m in found] == [
        ("medication", "present"),
        ("symptom", "negated"),
        ("vital", "present"),
    ]
    assert found[0].attributes == {"dose": "5 mg", "route": "PO", "frequency": "BID"}
    assert found[2].attributes == {"value": "94", "unit": "%"}


def _thumbnails(pdf: bytes) -> list[Image.Image]:
    document = pypdfium2.PdfDocument(io.BytesIO(pdf))
    try:
        return [page.render(scale=0.1).to_pil().convert("L") for page in document]
    finally:
        document.close()


def _pixels(image: Image.Image) -> bytes:
    return image.tobytes()
