"""The packages stay few: a newcomer can hold the top level in the head."""

from __future__ import annotations

import pytest

from medproc.env import PROJECT_ROOT

MOST = {"pipeline": 18, "observability": 20}
"""Entries of a package's top level, Django's own included; `__init__.py` is the package itself."""


@pytest.mark.parametrize("package", MOST)
def test_the_top_level_of_a_package_stays_small(package: str) -> None:
    entries = sorted(
        path.name for path in (PROJECT_ROOT / package).iterdir() if not path.name.startswith("__")
    )

    assert len(entries) <= MOST[package], entries
