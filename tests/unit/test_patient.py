"""The patient check follows the table of `patient.py`, row by row."""

from __future__ import annotations

import pytest

from pipeline.core.identity import Identity, digests
from pipeline.core.types import PageText
from pipeline.providers.schemas import FoundEncounter, LineSpan
from pipeline.stages.pass05.reconcile import (
    ChunkReport,
    Reconciliation,
    ReconciliationRule,
    reconcile,
)

KEY = b"a key of the installation"


def person(name: str | None = None, born: str | None = None, number: str | None = None) -> Identity:
    return Identity(name=name, birth_date=born, identifier=number)


JANE = person("Doe, Jane", "1950-03-14")
JOHN = person("Roe, John", "1941-07-02")
MARY = person("Poe, Mary", "1977-11-30")
INITIAL = person("J. Doe")
NUMBER, OTHER_NUMBER = person(number="77-123456"), person(number="SH-9081726")
NO_NAME = person()

MISMATCH, AMBIGUOUS = ReconciliationRule.PATIENT_MISMATCH, ReconciliationRule.PATIENT_AMBIGUOUS
OF_RECORD = ReconciliationRule.PATIENT_OF_RECORD

MOSTLY_JANE = (JANE, JANE, JANE, JOHN)
MOSTLY_JOHN = (JOHN, JOHN, JOHN, JOHN)
SEVERAL = (JOHN, MARY, JANE, JOHN, MARY, JANE)
EITHER_AND_JOHN = (NUMBER, NUMBER, NUMBER, JOHN)
UNCONTRADICTED = (NUMBER, OTHER_NUMBER)


def seen(
    identity: Identity, page: int, *, start: bool = False, end: bool = False, day: int | None = 0
) -> FoundEncounter:
    """Create an encounter of one page, by default on a day of its own."""
    return FoundEncounter(
        encounter_type="office_visit",
        spans=[LineSpan(page=page)],
        open_at_start=start,
        open_at_end=end,
        date_start=None if day is None else f"2024-01-{day or page:02d}",
        facility="North Clinic",
        patient_name=identity.name,
        patient_birth_date=identity.birth_date,
        patient_identifier=identity.identifier,
        rule="split.service_date",
    )


def record_of(*people: Identity, known: Identity | None = None) -> Reconciliation:
    """Reconcile a record with one page for each of these people, submitted for `known`."""
    found = tuple(seen(identity, page) for page, identity in enumerate(people, 1))
    report = ChunkReport(
        chunk_index=0, first_page=1, last_page=len(people), context_page=None, encounters=found
    )
    return reconcile([report], paged(len(people)), known=digested(known), key=KEY)


def paged(count: int) -> dict[int, PageText]:
    return {
        n: PageText(number=n, text=f"text of page {n}", is_blank=False) for n in range(1, count + 1)
    }


def digested(known: Identity | None) -> dict[str, str] | None:
    return None if known is None else digests(known, KEY)


def verdicts(result: Reconciliation) -> list[ReconciliationRule | None]:
    """Return the rule that holds each encounter."""
    rules = {d.subjects[0]: d.rule for d in result.decisions if d.outcome == "held"}
    assert rules.keys() == {e.key for e in result.encounters if e.mismatch}
    return [rules.get(e.key) for e in result.encounters]


_TABLE = [
    # known, the rest of the record, then the decision about an encounter that names
    #                         Jane  John  an initial  no one
    (None, MOSTLY_JANE, (None, MISMATCH, None, None)),
    (None, SEVERAL, (AMBIGUOUS, AMBIGUOUS, AMBIGUOUS, AMBIGUOUS)),
    (None, (), (None, None, None, None)),
    (JANE, MOSTLY_JANE, (None, MISMATCH, None, None)),
    (JANE, MOSTLY_JOHN, (None, MISMATCH, OF_RECORD, OF_RECORD)),
    (JANE, SEVERAL, (None, MISMATCH, AMBIGUOUS, AMBIGUOUS)),
    (JANE, EITHER_AND_JOHN, (None, MISMATCH, AMBIGUOUS, AMBIGUOUS)),
    (JANE, (), (None, MISMATCH, None, None)),
]


@pytest.mark.parametrize(
    ("known", "rest", "subject", "rule"),
    [
        pytest.param(known, rest, subject, rule, id=f"row{row}-{name}")
        for row, (known, rest, rules) in enumerate(_TABLE)
        for name, subject, rule in zip(
            ("patient", "another", "too_little", "no_name"),
            (JANE, JOHN, INITIAL, NO_NAME),
            rules,
            strict=True,
        )
    ],
)
def test_an_encounter_is_published_only_where_it_is_the_patients(
    known: Identity | None,
    rest: tuple[Identity, ...],
    subject: Identity,
    rule: ReconciliationRule | None,
) -> None:
    result = record_of(*rest, subject, known=known)

    assert verdicts(result)[-1] is rule


