"""Work that a step does not repeat for each of its calls, in counts."""

from __future__ import annotations

import zlib
from pathlib import Path
from unittest.mock import patch

import pytest

from pipeline.core.types import PageSlice, PageText, Span
from pipeline.models import Batch
from pipeline.providers.prompts import render_entities
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1 import align, boundaries, planner
from tests.support.pass1_rows import rows_of

PAGE = "ASSESSMENT\nGout of the left foot, seen today and treated as before."


@pytest.mark.parametrize(("count", "asked"), [(1, 0), (2, 1), (7, 6)])
def test_the_planner_reads_a_page_for_the_boundary_below_it_only(count: int, asked: int) -> None:
    pages = {n: PageText(number=n, text=PAGE) for n in range(1, count + 1)}

    with patch.object(
        planner, "section_open_after", wraps=boundaries.section_open_after
    ) as section_open:
        batches = planner.plan([page.whole for page in pages.values()], pages)

    assert section_open.call_count == asked
    planned = [span for batch in batches for span in batch.spans]
    assert planned == [Span(n, 0, len(PAGE)) for n in pages]


def test_the_words_of_a_prompt_are_read_once_from_the_disk() -> None:
    part = (PageSlice(page=1, start=0, text=PAGE),)
    render_entities("0" * 32, part, include_zones=True)

    with patch.object(Path, "read_text", side_effect=AssertionError("read again")):
        first, second = (render_entities(token * 32, part, include_zones=True) for token in "ab")

    assert PAGE.splitlines()[1] in first
    assert first.replace("a" * 32, "b" * 32) == second


def test_an_output_is_unpacked_once_for_its_publication() -> None:
    batch = Batch(output={"entities": []})
    batch.pack_output()

    with patch.object(zlib, "decompress", wraps=zlib.decompress) as decompress:
        output = batch.unpacked_output

    assert output == {"entities": []}
    assert decompress.call_count == 1


def test_the_checks_of_a_page_compare_no_entity_with_every_other_entity() -> None:
    """Pairs grow with the square of the entities, and a dense page has hundreds of entities."""
    lines = [f"Finding {number}: potassium 4.{number} mmol/L" for number in range(10, 60)]
    found = [
        FoundEntity(category="lab", page=1, quote=line.partition(": ")[2], name="Potassium")
        for line in lines
    ]

    with (
        patch.object(align, "_double", wraps=align._double) as double,
        patch.object(Span, "overlap", autospec=True, side_effect=Span.overlap) as overlap,
    ):
        rows = rows_of(found, "\n".join(lines), read_twice=True)

    assert len(rows) == len(found)
    assert double.call_count == 0
    assert overlap.call_count <= 3 * len(found)
