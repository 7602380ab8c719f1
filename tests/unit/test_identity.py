"""The comparison of printed identifiers tells whether two sets name one person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.identity import (
    Agreement,
    Identity,
    combine,
    compare,
    compare_digests,
    digests,
    distinct,
    dominant,
    filed_under,
    sought_under,
)

KEY = b"a key of the installation"
AGREE, DISAGREE, UNKNOWN = Agreement.AGREE, Agreement.DISAGREE, Agreement.UNKNOWN


def person(name: str | None = None, born: str | None = None, number: str | None = None) -> Identity:
    return Identity(name=name, birth_date=born, identifier=number)


JANE = person("Doe, Jane A", "1950-03-14", "MRN-00481516")

_TABLE = [
    # the same person, printed differently
    (JANE, person("Jane Doe", "1950-03-14"), AGREE),
    (JANE, person("DOE, JANE ANN", "1950-03-14", "481516"), AGREE),
    (JANE, person("Mrs. Jane A. Doe", None, "00481516"), AGREE),
    (JANE, person("Doe Jane", "1950-03-14"), AGREE),
    (JANE, person("J. Doe", "1950-03-14"), AGREE),
    (JANE, person("Jane Doe"), AGREE),
    (JANE, person(None, "1950-03-14", "00481516"), AGREE),
    (JANE, person(None, None, "0048I5I6"), AGREE),
    (JANE, person("Jane D0e", "1950-03-14"), AGREE),
    (person("Garcia-Lopez, María"), person("Maria Garcia Lopez"), AGREE),
    (person("O'Brien, Pat"), person("Pat O’Brien"), AGREE),
    (person("Anders, Kim", "1961-01-02"), person("ANDERS KIM", "1961-01-02"), AGREE),
    (person("Achterberg, Rosalind M."), person("Rosalind M. Achterberg"), AGREE),
    # another hospital's number alone is no mismatch
    (JANE, person("Jane Doe", "1950-03-14", "77-123456"), AGREE),
    (JANE, person(None, "1950-03-14", "77-123456"), UNKNOWN),
    # slips of a scanner, where all else agrees
    (JANE, person("Jane Doe", "1950-03-15", "00481516"), AGREE),
    (JANE, person("Jane Doe", "1950-03-15"), DISAGREE),
    (JANE, person("Janet Doe", "1950-03-14", "00481516"), AGREE),
    (JANE, person("Jane Miller", "1950-03-14", "00481516"), AGREE),
    (JANE, person("Jane Miller", "1950-03-14"), DISAGREE),
    (person("Valtierra, Ottoline R."), person("Valtiera, Ottolinc R."), UNKNOWN),
    (
        person("Valtierra, Ottoline", "1952-04-30"),
        person("Valtiera, Ottoline", "1952-04-30"),
        AGREE,
    ),
    (
        person("Valtierra, Ottoline", None, "77"),
        person("Valtiera, Ottoline", None, "123456"),
        UNKNOWN,
    ),
    (JANE, person("Jane Doe", None, "00481576"), UNKNOWN),
    (JANE, person("Jane Doe", None, "48516"), UNKNOWN),
    (person("Valtierra, Ottoline"), person("Valtierro, Ot.toline"), UNKNOWN),
    (person("Doe, J.A.", "1950-03-14"), JANE, AGREE),
    (person("Okafor-Lind, Desmond A.", "1957-11-02"), person("Desmond A, Okafor-Lind"), UNKNOWN),
    # two people
    (person("Daniel Okonkwo"), person("Daniela Okonkwo"), DISAGREE),
    (
        person("Marian Okonkwo", "2001-05-05", "5001"),
        person("Marion Okonkwo", "2001-05-05", "7002"),
        DISAGREE,
    ),
    (person("Jane Okonkwo", None, "4812"), person("Jane Okonkvo", None, "5779"), DISAGREE),
    (JANE, person("John Doe", "1950-03-14", "00481516"), DISAGREE),
    (JANE, person("Jane Doe", "1978-11-02"), DISAGREE),
    (JANE, person("Jane Doe", None, "99999999"), DISAGREE),
    (JANE, person("Roe, Richard"), DISAGREE),
    (JANE, person(None, "1978-11-02", "555"), DISAGREE),
    (
        person("Achterberg, Rosalind M.", "1949-12-05", "A-558120"),
        person("Achterman, Rosalie J.", "1972-08-23", "A-558210"),
        DISAGREE,
    ),
    (
        person("Kayden Doe", "2010-05-05", "1001"),
        person("Jayden Doe", "2010-05-05", "1002"),
        DISAGREE,
    ),
    (person("Kayden Doe", "2010-05-05"), person("Jayden Doe", "2010-05-05"), DISAGREE),
    (person("John Smith Jr"), person("John Smith Sr"), DISAGREE),
    # too little for a decision
    (JANE, person(), UNKNOWN),
    (JANE, person("J. Doe"), UNKNOWN),
    (JANE, person("UNKNOWN"), UNKNOWN),
    (JANE, person(None, "1950-02-30"), UNKNOWN),
    (JANE, person("Jane Doe", "02/29/2001"), AGREE),
    (person("Thomas James"), person("James Thomas"), UNKNOWN),
]


@pytest.mark.parametrize(("a", "b", "expected"), _TABLE)
def test_identities_are_judged_as_a_careful_clerk_would(
    a: Identity, b: Identity, expected: Agreement
) -> None:
    verdict = compare(a, b)

    assert verdict.agreement is expected
    assert compare(b, a).agreement is expected


@given(
    st.tuples(*[st.one_of(st.none(), st.text(max_size=30))] * 3),
    st.tuples(*[st.one_of(st.none(), st.text(max_size=30))] * 3),
)
def test_any_text_is_compared_symmetrically_and_reasons_hold_none_of_it(
    a: tuple[str | None, str | None, str | None], b: tuple[str | None, str | None, str | None]
) -> None:
    one, other = person(*a), person(*b)

    verdict = compare(one, other)

    assert verdict == compare(other, one)
    assert all(word.replace("_", "").isalpha() and word.islower() for word in verdict.reasons)


def test_an_identity_does_not_print_itself() -> None:
    assert "Doe" not in repr(JANE)


def test_digests_tell_a_patient_without_holding_the_name() -> None:
    known = digests(JANE, KEY)

    assert set(known) == {"name", "dob", "mrn"}
    assert all(len(value) == 64 for value in known.values())
    assert known == digests(person("JANE DOE", "1950-03-14", "481516"), KEY)
    assert known != digests(JANE, b"another key")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (person("Doe, Jane", "1950-03-14"), AGREE),
        (person("Jane Doe", "1950-03-14", "77-1"), AGREE),
        (person("John Doe", "1950-03-14", "00481516"), DISAGREE),
        (person("Jane Doe", "1951-03-14"), DISAGREE),
        (person("J. Doe"), UNKNOWN),
        (person(None, None, "481516"), AGREE),
        (person(), UNKNOWN),
    ],
)
def test_digests_are_judged_by_the_same_rules(seen: Identity, expected: Agreement) -> None:
    assert compare_digests(digests(JANE, KEY), digests(seen, KEY)).agreement is expected


def test_the_records_own_patient_is_the_one_of_most_of_its_text() -> None:
    other = person("Roe, Richard", "1940-01-01")

    own = dominant([(person("Jane Doe"), 50.0), (JANE, 10.0), (other, 30.0), (person(), 900.0)])

    assert own == JANE


def test_no_patient_is_named_where_none_holds_most_of_the_text() -> None:
    assert dominant([(JANE, 10.0), (person("Roe, Richard"), 10.0)]) is None
    assert dominant([]) is None


def test_a_common_name_alone_does_not_decide_between_two_people() -> None:
    young = person("John Smith", "1990-01-01", "1111")
    old = person("John Smith", "1930-01-01", "2222")

    assert dominant([(young, 10.0), (old, 10.0), (person("John Smith"), 100.0)]) is None


def test_statements_of_several_places_join_to_the_fullest_statement() -> None:
    joined = combine([(person("Jane Doe"), 5.0), (person("Doe, Jane A", None, "481516"), 1.0)])

    assert joined == person("Doe, Jane A", None, "481516")


_PRINTED = st.builds(
    person,
    st.sampled_from(
        [
            *(None, "Doe, Jane", "Jane Doe", "Doe Jane", "J. Doe", "Doe", "D0e, Jane A"),
            *("Maria Garcia Lopez", "Garcia-Lopez, Maria", "Garcialopez, María", "Lopez, Maria"),
            "Doe-Roe, Jane",
        ]
    ),
    st.sampled_from([None, "1950-03-14", "1950-03-15", "1980-01-02"]),
    st.sampled_from([None, "MRN-00481516", "481517", "77-123456"]),
)


@given(_PRINTED, _PRINTED)
def test_agreeing_identities_are_found_under_each_others_keys(a: Identity, b: Identity) -> None:
    met = filed_under(a) & sought_under(b)

    assert met or not compare(a, b).agrees


@given(st.lists(st.tuples(_PRINTED, st.integers(1, 3)), max_size=8))
def test_the_records_own_patient_is_who_is_found_by_holding_each_against_all(
    weighted: list[tuple[Identity, int]],
) -> None:
    stated = [(i, w) for i, w in weighted if i.stated]
    stated.sort(
        key=lambda p: (
            *(-p[0].stated, -p[1]),
            *(p[0].name or "", p[0].birth_date or "", p[0].identifier or ""),
        )
    )
    people: list[list[tuple[Identity, int]]] = []
    for identity, weight in stated:
        fits = []
        for known in people:
            judged = [compare(identity, other) for other, _ in known]
            if any(v.agrees for v in judged) and not any(v.disagrees for v in judged):
                fits.append(known)
        if not fits:
            people.append([(identity, weight)])
        elif len(fits) == 1:
            fits[0].append((identity, weight))
    weights = [sum(w for _, w in known) for known in people]
    most = max(weights, default=0)

    found = dominant(weighted)

    mostly = most * 2 > sum(w for _, w in stated)
    assert found == (combine(people[weights.index(most)]) if mostly else None)


def test_identities_that_read_alike_are_one() -> None:
    alike = [JANE, person("DOE, JANE A", "1950-03-14", "481516"), person("unknown"), person("Doe")]

    assert distinct(alike) == [JANE, person("Doe")]


def test_a_name_that_was_read_does_not_print_itself() -> None:
    assert "doe" not in repr(JANE.reading[0]).casefold()
