"""Tests of printed values: one meaning or none."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clinical.numbers import decimal_sign, fraction, plain_number, read_number


@pytest.mark.parametrize(
    ("text", "number", "comparator"),
    [
        ("13.5", "13.5", None),
        (".5", "0.5", None),
        ("-2.5", "-2.5", None),
        ("−2.5", "-2.5", None),
        ("+3.1", "3.1", None),
        ("<0.50", "0.50", "<"),
        ("< 0.50", "0.50", "<"),
        ("≤ 5", "5", "<="),
        ("> or = 60", "60", ">="),
        (">=60", "60", ">="),
        ("less than 5", "5", "<"),
        ("Less than or equal to 3", "3", "<="),
        ("greater than 90", "90", ">"),
        ("1,234.5", "1234.5", None),
        ("1,234,567", "1234567", None),
        ("1.234,5", "1234.5", None),
        ("7,2", "7.2", None),
        ("0,123", "0.123", None),
        ("1.2 x 10^3", "1200", None),
        ("1.2×10³", "1200", None),
        ("1.2E3", "1200", None),
        ("3e-5", "0.00003", None),
        (">10^5", "100000", ">"),
    ],
)
def test_a_number_is_read_with_its_comparator(
    text: str, number: str, comparator: str | None
) -> None:
    found = read_number(text)

    assert (found.number, found.comparator, found.text) == (Decimal(number), comparator, None)


_WORDS = """1:64; <1:64; 1 : 1,280; 2+; +2; +++; (+); 1+ to 2+; Negative; TRACE; Non-Reactive
not detected; A Positive; O neg; no growth after 5 days; TNTC; +/-; Test not performed"""


@pytest.mark.parametrize("text", _WORDS.replace("\n", "; ").split("; "))
def test_a_word_a_titer_and_an_ordinal_are_texts(text: str) -> None:
    found = read_number(text)

    assert (found.number, found.text) == (None, text)


_OPEN = """- -- < <<5 <>5 1..2 1.2.3 1,2,3 1O 98¹ 1'234 12,34,567 1,234 >100,000 2-1 120/80 1/2
1_000 ½ nan inf -inf 1e999 0x10 ١٢ １２ 10^99 ~5 1.2x10 5* 1-2-3 --5 +-5 1e e5"""


@pytest.mark.parametrize(
    "text",
    ["", "1 234", "E. coli", "5 mg", "5 H", "9" * 19, "1" * 10**6, "x" * 10**6, *_OPEN.split()],
    ids=lambda text: text[:12],
)
def test_a_value_without_one_meaning_is_not_read(text: str) -> None:
    assert not read_number(text).is_understood


def test_a_range_has_two_ends_in_order() -> None:
    for text in ("1-2", "1 - 2", "1–2", "1 to 2"):
        found = read_number(text)
        assert (found.number, found.high) == (Decimal(1), Decimal(2))
    negative = read_number("-2 to +2")
    assert (negative.number, negative.high) == (Decimal(-2), Decimal(2))


def test_the_sign_of_the_source_decides_what_a_group_is() -> None:
    assert plain_number("1,234", ".") == 1234
    assert plain_number("1,234", ",") == Decimal("1.234")
    assert plain_number("1.234", ",") == 1234
    assert plain_number("1.234", ".") == Decimal("1.234")
    assert plain_number("1.23", ",") is None


def test_other_numbers_prove_the_decimal_sign() -> None:
    assert decimal_sign("1,234", "0.5-1.5") == "."
    assert decimal_sign("1.234", "0,5-1,5") == ","
    assert decimal_sign("1.234") is None
    assert decimal_sign("1,5", "1.5") is None


def test_fractions_are_read_where_they_are_allowed() -> None:
    assert fraction("½") == Decimal("0.5")
    assert fraction("1½") == fraction("1 1/2") == Decimal("1.5")
    assert fraction("1/3") is None
    assert read_number("1/2", has_fractions=True).number == Decimal("0.5")


@given(st.decimals(-10_000, 10_000, places=2, allow_nan=False))
def test_a_decimal_number_is_given_back(number: Decimal) -> None:
    assert read_number(str(number)).number == number
    assert read_number(str(number).replace(".", ",")).number == number


@given(st.text(max_size=200), st.sampled_from([None, ".", ","]))
def test_no_text_raises_and_every_number_is_finite(text: str, sign: str | None) -> None:
    found = read_number(text, sign=sign)  # type: ignore[arg-type]  # a sign or None

    assert found.number is None or found.number.is_finite()


@given(st.text("0123456789.,+-<>=eE x^/:¹½()", max_size=30))
def test_no_figures_raise_and_a_number_has_only_figures_that_are_printed(text: str) -> None:
    found = read_number(text)

    if found.number is not None and not any(c in "eExX^" for c in text):
        printed = [c for c in text if c.isascii() and c.isdigit() and c != "0"]
        shown = [found.number] if found.high is None else [found.number, found.high]
        read = [c for number in shown for c in f"{number:f}" if c.isdigit() and c != "0"]
        assert read == printed
