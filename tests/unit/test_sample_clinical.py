"""The clinical truth of the samples is consistent, and the comparison finds every deviation."""

from __future__ import annotations

import ast
import dataclasses
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.clinical import attributes as contract
from pipeline.codes.loaders.icd10cm import Icd10Cm
from pipeline.codes.loaders.rows import CodeRow
from samples import generate, truth
from samples.clinical import codes, compare, values
from samples.clinical.compare import StoredEntity, StoredItem, StoredResults, StoredSentence

NAMES = [*sorted(generate.TEXT_RECORDS), generate.SCAN]
CLINICAL = Path(compare.__file__).parent


def _chosen(value: Any) -> Any:
    """Return a value with the first alternative wherever the truth allows several."""
    if isinstance(value, Mapping):
        if "one_of" in value:
            return value["one_of"][0]
        return {key: _chosen(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_chosen(each) for each in value]
    return value


def _entities(record: truth.Record) -> Iterator[tuple[truth.EntityTruth, StoredEntity]]:
    for encounter in record.encounters:
        for entity in encounter.entities:
            assert entity.clinical is not None
            code = entity.clinical.codes[0]
            yield (
                entity,
                StoredEntity(
                    id=uuid.uuid4(),
                    encounter=encounter.index,
                    category=entity.category,
                    page=entity.page,
                    name=entity.name,
                    quote=entity.quote,
                    value=entity.value,
                    dose=entity.dose,
                    step=entity.step,
                    attributes=_chosen(entity.clinical.attributes),
                    code=code,
                    candidates=(code,) if code else (),
                ),
            )


@pytest.fixture(scope="module", params=NAMES)
def record(request: pytest.FixtureRequest) -> truth.Record:
    return truth.load(request.param)


def test_every_entity_has_clinical_truth(record: truth.Record) -> None:
    assert all(e.clinical for encounter in record.encounters for e in encounter.entities)


def test_every_required_value_fits_the_contract_of_its_category(record: truth.Record) -> None:
    for entity, stored in _entities(record):
        model = contract.ATTRIBUTES[entity.category]

        model.model_validate(_printed(stored.attributes))

        assert entity.clinical is not None
        model.model_validate(_printed(_chosen(entity.clinical.allowed)))


def _printed(content: Any) -> Any:
    """Return the content with the printed text that the contract requires of each part."""
    if isinstance(content, list):
        return [_printed(each) for each in content]
    if not isinstance(content, Mapping):
        return content
    found = {key: _printed(each) for key, each in content.items()}
    for key in ("value", "converted", "dose", "daily_dose", "previous_dose", "timing"):
        if isinstance(found.get(key), dict):
            found[key]["printed"] = ""
    for key in ("strength", "components"):
        found[key] = [{**each, "printed": ""} for each in found[key]] if key in found else []
        if not found[key]:
            del found[key]
    if "reference_range" in found:
        found["reference_range"]["printed"] = ""
    return found


def test_the_right_results_have_no_difference(record: truth.Record) -> None:
    stored = StoredResults(entities=[each for _, each in _entities(record)])

    assert compare.differences(record, stored) == []


def test_every_altered_number_is_found(record: truth.Record) -> None:
    entities = [_with_another_number(each) for _, each in _entities(record)]

    found = compare.differences(record, StoredResults(entities=[each for each, _ in entities]))

    assert len(found) == sum(changed for _, changed in entities) > 0


def _with_another_number(entity: StoredEntity) -> tuple[StoredEntity, bool]:
    for part in ("value", "dose"):
        quantity = entity.attributes.get(part, {})
        if "number" in quantity:
            other = {**quantity, "number": quantity["number"] + "1"}
            return dataclasses.replace(entity, attributes={**entity.attributes, part: other}), True
    return entity, False


def test_a_wrong_code_a_missing_row_and_an_invented_value_are_found() -> None:
    record = truth.load("scan_5p")
    entities = [each for _, each in _entities(record)]
    coded = next(i for i, e in enumerate(entities) if e.code == "ICD10CM|R51.9")
    entities[coded] = dataclasses.replace(
        entities[coded], code="ICD10CM|I63.9", candidates=("ICD10CM|R51.9",)
    )
    entities[5] = dataclasses.replace(entities[5], enriched=False)
    entities[7] = dataclasses.replace(entities[7], attributes={"onset": "2020"}, doubted=True)

    found = compare.differences(record, StoredResults(entities=entities))

    assert len(found) >= 4
    assert any("the code is ICD10CM|I63.9" in each.what for each in found)
    assert any("the shortlist does not contain" in each.what for each in found)
    assert any("has no row" in each.what for each in found)
    assert any("onset is 2020" in each.what and each.doubted for each in found)


def test_lists_are_compared_with_entities_encounters_and_contradictions() -> None:
    record = truth.load("visits_20p_4enc")
    pairs = list(_entities(record))
    assert record.lists is not None
    problems = {each.name for each in record.lists.problems}
    items = _items(pairs, problems)
    aspirin = [e.id for t, e in pairs if t.name == "aspirin" and e.encounter == 0]
    metoprolol = [e.id for t, e in pairs if t.name == "metoprolol succinate" and e.encounter == 1]
    items = [
        dataclasses.replace(item, contradicted=(frozenset(ids),))
        if set(ids) & set(item.entity_ids)
        else item
        for item in items
        for ids in [aspirin if set(aspirin) & set(item.entity_ids) else metoprolol]
    ]
    entities = [e for _, e in pairs]

    assert compare.differences(record, StoredResults(entities=entities, items=items)) == []
    joined = [*items, dataclasses.replace(items[0], entity_ids=tuple(e.id for e in entities))]
    for wrong in (items[1:], joined, _items(pairs, problems)):
        assert compare.differences(record, StoredResults(entities=entities, items=wrong))


def _items(
    pairs: list[tuple[truth.EntityTruth, StoredEntity]], problems: set[str]
) -> list[StoredItem]:
    kinds = {
        "condition": "problem",
        "medication": "medication",
        "allergy": "allergy",
        "lab": "lab_series",
    }
    groups: dict[tuple[str, str], list[uuid.UUID]] = {}
    for entity, stored in pairs:
        listed = entity.category != "condition" or entity.name.casefold() in problems
        if entity.category in kinds and listed:
            groups.setdefault((kinds[entity.category], entity.name.casefold()), []).append(
                stored.id
            )
    return [StoredItem(kind=kind, entity_ids=tuple(ids)) for (kind, _), ids in groups.items()]


def test_narratives_are_compared_fact_by_fact() -> None:
    record = truth.load("scan_5p")
    entities = [each for _, each in _entities(record)]

    def found(*texts: str, supported: bool = True) -> list[str]:
        sentences = [StoredSentence(encounter=0, text=t, supported=supported) for t in texts]
        stored = StoredResults(entities=entities, sentences=sentences)
        return [str(d) for d in compare.differences(record, stored) if "encounter 0" in str(d)]

    right = ("Hypertension; losartan 100 mg daily.", "Asthma is mild. No fever.")

    assert found(*right) == []
    assert len(found(*right, supported=False)) == 3
    assert found(*right, "She had a stroke.") == ["narrative of encounter 0: stroke is affirmed"]


def test_every_icd_code_of_the_truth_exists() -> None:
    tables = (
        codes.CONDITIONS, codes.SYMPTOMS, codes.HISTORICAL, codes.FAMILY, codes.ALLERGIES,
    )  # fmt: skip
    named = {code for table in tables for accepted in table.values() for code in accepted if code}

    existing = {row.code for row in Icd10Cm().rows() if isinstance(row, CodeRow)}

    assert named - existing == set()


def test_every_loinc_number_has_its_check_digit() -> None:
    numbers = {*codes.LABS.values(), *(c for v in codes.VITALS.values() for c in v if c)}

    assert {number for number in numbers if not _checked(number)} == set()
    assert set(codes.LABS.values()) == set(values.SI)


def _checked(number: str) -> bool:
    """Return whether the last digit is the Luhn digit of the others."""
    digits, _, check = number.partition("-")
    total = 0
    for place, digit in enumerate(reversed(digits)):
        amount = int(digit) * (2 if place % 2 == 0 else 1)
        total += amount - 9 if amount > 9 else amount
    return (10 - total % 10) % 10 == int(check)


def test_the_truth_imports_nothing_of_the_pipeline() -> None:
    sources = [p for p in CLINICAL.glob("*.py") if p.name != "stored.py"]
    imported = {
        node.module or ""
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
    }

    assert not any(name.startswith("pipeline") for name in imported)
