"""Tests of structured vital signs: value, unit, components and the metric value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clinical.attributes import Quantity
from pipeline.clinical.vitals import metric
from tests.support.measurements import vital


@pytest.mark.parametrize(
    ("name", "value", "unit", "number", "code"),
    [
        ("HR", "72", "bpm", "72", "/min"),
        ("RR", "16", "/min", "16", "/min"),
        ("SpO2", "97", "%", "97", "%"),
        ("SpO2", "97%", None, "97", "%"),
        ("Temp", "98.6", "°F", "98.6", "[degF]"),
        ("Temp", "101.3 F", None, "101.3", "[degF]"),
        ("Temp", "38.5 C", None, "38.5", "Cel"),
        ("Temp", "37,2", "°C", "37.2", "Cel"),
        ("Temp", "98.6", None, "98.6", None),
        ("BMI", "27.4", "kg/m²", "27.4", "kg/m2"),
        ("weight", "180#", None, "180", "[lb_av]"),
        ("weight", "150 1/2", "lb", "150.5", "[lb_av]"),
        ("weight", "3,250", "g", "3250", "g"),
        ("weight", "3.250 g", None, "3250", "g"),
        ("weight", "3.25", "kg", "3.25", "kg"),
        ("weight", "7 lb 4 oz", None, "116", "[oz_av]"),
        ("weight", "11 st 4 lb", None, "158", "[lb_av]"),
        ("height", "5'10\"", None, "70", "[in_i]"),
        ("height", "5’ 10½”", None, "70.5", "[in_i]"),
        ("height", "5 ft 10 in", None, "70", "[in_i]"),
        ("height", "5 ft 10", "in", "70", "[in_i]"),
        ("height", "6'", None, "6", "[ft_i]"),
        ("pain", "8/10", None, "8", None),
        ("pain", "0", None, "0", None),
    ],
)
def test_a_vital_sign_has_a_number_and_a_code(
    name: str, value: str, unit: str | None, number: str, code: str | None
) -> None:
    found, flags = vital(name, value, unit)

    assert flags == ()
    assert found.value is not None
    assert (found.value.number, found.value.unit) == (Decimal(number), code)
    assert found.effective == "2024-03-05"


@pytest.mark.parametrize(
    ("name", "value", "unit", "number", "code"),
    [
        ("Temp", "98.6", "F", "37", "Cel"),
        ("Temp", "101.3", "°F", "38.5", "Cel"),
        ("weight", "180", "lbs", "81.647", "kg"),
        ("weight", "7 lb 4 oz", None, "3.289", "kg"),
        ("height", "5'10\"", None, "177.8", "cm"),
        ("height", "70", "in", "177.8", "cm"),
    ],
)
def test_a_vital_sign_in_us_units_has_a_metric_value_beside_it(
    name: str, value: str, unit: str | None, number: str, code: str
) -> None:
    found = vital(name, value, unit)[0].converted

    assert found is not None
    assert (found.number, found.unit) == (Decimal(number), code)


@pytest.mark.parametrize(
    ("name", "value", "unit"), [("Temp", "98.6", None), ("weight", "80", "kg"), ("HR", "72", "bpm")]
)
def test_a_value_without_a_us_unit_is_not_converted(
    name: str, value: str, unit: str | None
) -> None:
    assert vital(name, value, unit)[0].converted is None


@pytest.mark.parametrize(
    "value", ["118/76", "118 / 76", "118 over 76", "118/76 mmHg", "118/76mm Hg"]
)
def test_a_blood_pressure_has_two_components(value: str) -> None:
    found, flags = vital("BP", value)

    assert flags == ()
    assert found.value is None
    assert [c.number for c in found.components] == [118, 76]
    unit = "mm[Hg]" if "m" in value else None
    assert {c.unit for c in found.components} == {unit}


def test_a_range_of_pressures_has_both_ends() -> None:
    found, flags = vital("BP", "(101-142)/(55-88)")

    assert flags == ()
    assert [(c.number, c.high) for c in found.components] == [
        (Decimal(101), Decimal(142)),
        (Decimal(55), Decimal(88)),
    ]


def test_a_felt_pressure_has_no_second_number() -> None:
    found, flags = vital("BP", "90/palp", "mmHg")

    assert flags == ()
    assert [(c.printed, c.number) for c in found.components] == [("90", 90), ("palp", None)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BP", "76/118"),
        ("BP", "120s/80s"),
        ("HR", "mid 80s"),
        ("weight", "1,234"),
        ("height", "5 10"),
        ("height", "5'14\""),
        ("weight", "7 lb 20 oz"),
        ("pain", "11/10"),
        ("pain", "severe"),
        ("Temp", "98..6"),
        ("Temp", "٩٨"),
        ("HR", "9" * 10_000),
        ("eye", "20/40"),
    ],
)
def test_a_value_without_one_meaning_is_flagged(name: str, value: str) -> None:
    found, flags = vital(name, value)

    assert flags == ("number_not_understood:value",)
    assert found.converted is None
    assert found.value is None or found.value.number is None
    assert all(c.number is None for c in found.components)


@pytest.mark.parametrize(
    ("name", "value", "number", "code"),
    [
        ("Temp", "98.6 °F (37 °C)", "98.6", "[degF]"),
        ("weight", "72.5 kg (159 lb 13.4 oz)", "72.5", "kg"),
        ("height", "175 cm (5' 8.9\")", "175", "cm"),
    ],
)
def test_an_equal_amount_in_parentheses_is_an_equivalent(
    name: str, value: str, number: str, code: str
) -> None:
    found, flags = vital(name, value)

    assert flags == ()
    assert found.value is not None
    assert (found.value.number, found.value.unit) == (Decimal(number), code)


@pytest.mark.parametrize(
    ("name", "value"),
    [("Temp", "98.6 °F (38 °C)"), ("weight", "72.5 kg (180 lb)"), ("HR", "88 (regular)")],
)
def test_another_amount_in_parentheses_is_flagged(name: str, value: str) -> None:
    found, flags = vital(name, value)

    assert found.value is not None
    assert found.value.number is None
    assert flags == ("number_not_understood:value",)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [("Temp", "98.6", "%"), ("HR", "72", "mmHg"), ("BP", "120/80", "bpm"), ("weight", "80", "cm")],
)
def test_a_unit_of_another_vital_sign_is_flagged(name: str, value: str, unit: str) -> None:
    found, flags = vital(name, value, unit)

    assert flags == ("unit_unknown",)
    assert found.converted is None
    assert all(each.unit is None for each in (found.value, *found.components) if each)


def test_five_ten_is_no_range_of_heights() -> None:
    found, flags = vital("height", "5-10")

    assert found.value is not None
    assert (found.value.number, flags) == (None, ("number_not_understood:value",))


def test_a_bare_degree_is_flagged() -> None:
    found, flags = vital("Temp", "98.6", "°")

    assert flags == ("unit_unknown",)
    assert found.value is not None
    assert (found.value.number, found.value.unit) == (Decimal("98.6"), None)


@given(st.decimals(0, 1_000, places=2, allow_nan=False))
def test_a_metric_value_goes_back_to_the_printed_value(number: Decimal) -> None:
    def read(unit: str) -> Decimal:
        found = metric(Quantity(printed="", number=number, unit=unit))
        assert found is not None
        assert found.number is not None
        return found.number

    assert abs(read("[in_i]") / Decimal("2.54") - number) <= Decimal("0.002")
    assert abs(read("[lb_av]") / Decimal("0.45359237") - number) <= Decimal("0.002")
    assert abs(read("[degF]") * 9 / 5 + 32 - number) <= Decimal("0.01")


_TEXTS = (
    st.none() | st.text(max_size=200) | st.text("0123456789.,/<>-'\"½ ftinlboz°FC%", max_size=30)
)


@given(st.sampled_from(["BP", "Temp", "height", "weight", "pain", "HR", "x"]), _TEXTS, _TEXTS)
def test_no_vital_sign_raises(name: str, value: str | None, unit: str | None) -> None:
    found, _ = vital(name, value, unit)

    assert found.model_validate_json(found.model_dump_json()) == found
