"""A cue at the end of a page reaches the words that continue its sentence on the next page."""

from __future__ import annotations

import pytest

from pipeline.core.types import PageSlice
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import FoundEntity


def found(*pages: str) -> dict[str, FoundEntity]:
    slices = tuple(PageSlice(page=n, start=0, text=text) for n, text in enumerate(pages, start=1))
    question = Question(kind="entities", item_token="0" * 32, include_zones=False, slices=slices)
    return {entity.name: entity for entity in detect(question).entities}


@pytest.mark.parametrize("footer", ["", "\nPage 1 of 2\n", "\n\nMRN 12-34-56   Page 1\n"])
@pytest.mark.parametrize("header", ["", "Quill Hospital   MRN 12-34-56   Page 2\n"])
def test_a_negation_reaches_over_a_page_break(footer: str, header: str) -> None:
    entities = found(
        f"HPI\nShe ate well. She has no nausea, no vomiting and no{footer}",
        f"{header}abdominal pain. She has had a headache.\n",
    )

    assert entities["abdominal pain"].negated is True
    assert entities["headache"].negated is False


def test_a_relative_stays_the_subject_over_a_page_break() -> None:
    entities = found("HPI\nHer mother was recently diagnosed with", "lupus. She takes aspirin.\n")

    assert entities["lupus"].experiencer == "family"


def test_a_new_sentence_on_the_next_page_gets_no_cue_of_the_page_before() -> None:
    entities = found("HPI\nNo nausea.", "abdominal pain since Monday.\n")

    assert entities["abdominal pain"].negated is not True
