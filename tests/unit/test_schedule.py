"""The table of test durations starts the longest groups of tests first."""

from __future__ import annotations

import re

from medproc.env import PROJECT_ROOT
from tests.support.schedule import SECONDS

GROUP = re.compile(r'xdist_group\("([^"]+)"\)')


def test_the_table_names_every_group_and_no_other() -> None:
    files = (PROJECT_ROOT / "tests").rglob("test_*.py")
    groups = {name for file in files for name in GROUP.findall(file.read_text("utf-8"))}

    assert groups == SECONDS.keys()


def test_the_table_is_sorted_by_time() -> None:
    assert list(SECONDS.values()) == sorted(SECONDS.values(), reverse=True)