@pytest.mark.parametrize("known", [None, JANE])
def test_an_encounter_without_contradiction_is_published(known: Identity | None) -> None:
    result = record_of(*UNCONTRADICTED, NO_NAME, known=known)

    assert result.patient is None
    assert verdicts(result) == [None, None, None]


def test_a_record_of_another_is_published_only_where_it_names_the_known_patient() -> None:
    result = record_of(JOHN, JOHN, JOHN, NO_NAME, INITIAL, JANE, known=JANE)

    assert verdicts(result) == [MISMATCH] * 3 + [OF_RECORD, OF_RECORD, None]
    reasons = [d.reason for d in result.decisions if d.rule is OF_RECORD]
    assert reasons == ["names_no_one", "names_too_little"]


def test_a_record_that_names_several_people_publishes_no_ambiguous_name() -> None:
    young = person("Doe, Jane", "1980-01-02")

    result = record_of(JANE, young, person("Doe, Jane"), NO_NAME)

    assert verdicts(result) == [AMBIGUOUS] * 4


@pytest.mark.parametrize("rest", [(), (JOHN,) * 5])
def test_two_who_both_fit_the_known_patient_are_both_held(rest: tuple[Identity, ...]) -> None:
    young = person("Doe, Jane", "1980-01-02")

    result = record_of(*rest, JANE, young, known=person("Doe, Jane"))

    assert verdicts(result)[-2:] == [AMBIGUOUS] * 2


@pytest.mark.parametrize(("known", "named"), [(JANE, JANE), (JANE, JOHN)])
def test_a_part_without_a_name_goes_with_its_encounter(known: Identity, named: Identity) -> None:
    first = ChunkReport(
        chunk_index=0,
        first_page=1,
        last_page=4,
        context_page=None,
        encounters=(*(seen(JOHN, page) for page in (1, 2, 3)), seen(named, 4, end=True)),
    )
    second = ChunkReport(
        chunk_index=1,
        first_page=5,
        last_page=6,
        context_page=4,
        encounters=(seen(NO_NAME, 5, start=True, day=4), seen(NO_NAME, 6)),
    )

    result = reconcile([first, second], paged(6), known=digested(known), key=KEY)

    assert [e.pages for e in result.encounters][-2:] == [(4, 5), (6,)]
    assert verdicts(result)[-2:] == [None if named is known else MISMATCH, OF_RECORD]


@pytest.mark.parametrize(
    ("known", "record", "subject", "rule"),
    [
        pytest.param(
            person("Valtierra, Ottoline", "1952-04-30", "51100"),
            person("Valtierra, Ottoline", "1952-04-30"),
            person("Valtiera, Ottoline", None, "86420"),
            MISMATCH,
            id="a slip is no excuse for another number that the record cannot vouch for",
        ),
        pytest.param(
            person("Valtierra, Ottoline", "1952-04-30"),
            person("Valtierra, Ottoline", "1952-04-30"),
            person("Valtiera, Ottoline", "1952-04-30"),
            None,
            id="a slip in a name that the record states is none of another patient",
        ),
        pytest.param(
            person("Doe, Jane", "1950-03-14", "51100"),
            person("Doe, Jane", "1950-03-14", "86420"),
            person("Doe, Jane", None, "86420"),
            None,
            id="another hospital's number that the record states beside the birth date",
        ),
        pytest.param(
            person("Doe, Jane", "1950-03-14", "51100"),
            person("Doe, Jane", "1950-03-14", "86420"),
            person("Doe, Jane", None, "51100"),
            None,
            id="the known number",
        ),
        pytest.param(
            person("Doe, Jane"),
            person("Doe, Jane", "1950-03-14"),
            person("Doe, Jane", "1980-01-02"),
            MISMATCH,
            id="a namesake whom only the record can tell apart",
        ),
        pytest.param(
            person("Doe, Jane"),
            person("Doe, Jane A"),
            person("Doe, Jane B"),
            MISMATCH,
            id="a middle name that no digest holds",
        ),
    ],
)
def test_known_facts_and_facts_of_the_record_complete_each_other(
    known: Identity, record: Identity, subject: Identity, rule: ReconciliationRule | None
) -> None:
    result = record_of(record, record, record, subject, known=known)

    assert verdicts(result) == [None, None, None, rule]


def test_a_known_patient_in_the_clear_is_judged_by_the_same_table() -> None:
    people = (JOHN, JOHN, NO_NAME, JANE)
    found = tuple(seen(identity, page) for page, identity in enumerate(people, 1))
    report = ChunkReport(
        chunk_index=0, first_page=1, last_page=4, context_page=None, encounters=found
    )

    result = reconcile([report], paged(4), known=JANE)

    assert verdicts(result) == [MISMATCH, MISMATCH, OF_RECORD, None]
