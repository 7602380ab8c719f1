"""Judge many cases: a share of them is drawn as PDF pages and read by the real reader."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.documents.reader import read_pages
from tests.support.generator import paper
from tests.support.generator.cases import GeneratedCase
from tests.support.generator.judge import Judgement

PAGES = 250
"""Pages per PDF, so that one child process reads many cases."""


def judge_all(cases: Iterable[GeneratedCase], pdf_share: float = 0.0) -> Iterator[Judgement]:
    """Yield the judgements, first those of the cases that skip the PDF."""
    drawn = []
    for case in cases:
        if _is_drawn(case, pdf_share):
            drawn.append(case)
        else:
            yield Judgement.of(case)
    rest = iter(drawn)
    while part := list(islice(rest, PAGES)):
        yield from _through_pdf(part)


def _is_drawn(case: GeneratedCase, share: float) -> bool:
    drawn = random.Random(f"pdf-{case.kind}-{case.seed}").random() < share
    return drawn and paper.can_draw(case)


def _through_pdf(cases: Sequence[GeneratedCase]) -> Iterator[Judgement]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cases.pdf"
        paper.draw(cases, path)
        pages = list(read_pages(path, 1, len(cases)))
    for case, page in zip(cases, pages, strict=True):
        yield Judgement.of_page(case, page.text)
