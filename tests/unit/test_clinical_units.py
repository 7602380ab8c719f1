"""Tests of printed units: each unit of our lists has a valid UCUM code or none."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ucumvert import get_ucum_parser

from pipeline.clinical.medications import sig
from pipeline.clinical.units import UnitContext, ucum_code
from pipeline.clinical.units.unit_table import codes
from pipeline.providers.local.labs.patterns import UNIT
from pipeline.providers.local.names.word_lists import rows
from pipeline.providers.local.vitals.vital_signs import VITALS

_ROOT = Path(__file__).resolve().parents[2]
_LAB, _VITAL, _MEDICATION = UnitContext.LAB, UnitContext.VITAL, UnitContext.MEDICATION


_GRAMMAR = get_ucum_parser()


@cache
def _is_valid(code: str) -> bool:
    try:
        _GRAMMAR.parse(code)
    except Exception:  # noqa: BLE001  # the parser raises several classes of errors
        return False
    return True


def _lexicon_units() -> list[tuple[str, str]]:
    found = []
    for row in rows("labs.txt"):
        names, units, _, _ = (cell.strip() for cell in row.split(";"))
        for unit in units.split("|"):
            found += [(name.strip(), unit.strip()) for name in names.split("|") if unit.strip()]
    return found


def _sample_units() -> set[tuple[str, str, str]]:
    found = set()

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if node.get("unit") and node.get("category") in ("lab", "vital"):
                found.add((node["category"], node["name"], node["unit"]))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    for path in sorted((_ROOT / "samples").glob("*.truth.json")):
        walk(json.loads(path.read_text("utf-8")))
    return found


def test_the_grammar_of_ucum_tells_codes_from_other_text() -> None:
    assert not any(_is_valid(text) for text in ("IU/mL", "bpm", "MEQ/L", "lbs", "M/uL"))


@pytest.mark.parametrize("code", sorted(codes()))
def test_every_code_of_the_table_is_valid(code: str) -> None:
    assert _is_valid(code)


@pytest.mark.parametrize("row", sorted(_sample_units()))
def test_every_unit_of_the_samples_has_a_code(row: tuple[str, str, str]) -> None:
    category, name, unit = row

    code = ucum_code(unit, context=UnitContext(category), name=name)

    assert code is not None
    assert _is_valid(code)


def test_units_of_the_lab_lexicon_have_a_code_unless_they_have_two_meanings() -> None:
    unknown = {unit for name, unit in _lexicon_units() if ucum_code(unit, name=name) is None}

    assert unknown <= {"U/mL", "U/L"}
    for name, unit in _lexicon_units():
        code = ucum_code(unit, name=name)
        assert code is None or _is_valid(code)


_ENZYMES = ("AST", "SGPT", "Alk Phos", "GGT", "LDH", "Lipase", "Amylase", "CPK", "CK-MB")


@pytest.mark.parametrize("name", _ENZYMES)
def test_the_unit_of_an_enzyme_is_the_enzyme_unit(name: str) -> None:
    assert ucum_code("U/L", name=name) == "U/L"


@pytest.mark.parametrize("name", ["", "CA 125", "Insulin", "Anti-TPO", "GAD antibody", "tTG IgA"])
def test_a_unit_of_no_enzyme_has_no_code(name: str) -> None:
    assert ucum_code("U/mL", name=name) is None


@given(st.from_regex(UNIT, fullmatch=True))
@settings(max_examples=400)
def test_a_unit_that_the_lab_rules_read_has_a_valid_code_or_none(printed: str) -> None:
    code = ucum_code(printed, name="ALT")

    assert code is None or _is_valid(code)


@given(st.sampled_from(VITALS).flatmap(lambda v: st.tuples(st.just(v.key), _prints(v.unit))))
@settings(max_examples=400)
def test_every_unit_that_the_vital_rules_read_has_a_code(row: tuple[str, str]) -> None:
    name, printed = row

    code = ucum_code(printed, context=_VITAL, name=name)

    if re.fullmatch(r"[°º]|deg(?:rees?)?", printed.strip(), re.I):
        assert code is None
    else:
        assert code is not None
        assert _is_valid(code)


def _prints(pattern: str) -> st.SearchStrategy[str]:
    """Return the prints of a pattern in lower case, upper case and as written."""
    prints = st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)
    return prints if pattern != "(?!)" else st.just("%")


@given(st.from_regex(re.compile(sig._UNIT, re.ASCII), fullmatch=True))  # its list
@settings(max_examples=400)
def test_a_unit_that_the_medication_rules_read_has_a_valid_code_or_none(printed: str) -> None:
    code = ucum_code(printed, context=_MEDICATION)

    assert code is None or _is_valid(code)
    if code is None:
        assert re.search(r"\d*\.\d|0|/act|[ ]", printed) or "/" in printed


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("mg/dL", "mg/dL"),
        ("MG/DL", "mg/dL"),
        ("MEQ/L", "meq/L"),
        ("K/uL", "10*3/uL"),
        ("k/ul", "10*3/uL"),
        ("x10^3/uL", "10*3/uL"),
        ("x10E3/uL", "10*3/uL"),
        ("10*3/uL", "10*3/uL"),
        ("10³/µL", "10*3/uL"),
        ("x 10(3)/mcL", "10*3/uL"),
        ("10^9/L", "10*9/L"),
        ("thou/mm3", "10*3/mm3"),
        ("Tsd./µl", "10*3/uL"),
        ("M/uL", "10*6/uL"),
        ("million/uL", "10*6/uL"),
        ("IU/mL", "[IU]/mL"),
        ("[IU]/mL", "[IU]/mL"),
        ("mIU/L", "m[IU]/L"),
        ("MIU/ML", "m[IU]/mL"),
        ("µIU/mL", "u[IU]/mL"),
        ("μg/L", "ug/L"),
        ("mcg/mL", "ug/mL"),
        ("/HPF", "/[HPF]"),
        ("per hpf", "/[HPF]"),
        ("sec", "s"),
        ("mm/hr", "mm/h"),
        ("mL/min/1.73 m²", "mL/min/{1.73_m2}"),
        ("mg/g creat", "mg/g{creat}"),
        ("mg/24 h", "mg/(24.h)"),
        ("ug/mL FEU", "ug{FEU}/mL"),
        ("mOsm/kg H2O", "mosm/kg"),
        ("log10 copies/mL", "{Log_copies}/mL"),
        ("mm Hg", "mm[Hg]"),
        ("UG/DL", "ug/dL"),
        ("UIU/ML", "u[IU]/mL"),
        ("M/CUMM", "10*6/mm3"),
        ("x10(9)/L", "10*9/L"),
        ("x10³/mm³", "10*3/mm3"),
        ("Giga/L", "10*9/L"),
        ("mcg/mg creat", "ug/mg{creat}"),
        ("g/100mL", "g/(100.mL)"),
        ("mL/min/1.73 sq m", "mL/min/{1.73_m2}"),
        ("meq/L.", "meq/L"),
    ],
)
def test_a_lab_unit_has_the_code_of_ucum(printed: str, code: str) -> None:
    assert ucum_code(printed) == code


@pytest.mark.parametrize(
    "printed",
    [
        "K",
        "M",
        "g%",
        "mg%",
        "mil/uL",
        "m/uL",
        "MIU/L",
        "MU/L",
        "mM",
        "uM",
        "S",
        "AU/mL",
        "BAU/mL",
        "EU/dL",
        "G/L",
        "G/l",
        "T/L",
        "vol%",
        "kU/L",
        "x10E+03/uL",
        "U",
        "U/L",
        "#",
        "°",
        "in",
        "mg/",
        "/",
        "",
        "10*5",
        "10^99/L",
        "mg/dL extra",
        "x" * 10_000,
        "mg/٥ mL",
    ],
)
def test_a_print_with_two_meanings_or_none_has_no_code(printed: str) -> None:
    assert ucum_code(printed) is None


def test_the_analyte_decides_between_two_meanings() -> None:
    assert ucum_code("G/L", name="Leukozyten") == "10*9/L"
    assert ucum_code("G/L", name="ALBUMIN") == "g/L"
    assert ucum_code("g/L", name="WBC") is None
    assert ucum_code("T/L", name="RBC") == "10*12/L"
    assert ucum_code("m/uL", name="RBC") == "10*6/uL"
    assert ucum_code("EU/dL", name="Urobilinogen") == "{Ehrlich'U}/dL"
    assert ucum_code("IU/L", name="ALT") == "[IU]/L"
    assert ucum_code("L", name="Sodium") is None
    assert ucum_code("L", name="Urine volume") == "L"


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("bpm", "/min"),
        ("mmHg", "mm[Hg]"),
        ("°F", "[degF]"),
        ("C", "Cel"),
        ("f", "[degF]"),
        ("Lbs.", "[lb_av]"),
        ("resp/min", "/min"),
        ("lbs", "[lb_av]"),
        ("kg/m²", "kg/m2"),
        ("in", "[in_i]"),
    ],
)
def test_a_vital_unit_has_the_code_of_ucum(printed: str, code: str) -> None:
    assert ucum_code(printed, context=_VITAL) == code


def test_a_number_sign_is_a_pound_only_beside_a_weight() -> None:
    assert ucum_code("#", context=_VITAL, name="weight") == "[lb_av]"
    assert ucum_code("#", context=_VITAL, name="pain") is None


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("mcg", "ug"),
        ("MG", "mg"),
        ("units", "{unit}"),
        ("IU", "[IU]"),
        ("tablets", "{tablet}"),
        ("mg/5 mL", "mg/(5.mL)"),
        ("mcg/actuation", "ug/{actuation}"),
        ("units/kg/hr", "{unit}/kg/h"),
        ("cc", "mL"),
    ],
)
def test_a_medication_unit_has_the_code_of_ucum(printed: str, code: str) -> None:
    assert ucum_code(printed, context=_MEDICATION) == code


@given(st.text(max_size=200), st.sampled_from(UnitContext), st.text(max_size=30))
def test_no_text_raises_or_gives_an_invalid_code(
    printed: str, context: UnitContext, name: str
) -> None:
    code = ucum_code(printed, context=context, name=name)

    assert code is None or _is_valid(code)
