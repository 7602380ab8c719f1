"""The texts of the project follow its rules: plain words, short lines, and sources that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from medproc.env import PROJECT_ROOT
from tests.support.source_trees import tree_of

pytestmark = pytest.mark.xdist_group("code-texts")

FORBIDDEN = re.compile(
    r"\b(whoever|whomever|nobody|somebody|anew|one that|stands|befalls?|thereof|for ever)\b",
    re.IGNORECASE,
)
"""Words that make a reader read a sentence twice."""
FOLDERS = (
    "api", "bench", "docs", "evaluation", "gemini_emulator", "lexicon_build", "medproc",
    "observability", "pipeline", "samples", "templates", "tests",
)  # fmt: skip
PROSE = {".py", ".md", ".html", ".js", ".css", ".lua", ".toml", ".yml", ".sql"}
QUOTATIONS = {
    "pipeline/providers/local/assertions/experiencer.py": "the words for other persons",
    "pipeline/clinical/narrative/claims.py": "the words for other persons",
    "samples/phrases.py": "the sentences of the sample records, in the language of clinicians",
    "tests/unit/test_language.py": "this list of forbidden words",
}
UNIX_USER = '"nobody"'
"""The name of the Unix user, as a string of its own."""

WIDEST = 120
GENERATED = re.compile(r"/migrations/\d{4}_")
"""`makemigrations` writes these files."""
TABLE = re.compile(r"^\s*\|")
"""A row of a Markdown table cannot be wrapped."""
JSON_OUTPUT = re.compile(r'^\{"')
"""A document shows the output of a command as the command prints it: one JSON object per line."""
PRAGMA = re.compile(r"\s+# (?:noqa|type: ignore).*$")
"""A pragma and its reason must be at the end of the line that they excuse; ruff counts alike."""

IMPORT_LIST = re.compile(r"(?:^|[.:;] )(?:(?:May|Tests may) import|Imports?\b)")
DOCSTRING_LINES = 12
"""At most this many lines of module docstring; the table of error kinds is the longest one."""

CITATION = re.compile(r"\b(?:spec|design|facts|house|style)\.md\b|\b(?:seeds|facts)/\w")
"""Files of the authors that are not in the repository. Texts cite docs/requirements.md instead."""


@cache
def texts() -> dict[str, str]:
    """Return the text of each file of code, documents and templates, by its path."""
    inside = [path for folder in FOLDERS for path in (PROJECT_ROOT / folder).rglob("*")]
    return {
        path.relative_to(PROJECT_ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((*PROJECT_ROOT.iterdir(), *inside))
        if path.suffix in PROSE
    }


def test_every_folder_of_the_project_is_read() -> None:
    folders = {path.name for path in PROJECT_ROOT.iterdir() if (path / "__init__.py").exists()}

    assert folders <= {*FOLDERS}


def numbered(*suffixes: str) -> Iterator[tuple[str, str, str]]:
    """Yield each line of the files with these suffixes, or of all files: path, place and line."""
    for name, text in texts().items():
        if not suffixes or name.endswith(suffixes):
            for number, line in enumerate(text.splitlines(), start=1):
                yield name, f"{name}:{number}", line


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the path and the docstring of each module."""
    for name in texts():
        if name.endswith(".py"):
            yield name, ast.get_docstring(tree_of(PROJECT_ROOT / name)) or ""


def words(name: str, line: str) -> str:
    """Return a line with the names of Python taken apart into their words."""
    line = line.replace(UNIX_USER, "")
    return line.replace("_", " ") if name.endswith(".py") else line


def is_wrappable(name: str, line: str) -> bool:
    """Return whether a line could be shorter."""
    if GENERATED.search(name):
        return False
    return not (name.endswith(".md") and (TABLE.match(line) or JSON_OUTPUT.match(line)))


def test_no_text_has_a_forbidden_word() -> None:
    found = [
        f"{place}: {line.strip()}"
        for name, place, line in numbered()
        if name not in QUOTATIONS and FORBIDDEN.search(words(name, line))
    ]

    assert found == []


@pytest.mark.parametrize("name", QUOTATIONS)
def test_each_quotation_is_needed(name: str) -> None:
    assert FORBIDDEN.search(texts()[name])


def test_no_module_docstring_lists_imports() -> None:
    found = [name for name, text in docstrings() if IMPORT_LIST.search(text)]

    assert found == []


def test_a_module_docstring_is_short() -> None:
    found = [name for name, text in docstrings() if len(text.splitlines()) > DOCSTRING_LINES]

    assert found == []


def test_no_line_is_wider_than_a_screen() -> None:
    found = [
        place
        for name, place, line in numbered()
        if len(PRAGMA.sub("", line)) > WIDEST and is_wrappable(name, line)
    ]

    assert found == []


def test_no_text_cites_a_file_that_is_not_in_the_repository() -> None:
    found = [
        f"{place}: {line.strip()}"
        for name, place, line in numbered()
        if name != "tests/unit/test_language.py" and CITATION.search(line)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("text", "is_list"),
    [
        ("Reads pages. Imports `models` and `states`, nothing else.", True),
        ("Imports models.", True),
        ("May import `samples`.", True),
        ("The console imports the pipeline, never the reverse.", False),
        ("The only module that imports google.genai.", False),
    ],
)
def test_a_list_of_imports_is_recognized(text: str, is_list: bool) -> None:
    assert bool(IMPORT_LIST.search(text)) == is_list
