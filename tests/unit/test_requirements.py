"""The requirements page names tests that exist, and has every number that is cited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from medproc.env import PROJECT_ROOT

PAGE = PROJECT_ROOT / "docs/requirements.md"
ROW = re.compile(r"^\| (D?\d+) \| (.+) \|$", re.MULTILINE)
SHOWN_BY = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
CITED = re.compile(r"\brequirements? ((?:D?\d+(?:, | and | to )?)+)")
PACKAGES = (
    "medproc", "pipeline", "observability", "api", "gemini_emulator", "evaluation", "lexicon_build",
    "templates",
)  # fmt: skip
FOLDERS = (*PACKAGES, "tests", "bench", "samples", "docs")
KINDS = {".py", ".lua", ".html", ".md", ".sql", ".js", ".toml"}
TOP_LEVEL = (
    "manage.py", "pyproject.toml", "medproc", "pipeline", "observability", "templates", "tests",
    "docker-compose.yml",
)  # fmt: skip


def page(part: int = 0) -> dict[str, str]:
    """Return the rows of the page by number: part 0 is built, part 1 is not built."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Not built yet\n")[part]
    return dict(ROW.findall(text))


def cited(file: Path) -> set[str]:
    """Return the numbers of requirements that a file cites."""
    text = file.read_text(encoding="utf-8")
    return {number for numbers in CITED.findall(text) for number in re.findall(r"D?\d+", numbers)}


@pytest.fixture(scope="module")
def tests() -> dict[str, str]:
    """Return the source of each file of tests by its name, which is unique in all folders."""
    files = list((PROJECT_ROOT / "tests").rglob("test_*.py"))
    assert len({file.name for file in files}) == len(files)
    return {file.name: file.read_text(encoding="utf-8") for file in files}


@pytest.mark.parametrize("number", page())
def test_a_requirement_is_shown_by_tests_that_exist(number: str, tests: dict[str, str]) -> None:
    named = SHOWN_BY.findall(page()[number])

    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in tests[file]]

    assert named
    assert not missing


def test_each_number_up_to_the_last_is_built_or_not_built_yet() -> None:
    built, later = page(0).keys(), page(1).keys()
    numbers = {int(number) for number in (*built, *later) if number.isdigit()}

    assert not built & later
    assert numbers == set(range(1, 58))


def test_every_cited_number_is_in_the_page() -> None:
    known = page(0).keys() | page(1).keys()
    files = [
        file
        for folder in FOLDERS
        for file in (PROJECT_ROOT / folder).rglob("*")
        if file.suffix in KINDS and file.is_file()
    ]

    unknown = {str(file): numbers for file in files if (numbers := cited(file) - known)}

    assert files
    assert not unknown


def test_the_top_level_is_as_required() -> None:
    missing = [name for name in TOP_LEVEL if not (PROJECT_ROOT / name).exists()]

    assert not missing
