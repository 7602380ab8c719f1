"""The terms of the glossary are sorted and unique, and exist in the code."""

from __future__ import annotations

import io
import re
import tokenize

import pytest

from medproc.env import PROJECT_ROOT

ROW = re.compile(
    r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| (?P<names>`[^|]+`) \|$", re.MULTILINE
)
NAME = re.compile(r"`([^`]+)`")
PACKAGES = (
    "pipeline", "observability", "api", "medproc", "gemini_emulator", "evaluation", "lexicon_build",
)  # fmt: skip


def terms() -> list[tuple[str, str, list[str]]]:
    """Return each row of the glossary: the term, its meaning, and its names in the code."""
    text = (PROJECT_ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    return [(row["term"], row["meaning"], NAME.findall(row["names"])) for row in ROW.finditer(text)]


@pytest.fixture(scope="module")
def names_in_the_code() -> set[str]:
    """Return every name that the code defines or uses; words of comments and docstrings are not."""
    found: set[str] = set()
    for package in PACKAGES:
        for file in (PROJECT_ROOT / package).rglob("*.py"):
            if "migrations" not in file.parts:
                source = io.StringIO(file.read_text(encoding="utf-8"))
                tokens = tokenize.generate_tokens(source.readline)
                found |= {token.string for token in tokens if token.type == tokenize.NAME}
    return found


def test_every_row_of_the_table_is_a_term() -> None:
    text = (PROJECT_ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]

    assert len(terms()) == len(lines) - 1
    assert len(terms()) >= 40


def test_the_terms_are_sorted_and_unique() -> None:
    names = [term.lower() for term, _, _ in terms()]

    assert names == sorted(set(names))


@pytest.mark.parametrize(("term", "meaning", "names"), terms(), ids=lambda value: str(value)[:40])
def test_a_term_has_one_sentence_and_exists_in_the_code(
    term: str, meaning: str, names: list[str], names_in_the_code: set[str]
) -> None:
    missing = [
        name
        for name in names
        if not ((PROJECT_ROOT / name).is_file() if "/" in name else name in names_in_the_code)
    ]

    assert not missing
    assert ". " not in meaning, f"{term} has more than one sentence"
