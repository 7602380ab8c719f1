"""The terms of the glossary are sorted and unique, and exist in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from medproc.env import PROJECT_ROOT
from tests.support.source_trees import modules_below, tree_of

pytestmark = pytest.mark.xdist_group("code-texts")

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
    return {
        name
        for path in modules_below(*PACKAGES)
        if "migrations" not in path.parts
        for node in ast.walk(tree_of(path))
        for name in _names_of(node)
    }


def _names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names in the fields of a node; a dotted name of an import is several names."""
    if not isinstance(node, ast.Constant):
        for _, value in ast.iter_fields(node):
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield from text.split(".")


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
