"""A number from a noisy scan is right, flagged or absent, never wrong without a flag."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from pipeline.models import Entity
from samples import truth
from tests.support import records

NUMBER = re.compile(r"\d+(?:\.\d+)?")


def numbers(*texts: str | None) -> tuple[str, ...]:
    return tuple(n for text in texts for n in NUMBER.findall(text or ""))


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_db")
@pytest.mark.xdist_group("scan")
def test_no_wrong_number_of_a_noisy_scan_is_left_unflagged() -> None:
    printed: dict[int, set[tuple[str, ...]]] = defaultdict(set)
    for encounter in truth.load("scan_5p").encounters:
        for item in encounter.entities:
            printed[item.page] |= {numbers(item.value), numbers(item.dose)}

    record = records.completed_record(records.SCAN)

    found = [
        (e, read)
        for e in Entity.objects.filter(shell_file=record)
        for read in (numbers(e.value), numbers(e.dose))
        if read
    ]
    wrong = [e for e, read in found if read not in printed[e.page_number]]
    assert len(found) >= 40
    assert [e.quote for e in wrong if not e.review_flags] == []
    assert len([e for e, _ in found if e.review_flags]) < len(found) / 2
