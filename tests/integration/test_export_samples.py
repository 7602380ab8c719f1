"""Exports of the sample records: valid FHIR for two models of R4, and nothing lost on the way."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from arro3.io import read_parquet
from fhir.resources.R4B.bundle import Bundle
from fhirclient.models import bundle as fhirclient_bundle

from pipeline.clinical.page_text.marks import blanked
from pipeline.exports.formats import Format
from pipeline.exports.html_page import HELD_NOTE
from pipeline.models import (
    EnrichedEntity,
    Entity,
    NarrativeSentence,
    Page,
    RecordListItem,
    ShellFile,
)
from pipeline.models.selectors import held_spans
from pipeline.operations.review.labels import truth_of
from tests.support import exported, fhir_rows, records

pytestmark = pytest.mark.xdist_group("exports")

COLUMNS = (
    "category", "name", "page_number", "page_end", "char_start", "char_end", "quote", "alignment",
    "accepted", "value", "unit", "reference_range", "abnormal_flag", "strength", "dose",
    "previous_dose", "route", "frequency", "status", "step", "reaction", "negated", "temporality",
    "certainty", "experiencer", "zone_type", "engine", "rule", "entity_index", "second_reading",
)  # fmt: skip
SLOW = pytest.mark.slow(reason="runs a long sample through every pass")


@pytest.fixture(
    scope="module",
    params=[
        "LAB",
        "TRAPS",
        pytest.param("SCAN", marks=SLOW),
        pytest.param("VISITS", marks=SLOW),
        pytest.param("LONG", marks=SLOW),
    ],
)
def record_id(request: pytest.FixtureRequest, module_db: str) -> UUID:
    exported.load_codes()
    return exported.completed(getattr(records, request.param))


@pytest.fixture(scope="module")
def bundle(record_id: UUID) -> dict[str, Any]:
    return exported.bundle_of(record_id)


@pytest.fixture(scope="module")
def rows(record_id: UUID) -> Mapping[str, Entity]:
    return {str(each.id): each for each in Entity.objects.filter(shell_file_id=record_id)}


def test_two_independent_models_of_r4_accept_the_bundle(bundle: dict[str, Any]) -> None:
    entries = {key: value for key, value in bundle.items() if not key.startswith("_")}

    Bundle.model_validate(entries)
    fhirclient_bundle.Bundle(exported.plain(entries), strict=True)


def test_every_reference_of_the_document_is_in_the_document(bundle: dict[str, Any]) -> None:
    text = json.dumps(bundle["entry"], default=str)

    named = set(re.findall(r'"reference": "(urn:uuid:[^"]+)"', text))

    urls = [entry["fullUrl"] for entry in bundle["entry"]]
    assert len(urls) == len(set(urls))
    assert named <= set(urls)
    assert bundle["entry"][0]["resource"]["resourceType"] == "Composition"


def test_every_value_and_quote_comes_back_from_the_bundle(
    bundle: dict[str, Any], rows: Mapping[str, Entity]
) -> None:
    enriched = {
        str(each.entity_id): each for each in EnrichedEntity.objects.filter(entity_id__in=rows)
    }

    found = fhir_rows.entities(bundle)

    assert found.keys() == rows.keys()
    for id_, row in rows.items():
        assert {c: found[id_].get(c) for c in COLUMNS} == {c: getattr(row, c) for c in COLUMNS}
        later = enriched[id_]
        assert found[id_]["attributes"] == fhir_rows.stated(later.attributes)
        assert [found[id_][c] for c in ("code_system", "code", "code_display")] == [
            later.code_system,
            later.code,
            later.code_display,
        ]
        assert found[id_]["flags"] == list(dict.fromkeys([*row.review_flags, *later.flags]))


def test_no_relative_and_no_condition_of_the_text_becomes_a_finding(
    bundle: dict[str, Any], rows: Mapping[str, Entity]
) -> None:
    urls = fhir_rows.by_url(bundle)
    for id_, row in rows.items():
        kind = urls[f"urn:uuid:{id_}"]["resourceType"]
        if row.experiencer not in (None, "patient"):
            assert kind in ("FamilyMemberHistory", "Basic")
        if row.certainty == "hypothetical" or not row.accepted:
            assert kind == "Basic"


def test_supported_sentences_and_contradictions_come_back_and_no_other(
    bundle: dict[str, Any], record_id: UUID
) -> None:
    stored = NarrativeSentence.objects.filter(shell_file_id=record_id, supported=True)
    items = RecordListItem.objects.filter(shell_file_id=record_id).order_by("kind", "item_index")

    assert sorted(fhir_rows.sentences(bundle)) == sorted(
        (str(each.id), each.text, [str(one) for one in each.entity_ids]) for each in stored
    )
    assert fhir_rows.contradictions(bundle) == [
        (each["kind"], each["message"], [str(one) for one in each["entity_ids"]])
        for item in items
        for each in item.contradictions
    ]


def test_ids_of_resources_are_the_same_in_every_export(
    bundle: dict[str, Any], record_id: UUID
) -> None:
    again = exported.bundle_of(record_id)

    assert [each["fullUrl"] for each in again["entry"]] == [
        each["fullUrl"] for each in bundle["entry"]
    ]


def test_pair_and_csv_hold_every_entity_with_its_quote(
    record_id: UUID, rows: Mapping[str, Entity], tmp_path: Path
) -> None:
    manifest = json.loads(exported.exported(record_id, Format.PAIR, tmp_path).read_text("utf-8"))
    text = json.loads((tmp_path / manifest["json"]).read_text("utf-8"))
    parquet = read_parquet(tmp_path / manifest["parquet"]).read_all()
    path = exported.exported(record_id, Format.CSV, tmp_path)
    table = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))

    quotes = {id_: row.quote for id_, row in rows.items()}
    assert {each["entity_id"]: each["quote"] for each in text["entities"]} == quotes
    ids, found = parquet["entity_id"].to_pylist(), parquet["quote"].to_pylist()
    assert dict(zip(ids, found, strict=True)) == quotes
    assert {each["entity_id"]: each["quote"].removeprefix("'") for each in table} == {
        id_: quote.removeprefix("'") for id_, quote in quotes.items()
    }


def test_html_shows_the_whole_text_of_each_page_but_for_another_patients(
    record_id: UUID, tmp_path: Path
) -> None:
    made = exported.exported(record_id, Format.HTML, tmp_path).read_text("utf-8")

    shown = [
        re.sub(r"<sup>.*?</sup>|<[^>]+>", "", each)
        for each in re.findall(r"<pre>(.*?)</pre>", made, re.DOTALL)
    ]
    pages = Page.objects.filter(shell_file_id=record_id).order_by("page_number")
    assert len(shown) == pages.count()
    held = held_spans(record_id)
    assert [_words(each) for each in shown] == [
        _words(blanked(page.text, held.get(page.page_number, ()))) for page in pages
    ]
    assert made.count(HELD_NOTE) == len(held)


def test_no_export_gives_another_patients_text_away(record_id: UUID, tmp_path: Path) -> None:
    texts = dict(Page.objects.filter(shell_file_id=record_id).values_list("page_number", "text"))
    held = {
        word
        for page, spans in held_spans(record_id).items()
        for start, end in spans
        for word in _words(texts[page][start:end])
    }
    for number, text in texts.items():
        held -= set(_words(blanked(text, held_spans(record_id).get(number, ()))))

    for form in Format:
        exported.exported(record_id, form, tmp_path)

    exports = [path for path in tmp_path.iterdir() if path.suffix != ".parquet"]
    truth, _ = truth_of(record_id)
    written = "".join(path.read_text("utf-8") for path in exports) + json.dumps(truth)
    assert len(exports) == len(Format) + 1
    # Short words and numbers are part of ids.
    found = {word for word in held if len(word) > 5 and word in written}
    assert found <= {"Laboratory", "Reference"}, "only words that the formats themselves use"


def test_only_the_sample_with_another_patients_page_has_held_text(record_id: UUID) -> None:
    codes = {each["code"] for each in ShellFile.objects.get(id=record_id).warnings}

    assert bool(held_spans(record_id)) == ("PATIENT_MISMATCH" in codes)


def _words(text: str) -> list[str]:
    """Return the plain words: the page shows some characters as entities or codes."""
    return re.findall(r"[A-Za-z0-9]{2,}", re.sub(r"&[#a-z0-9]+;|\\u[0-9a-f]{4}", " ", text))
