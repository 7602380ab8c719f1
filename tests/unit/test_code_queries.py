"""Queries of the code search, facets of codes, and the rules between them, without a database."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.codes.search import facets as facet
from pipeline.codes.search import rank
from pipeline.codes.search.facets import STATED, Facets, Side
from pipeline.codes.search.query import Query, parse, tokens_of
from pipeline.codes.search.rank import Choice, Found, Lexeme, Match
from pipeline.codes.search.search import SYSTEMS
from pipeline.codes.search.spelling import likeness, near_forms
from pipeline.codes.search.words import words


def query(text: str, category: str = "condition") -> Query:
    return parse(tokens_of(text, category), category)


def said(text: str, category: str = "condition") -> list[list[str]]:
    """Return the alternatives of each slot as texts; a minus marks a negated word."""
    return [
        [" ".join("-" * w.is_negated + w.text for w in option) for option in slot.alternatives]
        for slot in query(text, category).slots
    ]


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("HTN", ["essential", "hypertension"]),
        ("T2DM", ["type", "2", "diabetes", "mellitus"]),
        ("CKD 3b", ["chronic", "kidney", "disease", "stage", "3b"]),
        ("type II DM", ["type", "2", "diabetes", "mellitus"]),
        ("cirrhosis, no ascites", ["cirrhosis", "-ascites"]),
        ("cirrhosis w/o ascites or coma, chronic", ["cirrhosis", "-ascites", "-coma", "chronic"]),
        ("Crohn's of small bowel", ["crohn", "small", "intestine"]),
    ],
)
def test_a_query_has_the_words_of_the_code_systems(text: str, slots: list[str]) -> None:
    assert [options[0] for options in said(text)] == slots


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("L knee OA", Side.LEFT),
        ("knee OA (R)", Side.RIGHT),
        ("left-sided sciatica", Side.LEFT),
        ("b/l knee pain", Side.BOTH),
        ("pain in both knees", Side.BOTH),
        ("right and left knee pain", Side.BOTH),
        ("RLQ pain", Side.RIGHT),
        ("L4 radiculopathy", Side.NONE),
        ("knee pain", Side.NONE),
    ],
)
def test_a_query_states_its_side(text: str, side: Side) -> None:
    assert query(text).facets.side is side


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("severe preeclampsia, 3rd trimester", Facets(trimester="3")),
        ("R ankle sprain, initial visit", Facets(Side.RIGHT, encounter="A")),
        ("ankle sprain, f/u visit", Facets(encounter="D")),
        ("burn of hand, sequela", Facets(encounter="S")),
        ("open type IIIA fx of tibia", Facets(wound="open3")),
        ("closed fx of tibia with nonunion", Facets(wound="closed", healing="nonunion")),
    ],
)
def test_a_query_states_its_facets(text: str, stated: Facets) -> None:
    assert query(text).facets == stated


@pytest.mark.parametrize(
    ("display", "text", "facets"),
    [
        ("Pain in left knee", "Pain in knee", Facets(Side.LEFT)),
        (
            "Sprain of unspecified ligament of right ankle, initial encounter",
            "Sprain of unspecified ligament of ankle",
            Facets(Side.RIGHT, encounter="A"),
        ),
        ("Severe pre-eclampsia, third trimester", "Severe pre-eclampsia", Facets(trimester="3")),
        (
            "Fracture of left tibia, subsequent encounter for open fracture type III with nonunion",
            "Fracture of tibia",
            Facets(Side.LEFT, encounter="D", wound="open3", healing="nonunion"),
        ),
    ],
)
def test_a_display_is_a_text_and_facets(display: str, text: str, facets: Facets) -> None:
    found, stated = facet.of_display(display)

    assert (re.sub(r"\s+", " ", found), stated) == (text, facets)
    assert Facets.read(str(stated)) == stated


def test_a_specimen_is_a_facet_of_a_laboratory_test() -> None:
    stated = query("Urine creatinine", "lab").facets

    assert stated == Facets(specimen="urine")
    entry = Found(
        "LOINC",
        ["creatinin"],
        [500],
        [1, 2],
        [str(Facets(specimen="blood")), str(Facets(specimen="urine"))],
    )
    match = Match(0.9, 1, 1)
    assert [c.code_id for c in rank.choices([(Query((), stated), match, entry)], 5)] == [2]
    assert [c.code_id for c in rank.choices([(Query((), Facets()), match, entry)], 5)] == [1, 2]


def test_doses_belong_to_no_medication() -> None:
    assert said("Lasix 40 mg PO BID", "medication") == [["lasix"]]
    assert said("HCTZ", "medication") == [["hydrochlorothiazide"]]


def test_words_know_what_is_denied_and_what_is_optional() -> None:
    found = words("Calculus of gallbladder without (acute) cholecystitis, recurrent")

    assert [(w.text, w.is_negated, w.is_optional) for w in found] == [
        ("calculus", False, False),
        ("gallbladder", False, False),
        ("acute", True, True),
        ("cholecystitis", True, False),
        ("recurrent", False, False),
    ]


@given(text=st.text(max_size=300), category=st.sampled_from([*SYSTEMS, "other"]))
def test_every_text_is_a_query(text: str, category: str) -> None:
    found = query(text, category)

    assert len(found.slots) <= 400
    assert all("\x00" not in word for word in found.words)


@pytest.mark.parametrize("text", ["", "\x00", "L", "12 345", "(((", "| & ! :*", "no", "5", "x" * 0])
def test_a_text_that_names_nothing_has_no_words(text: str) -> None:
    assert query(text).slots == ()


def test_look_alikes_are_nearer_than_other_characters() -> None:
    assert likeness("fever", "fever") == 1
    assert likeness("tcver", "fever") > likeness("xyver", "fever")
    assert likeness("passecl", "passed") > 0.8
    assert ("htn" in {word for _, word in near_forms("ntn", "condition")}) is True


SIDES = st.sampled_from(list(Side))
FACETS = st.builds(
    Facets,
    side=SIDES,
    trimester=st.sampled_from(["", "0", "1", "2", "3"]),
    encounter=st.sampled_from(["", "A", "D", "S"]),
)
ENTRIES = st.lists(
    st.tuples(st.floats(0.05, 1), st.lists(FACETS, min_size=1, max_size=6)), min_size=1, max_size=6
)


def chosen(stated: Side, entries: list[tuple[float, list[Facets]]], limit: int) -> list[Choice]:
    number = 0
    found = []
    for score, facets in entries:
        ids = list(range(number, number + len(facets)))
        number += len(facets)
        entry = Found("ICD10CM", ["pain"], [100], ids, [str(each) for each in facets])
        found.append((Query((), Facets(stated)), Match(score, 1, 1), entry))
    return rank.choices(found, limit)


@given(stated=st.sampled_from(sorted(STATED)), entries=ENTRIES, limit=st.integers(1, 10))
def test_no_code_contradicts_the_stated_side(
    stated: Side, entries: list[tuple[float, list[Facets]]], limit: int
) -> None:
    for choice in chosen(stated, entries, limit):
        assert choice.side not in STATED or choice.side is stated


@given(entries=ENTRIES, limit=st.integers(1, 10))
def test_a_side_that_is_not_stated_is_never_the_only_choice(
    entries: list[tuple[float, list[Facets]]], limit: int
) -> None:
    found = chosen(Side.NONE, entries, limit)

    assert not found or len({each.side for each in found}) > 1 or found[0].side not in STATED


@given(
    entries=ENTRIES, limit=st.integers(1, 10), stated=st.sampled_from([Side.NONE, *sorted(STATED)])
)
def test_choices_are_ordered_distinct_and_without_text(
    entries: list[tuple[float, list[Facets]]], limit: int, stated: Side
) -> None:
    found = chosen(stated, entries, limit)

    assert len(found) <= limit
    assert len({each.code_id for each in found}) == len(found)
    assert all(0 <= each.score <= 1 for each in found)
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(re.fullmatch(r"1 of 1 words(; [a-z A-Z0-9]+)*", each.reason) for each in found)


def resolved(text: str) -> rank.Resolved:
    parsed = query(text)
    return rank.resolve(parsed, {word: Lexeme(word, 5.0) for word in parsed.words}, {})


def score(text: str, *entry: str) -> float:
    found = Found("ICD10CM", entry, [500] * len(entry), [1], [str(Facets())])
    match = rank.match(resolved(text), found)
    return match.score if match else 0.0


def test_a_denied_finding_is_no_finding() -> None:
    assert score("cirrhosis, ascites", "cirrhosis", "ascites") > score(
        "cirrhosis, ascites", "cirrhosis", "-ascites"
    )
    assert score("cirrhosis, no ascites", "cirrhosis", "-ascites") > score(
        "cirrhosis, no ascites", "cirrhosis", "ascites"
    )


def test_another_number_is_a_contradiction() -> None:
    same = score("gout stage 3", "gout", "stage", "3")
    other = score("gout stage 3", "gout", "stage", "4")
    assert same > 2 * other


def test_two_words_may_be_one() -> None:
    parsed = query("gastro esophageal ulcer")
    lexemes = {word: Lexeme(word, 5.0) for word in parsed.words}
    found = Found("ICD10CM", ["gastroesophageal", "ulcer"], [500, 500], [1], [str(Facets())])

    apart = rank.match(rank.resolve(parsed, lexemes, {}), found)
    joined = rank.match(
        rank.resolve(parsed, lexemes, {"gastroesophageal": "gastroesophageal"}), found
    )

    assert joined is not None
    assert joined.score > 0.95
    assert apart is None or apart.score < 0.5
