"""Each field of a work item has one writer: a verb of `WorkItem` or of its subclass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from medproc.env import PROJECT_ROOT
from pipeline.models import Batch, Chunk
from pipeline.models.work_item import WorkItem

PIPELINE = PROJECT_ROOT / "pipeline"
ROWS = {"WorkItem", *(row.__name__ for row in WorkItem.__subclasses__())}
FIELDS = {field.attname for row in (Batch, Chunk) for field in row._meta.concrete_fields}
UNTYPED = {"Any", "object", ""}
MEET = ("models", "selectors", "transitions", "execution", "stages")


def _annotation(node: ast.expr | None) -> str:
    return ast.unparse(node) if node is not None else ""


class Writes(ast.NodeVisitor):
    """A visitor that finds assignments to attributes with the name of a work item's field."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        """The writer and the field; the writer is a class or a function."""
        self._classes: list[ast.ClassDef] = []
        self._types: list[dict[str, str]] = [{}]

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes.append(node)
        self.generic_visit(node)
        self._classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        types = {each.arg: _annotation(each.annotation) for each in arguments}
        if self._classes and arguments and arguments[0].arg == "self":
            types["self"] = self._classes[-1].name
        self._types.append(self._types[-1] | types)
        self.generic_visit(node)
        self._types.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) or node.attr not in FIELDS:
            return
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        kind = self._types[-1].get(owner, "")
        # A value of another class may have fields of the same names, for example EncounterResult.
        if kind in ROWS or kind in UNTYPED:
            self.found.append((kind or ast.unparse(node.value), node.attr))

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "setattr":
            self.found.append(("setattr", ast.unparse(node.args[0])))


def writes(source: str) -> list[tuple[str, str]]:
    finder = Writes()
    finder.visit(ast.parse(source))
    return finder.found


def modules() -> Iterator[Path]:
    """Provide the modules that can meet a work item, by their imports."""
    for path in sorted(PIPELINE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "migrations" not in path.parts and any(f"from pipeline.{at}" in source for at in MEET):
            yield path


def is_a_verb(path: Path, writer: str) -> bool:
    return path.parent == PIPELINE / "models" and writer in ROWS


def test_only_the_verbs_of_a_work_item_write_its_fields() -> None:
    found = {
        f"{path.relative_to(PROJECT_ROOT)}: {writer}.{field}"
        for path in modules()
        for writer, field in writes(path.read_text(encoding="utf-8"))
        if not is_a_verb(path, writer)
    }

    assert found == set()


@pytest.mark.parametrize(
    "source",
    [
        "def end(row: Batch) -> None:\n    row.status = 'failed'",
        "def end(row: Any) -> None:\n    row.attempt_count += 1",
        "def end(split) -> None:\n    split.row.output = None",
        "for row in rows:\n    row.error_code = row.error_message = None",
        "def end(row: Chunk, name: str) -> None:\n    setattr(row, name, 1)",
    ],
)
def test_a_write_elsewhere_is_found(source: str) -> None:
    assert writes(source)


def test_a_result_of_another_class_may_have_fields_of_the_same_names() -> None:
    assert not writes("def end(result: EncounterResult) -> None:\n    result.status = 'failed'")


def test_no_row_of_the_executor_is_untyped() -> None:
    found = {
        f"{path.relative_to(PROJECT_ROOT)}:{node.lineno}"
        for path in (PIPELINE / "execution").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (
            isinstance(node, ast.arg)
            and node.arg == "row"
            and _annotation(node.annotation) == "Any"
        )
        or (isinstance(node, ast.Name) and node.id == "hasattr")
    }

    assert found == set()


TOTALS = re.compile(
    r"\b(entities_extracted_total|total_tokens_used|total_cost_usd|total_processing_time(_ms)?"
    r"|pass(05|1)_metrics|entities_detected|encounters_(failed|succeeded))\s*=(?!=|\s*NULL)"
)
"""An assignment to a column of a record's totals; clearing a column is no total."""


def test_the_totals_of_a_record_have_one_writer() -> None:
    writers = {
        path.relative_to(PIPELINE).as_posix()
        for path in PIPELINE.rglob("*.py")
        if path.parent.name not in {"models", "migrations"} and TOTALS.search(path.read_text())
    }

    # The totals of a batch of records have columns of the same names.
    assert writers - {"transitions/record_batches.py"} == {"transitions/totals.py"}
