"""A quote that occurs in several places belongs between the places of its neighbours."""

from __future__ import annotations

from pipeline.core.types import PageText
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.align import Aligned, align_all
from tests.support.pass1_rows import rows_of

TEXT = (
    "SUBJECTIVE\nHe denies cough. He has asthma.\n\nOBJECTIVE\nLungs clear.\n\n"
    "ASSESSMENT\nHypertension. Worsening cough. Diabetes mellitus."
)


def said(*quotes: str, page: int = 1, **fields: object) -> list[FoundEntity]:
    return [
        FoundEntity(category="symptom", page=page, quote=quote, name=quote, **fields)  # type: ignore[arg-type]
        for quote in quotes
    ]


def placed(found: list[FoundEntity], *texts: str) -> tuple[Aligned, ...]:
    pages = {n: PageText(number=n, text=text) for n, text in enumerate(texts, start=1)}
    return align_all(found, [page.whole for page in pages.values()], pages)


def start_of(aligned: Aligned) -> int:
    assert aligned.alignment.span is not None
    return aligned.alignment.span.start


def flags(found: list[FoundEntity], *texts: str, read_twice: bool = True) -> list[list[str]]:
    return [row["review_flags"] for row in rows_of(found, *texts, read_twice=read_twice)]


def test_the_neighbours_decide_between_two_places() -> None:
    late = placed(said("asthma", "Hypertension", "cough", "Diabetes mellitus"), TEXT)
    early = placed(said("cough", "asthma", "Hypertension"), TEXT)

    assert start_of(late[2]) == TEXT.rindex("cough")
    assert start_of(early[0]) == TEXT.index("cough")
    assert not any(each.doubt.rivals for each in (*late, *early))


def test_places_that_differ_and_that_no_neighbour_decides_are_flagged() -> None:
    (only,) = flags(said("cough"), TEXT)

    assert "ambiguous_place" in only


def test_places_that_say_the_same_need_no_decision() -> None:
    text = "ASSESSMENT\nWorsening cough. Worsening cough."

    assert flags(said("cough"), text) == [[]]


def test_all_places_are_certain_if_each_is_mentioned() -> None:
    found = placed(said("cough", "cough"), TEXT)

    assert [start_of(each) for each in found] == [TEXT.index("cough"), TEXT.rindex("cough")]
    assert not any(each.doubt.rivals for each in found)


def test_another_page_than_the_neighbours_say_is_flagged() -> None:
    first = "ASSESSMENT\nHypertension. Worsening cough. Diabetes mellitus."
    second = "ASSESSMENT\nAsthma. Worsening cough. Gout."
    wrong = [*said("Hypertension"), *said("cough", page=2), *said("Diabetes mellitus")]
    right = [*said("Hypertension"), *said("cough"), *said("Diabetes mellitus")]
    rest = said("Asthma", "Gout", page=2)

    assert flags([*right, *rest], first, second) == [[]] * 5
    assert sorted(flags([*wrong, *rest], first, second)) == [[], [], [], [], ["ambiguous_place"]]


def test_a_reply_without_order_decides_nothing() -> None:
    found = said("Diabetes mellitus", "Hypertension", "cough", "asthma", "Lungs")

    assert len(placed(found, TEXT)[2].doubt.rivals) == 2


def test_one_figure_of_a_ratio_is_no_place_of_a_quote() -> None:
    text = "BP 124/75 75 18"
    found = [FoundEntity(category="vital", page=1, quote="75", name="HR", value="75")]

    (aligned,) = placed(found, text)

    assert start_of(aligned) == text.rindex("75")
    assert not aligned.doubt.rivals
