"""Tests of structured laboratory results: value, unit, range, flag and conversion."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from labunits import converters

from pipeline.clinical.attributes import Comparator, Quantity, Range
from pipeline.clinical.lab_conversion import conversions, converted
from pipeline.clinical.ranges import computed_flag, contradicts, read_range
from pipeline.clinical.units import ucum_code
from pipeline.providers.local.labs.patterns import FLAG
from tests.support.measurements import lab

_REFUSED = {
    "2099-0": "1 U/mL is 1,000 U/L, not 1 U/L",
    "2666-6": "1 pg/mL of norepinephrine is 5.91 pmol/L, not nmol/L",
    "15061-5": "U is not the enzyme unit",
    "20448-7": "U is not the enzyme unit",
}
"""Rows of labunits whose units or factor medproc does not use."""


def test_a_row_is_structured_whole() -> None:
    found, flags = lab("Glucose", "126", "MG/DL", "70-99", "H")

    assert flags == ()
    assert found.value == Quantity(
        printed="126", number=Decimal(126), unit="mg/dL", printed_unit="MG/DL"
    )
    assert found.converted is not None
    assert (found.converted.number, found.converted.unit) == (Decimal("6.99426"), "mmol/L")
    assert found.reference_range == Range(printed="70-99", low=Decimal(70), high=Decimal(99))
    assert (found.printed_flag, found.computed_flag) == ("H", "H")
    assert found.effective == "2024-03-05"


@pytest.mark.parametrize("row", converters.analytes(), ids=lambda row: row.loinc_num)
def test_every_conversion_has_the_factor_of_labunits(row: converters.Analyte) -> None:
    conventional = ucum_code(row.traditional_unit, name=row.name)
    si = ucum_code(row.si_unit, name=row.name)
    value = Quantity(printed="7", number=Decimal(7), unit=conventional)

    there = converted(value, name="", loinc=row.loinc_num)

    if row.loinc_num in _REFUSED or conventional == si:
        assert there is None
        return
    assert there is not None
    assert there.unit == si
    assert there.number == Decimal(7) * Decimal(str(row.conversion_factor))
    assert float(there.number) == pytest.approx(converters.to_si_unit(7, row.loinc_num))
    back = converted(there, name="", loinc=row.loinc_num)
    assert back is not None
    assert back.unit == conventional
    assert float(back.number or 0) == pytest.approx(7, rel=1e-5)


def test_all_usable_rows_of_labunits_are_used() -> None:
    same = {
        r.loinc_num
        for r in converters.analytes()
        if ucum_code(r.traditional_unit, name=r.name) == ucum_code(r.si_unit, name=r.name)
    }

    assert {r.loinc_num for r in converters.analytes()} == (
        {c.loinc for c in conversions()} | set(_REFUSED) | same
    )


@pytest.mark.parametrize(
    ("name", "value", "unit", "number", "code"),
    [
        ("BUN", "20", "mg/dL", "7.14", "mmol/L"),
        ("Creatinine", "106", "µmol/L", "1.1991", "mg/dL"),
        ("A1c", "7.2%", None, "0.072", "1"),
        ("Na", "140", "mEq/L", "140", "mmol/L"),
        ("Troponin I", "0.04", "ng/mL", "0.04", "ug/L"),
        ("Mg", "2.0", "mg/dL", "0.8228", "mmol/L"),
        ("AST", "100", "U/L", "1.7", "ukat/L"),
    ],
)
def test_a_name_and_a_unit_that_fit_are_converted(
    name: str, value: str, unit: str | None, number: str, code: str
) -> None:
    found = lab(name, value, unit)[0].converted

    assert found is not None
    assert (found.number, found.unit, found.printed) == (Decimal(number), code, value)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("Urea", "20", "mg/dL"),
        ("Calcium", "9.5", "mg/dL"),
        ("Mg", "0.9", "mmol/L"),
        ("Troponin", "0.04", "ng/mL"),
        ("Glucose", "100", "g/L"),
        ("Glucose", "100", None),
        ("Unknown", "100", "mg/dL"),
        ("Insulin", "10", "uIU/mL"),
        ("ALT", "30", "U/L"),
        ("hs-Troponin I", "12", "ng/L"),
    ],
)
def test_a_name_or_a_unit_that_leaves_the_factor_open_is_not_converted(
    name: str, value: str, unit: str | None
) -> None:
    assert lab(name, value, unit)[0].converted is None


def test_a_conversion_keeps_comparator_and_range() -> None:
    below = lab("Creatinine", "<0.2", "mg/dL")[0].converted
    between = lab("Glucose", "100-200", "mg/dL")[0].converted

    assert below is not None
    assert (below.comparator, below.number) == ("<", Decimal("17.68"))
    assert between is not None
    assert (between.number, between.high) == (Decimal("5.551"), Decimal("11.102"))


@pytest.mark.parametrize(
    ("printed", "low", "high", "open_ends"),
    [
        ("100-199", "100", "199", ()),
        ("0.0 - 0.5", "0.0", "0.5", ()),
        ("3.5–5.1", "3.5", "5.1", ()),
        ("135 to 145", "135", "145", ()),
        ("(62-106)", "62", "106", ()),
        ("[0.6-1.2]", "0.6", "1.2", ()),
        ("Ref: 70-99", "70", "99", ()),
        ("Reference Range: 70-99 mg/dL", "70", "99", ()),
        (">39", "39", None, ("low",)),
        (">=60", "60", None, ()),
        ("> or = 60", "60", None, ()),
        ("<5.7", None, "5.7", ("high",)),
        ("≤ 5", None, "5", ()),
        ("<5.7 %", None, "5.7", ("high",)),
        ("up to 40", None, "40", ()),
        ("up to 40 mg/L", None, "40", ()),
        ("-2.0 - 2.0", "-2.0", "2.0", ()),
        ("-2 - +3", "-2", "3", ()),
        ("4,0-10,0", "4.0", "10.0", ()),
        ("0-0.50 ug/mL FEU", "0", "0.50", ()),
    ],
)
def test_a_reference_range_is_read(
    printed: str, low: str | None, high: str | None, open_ends: tuple[str, ...]
) -> None:
    found = read_range(printed).range

    assert found.printed == printed
    assert found.low == (None if low is None else Decimal(low))
    assert found.high == (None if high is None else Decimal(high))
    assert found.low_is_exclusive == ("low" in open_ends)
    assert found.high_is_exclusive == ("high" in open_ends)


@pytest.mark.parametrize("printed", ["Negative", "NON-REACTIVE", "None seen", "<1:40", "Clear"])
def test_a_range_that_is_a_word_stays_a_word(printed: str) -> None:
    assert read_range(printed).range.text == printed


@pytest.mark.parametrize(
    "printed",
    [
        "M: 13-17 F: 12-16",
        "13.0-17.0 (male)",
        "70-99 fasting",
        "Fasting: 70-99",
        "<200 desirable",
        "40",
        "99-70",
        "0.6-1.2-1.4",
        "see note 1",
        "",
        "-",
        "٧٠-٩٩",
        "1-" * 5_000,
        "Male 13-17",
    ],
)
def test_a_range_with_a_condition_or_without_sense_is_flagged(printed: str) -> None:
    found, flags = lab("X", "14", "mg/dL", printed)

    assert found.computed_flag is None
    assert found.reference_range is None or found.reference_range.low is None
    if printed not in ("", "see note 1"):
        assert flags == ("range_not_understood",)


@pytest.mark.parametrize(
    ("value", "reference", "expected"),
    [
        ("69", "70-99", "L"),
        ("70", "70-99", "N"),
        ("99", "70-99", "N"),
        ("99.1", "70-99", "H"),
        ("5.7", "<5.7", "H"),
        ("5.6", "<5.7", "N"),
        ("5.7", "<=5.7", "N"),
        ("39", ">39", "L"),
        ("40", ">39", "N"),
        ("60", ">=60", "N"),
        (">20.00", "0-0.5", "H"),
        ("<0.50", "0-0.50", "N"),
        ("<0.50", "<0.50", "N"),
        ("<0.51", "<0.50", None),
        ("<10", "5-20", None),
        ("<5", "5-20", "L"),
        ("<=5", "5-20", None),
        (">20", "5-20", "H"),
        (">=20", "5-20", None),
        (">10", "5-20", None),
        (">60", ">60", "N"),
        (">=60", ">60", None),
        ("<1", "-2 - 2", None),
        ("0-5", "0-5", "N"),
        ("0-5", "0-2", None),
        ("5-10", "0-4", "H"),
        ("Negative", "0-5", None),
        ("1:64", "<1:40", None),
        ("12", "Negative", None),
        ("1,234", "70-99", None),
    ],
)
def test_the_flag_is_recomputed_from_the_range(
    value: str, reference: str, expected: str | None
) -> None:
    assert lab("X", value, "mg/dL", reference)[0].computed_flag == expected


def test_a_range_in_another_unit_gives_no_flag() -> None:
    assert lab("Creatinine", "106", "umol/L", "0.6-1.2 mg/dL")[0].computed_flag is None
    assert lab("Creatinine", "1.1", "mg/dL", "0.6-1.2 MG/DL")[0].computed_flag == "N"
    assert lab("Creatinine", "1.1", None, "0.6-1.2 mg/dL")[0].computed_flag is None


@pytest.mark.parametrize(
    ("flag", "consistent"),
    [
        ("H", "H"),
        ("(H)", "H"),
        ("HH", "H"),
        ("High", "H"),
        ("↑", "H"),
        ("H*", "H"),
        ("Critical High", "H"),
        ("L", "L"),
        ("LOW", "L"),
        ("↓", "L"),
        ("N", "N"),
        ("Normal", "N"),
        ("*", "HL"),
        ("A", "HL"),
        ("abnormal", "HL"),
        ("!", "HL"),
        ("CRIT", "HL"),
        ("???", "HLN"),
        ("TNP", "HLN"),
    ],
)
def test_a_printed_flag_contradicts_the_other_directions(flag: str, consistent: str) -> None:
    assert [c for c in ("H", "L", "N") if not contradicts(flag, c)] == sorted(
        consistent, key="HLN".index
    )


def test_a_contradicting_flag_is_reported_and_kept() -> None:
    found, flags = lab("Glucose", "126", "mg/dL", "70-99", "L")

    assert (found.printed_flag, found.computed_flag) == ("L", "H")
    assert flags == ("flag_differs",)


@given(st.from_regex(FLAG, fullmatch=True))
def test_every_flag_that_the_lab_rules_read_is_known(flag: str) -> None:
    words = flag.casefold().split()
    assume(len(words) == 1 or words[0][0] == words[1][0] or words[0][0] in "aec")
    assume(words != ["elevated", "low"])
    assume(len(set(flag) & set("↑↓▲▼")) < 2)

    assert contradicts(flag, "N") or contradicts(flag, "H") or contradicts(flag, "L")


def test_a_unit_without_a_code_is_flagged_and_kept() -> None:
    found, flags = lab("CA 125", "35", "U/mL", "<35")

    assert found.value is not None
    assert found.value.number == Decimal(35)
    assert (found.value.unit, found.value.printed_unit) == (None, "U/mL")
    assert flags == ("unit_unknown",)


def test_a_value_that_is_not_understood_is_flagged_and_kept() -> None:
    found, flags = lab("Lactate", "2..1", "mmol/L")

    assert found.value is not None
    assert (found.value.printed, found.value.number) == ("2..1", None)
    assert flags == ("number_not_understood:value",)


def test_counts_have_no_decimals() -> None:
    for value, reference in (("250,000", "150,000-400,000"), ("250.000", "150.000 - 400.000")):
        found, flags = lab("Platelets", value, "/uL", reference)
        assert found.value is not None
        assert found.value.number == Decimal(250_000)
        assert (found.computed_flag, flags) == ("N", ())


def test_the_range_proves_the_decimal_sign_of_the_value() -> None:
    german = lab("TSH", "1.234", "mIU/L", "0,4-4,0")[0].value
    english = lab("BNP", "1,234", "pg/mL", "0.0-100.0")[0].value

    assert german is not None
    assert german.number == 1234
    assert english is not None
    assert english.number == 1234


def test_an_open_decimal_sign_of_pass_1_leaves_the_number_out() -> None:
    found, flags = lab("TSH", "1.234", "mIU/L", review_flags=("decimal_sign_contradicts:value",))

    assert found.value is not None
    assert found.value.number is None
    assert flags == ("number_not_understood:value",)


_NUMBERS = st.decimals(0, 1_000, places=1, allow_nan=False)


@given(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS)
def test_a_larger_value_never_has_a_lower_flag(
    one: Decimal, other: Decimal, end: Decimal, width: Decimal
) -> None:
    reference = read_range(f"{end}-{end + width}").range
    low, high = (Quantity(printed="", number=n) for n in sorted((one, other)))

    order = ["L", "N", "H"]
    flags = [computed_flag(each, reference) for each in (low, high)]
    assert None not in flags
    assert order.index(flags[0] or "") <= order.index(flags[1] or "")


_COMPARATORS: tuple[Comparator, ...] = ("<", "<=", ">", ">=")
_SIGNS = st.sampled_from(_COMPARATORS)


@given(_NUMBERS, _SIGNS, _NUMBERS, _NUMBERS, _NUMBERS)
def test_a_flag_of_a_bound_holds_for_every_value_within_the_bound(
    number: Decimal, sign: Comparator, end: Decimal, width: Decimal, inside: Decimal
) -> None:
    reference = read_range(f"{end}-{end + width}").range
    bound = Quantity(printed="", number=number, comparator=sign)
    flag = computed_flag(bound, reference)
    is_inside = inside < number if sign[0] == "<" else inside > number

    if flag is not None and (is_inside or (inside == number and len(sign) == 2)):
        assert computed_flag(Quantity(printed="", number=inside), reference) == flag


_TEXTS = st.none() | st.text(max_size=200) | st.text("0123456789.,<>-+ %/mgdLHµ°^()", max_size=40)


@given(st.text(max_size=40), _TEXTS, _TEXTS, _TEXTS, _TEXTS)
def test_no_row_raises(
    name: str, value: str | None, unit: str | None, reference: str | None, flag: str | None
) -> None:
    found, _ = lab(name, value, unit, reference, flag)

    assert found.model_validate_json(found.model_dump_json()) == found


def test_a_comment_that_a_result_is_calculated_is_no_unit() -> None:
    found, flags = lab("LDL-CHOLESTEROL", "139", "mg/dL (calc)", "<100 (calc)", "H")
    ratio, no_flags = lab("CHOL/HDLC RATIO", "5.6", "(calc)", "<5.0 (calc)", "H")

    assert flags == no_flags == lab("Troponin T", "15", "ng/L(hs)", "<14")[1] == ()
    assert found.value is not None
    assert (found.value.unit, found.computed_flag) == ("mg/dL", "H")
    assert ratio.value is not None
    assert (ratio.value.unit, ratio.computed_flag) == (None, "H")


def test_an_expected_word_with_an_abnormal_flag_is_reported() -> None:
    same, same_flags = lab("RPR", "Non-reactive", None, "Non-Reactive", "A")
    other, other_flags = lab("RPR", "Reactive", None, "Non-Reactive", "A")

    assert (same.computed_flag, same_flags) == (None, ("flag_differs",))
    assert (other.computed_flag, other_flags) == (None, ())


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("5.0 x 10^9/L", None),
        ("5.0 x10^9/L", "x10^9/L"),
        ("5.0", "x10^9/L"),
        ("5.0 x 10³/µL", None),
    ],
)
def test_a_power_of_ten_beside_a_volume_belongs_to_the_unit(value: str, unit: str | None) -> None:
    found, flags = lab("WBC", value, unit, "4.0 - 11.0")

    assert flags == ()
    assert found.value is not None
    assert (found.value.number, found.computed_flag) == (Decimal("5.0"), "N")


def test_a_number_with_a_power_is_not_compared_with_a_range_without_one() -> None:
    found, flags = lab("WBC", "5.0 x 10^9", "/L", "4.0 - 11.0")

    assert found.value is not None
    assert found.value.number == Decimal(5_000_000_000)
    assert (found.computed_flag, flags) == (None, ())


@pytest.mark.parametrize("value", ["135 L", "135 H", "135 (L)", "135*", "135↓", "L 135", "135L"])
def test_a_flag_behind_a_value_is_no_unit(value: str) -> None:
    found, flags = lab("Sodium", value, None, "136-145")

    assert found.value is not None
    assert (found.value.number, found.value.unit, found.computed_flag) == (None, None, None)
    assert flags == ("number_not_understood:value",)


def test_several_expected_words_are_one_range() -> None:
    assert read_range("Negative/Trace").range.text == "Negative/Trace"
    assert read_range("None seen or Few").range.text == "None seen or Few"


def test_the_sign_of_the_page_decides_what_a_group_is() -> None:
    english, _ = lab("hCG", "12,345", "mIU/mL", "0-5", "H", decimal_sign=".")
    german, _ = lab("hCG", "12.345", "mIU/mL", "0-5", "H", decimal_sign=",")
    unknown, flags = lab("hCG", "12,345", "mIU/mL", "0-5", "H")

    assert english.value is not None
    assert german.value is not None
    assert unknown.value is not None
    assert (english.value.number, english.computed_flag) == (Decimal(12_345), "H")
    assert german.value.number == Decimal(12_345)
    assert (unknown.value.number, flags) == (None, ("number_not_understood:value",))


def test_two_decimal_signs_in_one_row_leave_the_number_out() -> None:
    found, flags = lab("K", "4,5", "mmol/L", "3.5-5.1")

    assert found.value is not None
    assert (found.value.number, found.computed_flag) == (None, None)
    assert flags == ("number_not_understood:value",)


def test_a_unit_behind_the_value_must_be_the_unit_of_the_row() -> None:
    same, _ = lab("Glucose", "105 MG/DL", "mg/dL")
    other, flags = lab("Glucose", "5.8 mmol/L", "mg/dL")

    assert same.value is not None
    assert (same.value.number, same.value.unit) == (Decimal(105), "mg/dL")
    assert other.value is not None
    assert (other.value.number, other.converted) == (None, None)
    assert flags == ("number_not_understood:value",)
