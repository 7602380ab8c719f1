"""The documents name existing variables, codes, tables, commands and links only."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

import pytest
from django.apps import apps
from pydantic_core import PydanticUndefined

from api.problems import API_ERRORS, ApiErrorCode
from gemini_emulator.faults import FAULTS
from gemini_emulator.request_log import LogLine
from medproc.env import PROJECT_ROOT, Environment
from medproc.env_values import expected_of
from pipeline.core.errors import ERRORS, ErrorCode, UserErrorCode
from pipeline.core.states import (
    JOB_MOVES,
    WORK_MOVES,
    IncidentState,
    JobStatus,
    PassStatus,
    RecordBatchStatus,
    SessionStatus,
    ShellFileStatus,
    WorkStatus,
)
from pipeline.operations.scheduler import PeriodicTask, periodic_tasks
from tests.support.fault_matrix import MATRIX, FaultCase

DOCS = PROJECT_ROOT / "docs"
DOCUMENTS = [PROJECT_ROOT / "README.md", PROJECT_ROOT / "samples/README.md", *DOCS.glob("*.md")]
COMMANDS = [
    path.stem
    for app in ("pipeline", "observability", "api")
    for path in (PROJECT_ROOT / app / "management/commands").glob("[a-z]*.py")
]
SET_BY_COMPOSE = {"DATABASE_URL", "REDIS_URL", "MEDPROC_DATA_DIR", "AUDIT_HEADS_DIR"}
"""The variables whose values follow from the services of docker-compose.yml."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
MERMAID = re.compile(r"^```mermaid\n(.*?)^```", re.MULTILINE | re.DOTALL)
ARROW = re.compile(r"^ +(\S+) --> (\S+?)(?:: (.+))?$", re.MULTILINE)
DIAGRAMS: dict[str, Collection[str]] = {
    "Jobs": JobStatus.values,
    "Work items": WorkStatus.values,
    "Incidents": IncidentState.values,
    "Record batches": RecordBatchStatus.values,
    "Sessions": SessionStatus.values,
    "Passes of a session": PassStatus.values,
    "Bulk operations": {"waiting", "running", "done", "cancelled", "skipped", "failed"},
}
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def rows(document: str) -> dict[str, list[str]]:
    """Return the table rows of a document by their first cell, without backticks."""
    found = {}
    for line in (DOCS / document).read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            cells = re.split(r"(?<!\\)\|", line.strip("| "))
            first, *rest = (cell.strip() for cell in cells)
            found[first.strip("`")] = rest
    return found


def shown(default: object) -> str:
    """Return a default in the notation of the document."""
    match default:
        case None | ():
            return "–"
        case bool():
            return f"`{str(default).lower()}`"
        case tuple():
            return f"`{','.join(default)}`"
        case float():
            return f"`{default:g}`"
        case _:
            return f"`{default}`"


@pytest.mark.parametrize("variable", Environment.model_fields)
def test_configuration_explains_every_variable_with_default_unit_and_range(variable: str) -> None:
    default = Environment.model_fields[variable].default

    stated, values, meaning = rows("configuration.md")[variable]

    assert meaning
    assert values.replace("`", "") == expected_of(Environment.model_fields[variable])
    if default is not PydanticUndefined and not isinstance(default, Path):
        assert stated == shown(default)


def test_configuration_lists_exactly_the_variables_that_the_program_reads() -> None:
    names = {name for name in rows("configuration.md") if re.fullmatch(r"[A-Z][A-Z0-9_]+", name)}

    assert names - {"SIGTERM"} == set(Environment.model_fields)


def test_compose_passes_every_variable_to_each_service() -> None:
    text = (PROJECT_ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    shared = text.split("x-medproc: &medproc\n")[1].split("\nservices:")[0]
    passed = re.findall(r"^    ([A-Z][A-Z0-9_]*): (.+)$", shared, re.MULTILINE)
    services = re.findall(r"^  (\w+):\n((?:    .*\n|\n)+)", text.split("\nservices:\n")[1], re.M)

    ours = {name: body for name, body in services if "<<: *medproc" in body}

    # Only migrate gets the rights of the owner.
    assert {name for name, _ in passed} == set(Environment.model_fields) - {"DATABASE_OWNER_URL"}
    assert all(f"${{{name}" in value or name in SET_BY_COMPOSE for name, value in passed)
    assert set(ours) == {"migrate", "console", "workers", "scheduler"}
    assert [name for name, body in ours.items() if "environment:" in body] == ["migrate"]
    assert re.findall(r"^      ([A-Z_]+):", ours["migrate"], re.M) == ["DATABASE_OWNER_URL"]
    assert "      <<: *environment\n" in ours["migrate"]
    assert "medproc_owner" not in shared


@pytest.mark.parametrize("code", ErrorCode)
def test_errors_says_of_every_code_what_the_table_says(code: ErrorCode) -> None:
    facts = ERRORS[code]

    stated = rows("errors.md")[code]

    assert stated == ["yes" if facts.job_retryable else "no", facts.budget, facts.advice]


@pytest.mark.parametrize("code", UserErrorCode)
def test_errors_explains_every_code_of_a_persons_mistake(code: UserErrorCode) -> None:
    assert rows("errors.md")[code]


@pytest.mark.parametrize("code", API_ERRORS)
def test_errors_says_of_every_code_of_the_api_what_the_table_says(code: ApiErrorCode) -> None:
    status, advice = API_ERRORS[code]

    assert rows("errors.md")[code] == [str(status.value), advice]


def test_integrating_names_every_table() -> None:
    text = (DOCS / "integrating.md").read_text(encoding="utf-8")
    tables = {
        model._meta.db_table
        for app in ("pipeline", "api")
        for model in apps.get_app_config(app).get_models()
    }

    missing = {table for table in tables if f"`{table}`" not in text}

    assert not missing


def test_integrating_explains_every_column_of_an_entity_that_is_its_own() -> None:
    text = (DOCS / "integrating.md").read_text(encoding="utf-8")
    columns = {
        field.name
        for field in apps.get_model("pipeline", "Entity")._meta.concrete_fields
        if not field.is_relation and field.name not in ("id", "created_at")
    }

    missing = {column for column in columns if f"`{column}`" not in text}

    assert not missing


def test_emulator_names_every_fault_and_every_field_of_its_log() -> None:
    text = (DOCS / "emulator.md").read_text(encoding="utf-8")
    names = {*FAULTS, *(field.name for field in fields(LogLine))}

    missing = {name for name in names if f"`{name}`" not in text}

    assert not missing


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: str(row.name))
def test_emulator_says_of_every_fault_the_code_that_it_ends_in(row: FaultCase) -> None:
    _, code = rows("emulator.md")[row.fault]

    assert (row.code or "none") in code


def test_states_names_every_status_of_a_job_and_of_a_record() -> None:
    text = (DOCS / "states.md").read_text(encoding="utf-8")

    missing = {value for value in (*JobStatus.values, *ShellFileStatus.values) if value not in text}

    assert not missing


def diagram(heading: str) -> dict[tuple[str, str], list[str]]:
    """Return the arrows of a state diagram in states.md, each with its functions."""
    text = (DOCS / "states.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {
        (start, end): functions.split(", ") if functions else []
        for block in MERMAID.findall(section)
        for start, end, functions in ARROW.findall(block)
        if "[*]" not in (start, end)
    }


@pytest.mark.parametrize(("heading", "moves"), [("Jobs", JOB_MOVES), ("Work items", WORK_MOVES)])
def test_states_draws_exactly_the_allowed_moves(
    heading: str, moves: Collection[tuple[str, str]]
) -> None:
    drawn = diagram(heading)

    assert set(drawn) == {(str(before), str(after)) for before, after in moves}


@pytest.mark.parametrize("heading", DIAGRAMS)
def test_states_names_the_function_of_every_move(heading: str) -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for app in ("pipeline", "observability")
        for path in (PROJECT_ROOT / app).rglob("*.py")
    )

    drawn = diagram(heading)

    assert drawn
    for functions in drawn.values():
        assert functions
        assert not [name for name in functions if f"def {name}(" not in code]


@pytest.mark.parametrize(("heading", "values"), DIAGRAMS.items())
def test_states_draws_every_value(heading: str, values: Collection[str]) -> None:
    drawn = diagram(heading)

    assert {state for arrow in drawn for state in arrow} == set(values)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_explains_every_command(command: str) -> None:
    assert any(re.match(rf"{command}\b", first) for first in rows("commands.md"))


@pytest.mark.parametrize("task", periodic_tasks(), ids=lambda task: task.name)
def test_configuration_explains_every_periodic_task(task: PeriodicTask) -> None:
    assert task.name in rows("configuration.md")


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, formed as GitHub forms them."""
    text = CODE_BLOCK.sub("", document.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in HEADING.findall(text)
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    links = LINK.findall(document.read_text(encoding="utf-8"))

    broken = [link for link in links if "://" not in link and not is_found(document, link)]

    assert not broken


def is_found(document: Path, link: str) -> bool:
    """Return whether a relative link names a file, and its anchor a heading of that file."""
    name, _, anchor = link.partition("#")
    target = document.parent / name if name else document
    return target.exists() and (not anchor or anchor in anchors(target))


def test_readme_links_every_document() -> None:
    readme = (PROJECT_ROOT / "README.md").read_text(encoding="utf-8")

    missing = [path.name for path in DOCS.glob("*.md") if f"(docs/{path.name})" not in readme]

    assert not missing


def test_architecture_is_short_and_names_files_and_names_that_exist() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+/[\w/]+\.(?:py|lua))`", text)
    roots = [PROJECT_ROOT / name for name in ("", "pipeline", "observability")]

    missing = [name for name in files if not any((root / name).is_file() for root in roots)]

    assert files
    assert not missing
    assert len(text.splitlines()) <= 200


def test_architecture_lists_singletons_that_exist() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    section = text.split("\n## Process-wide singletons\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\| (`.+`) \| `(.+)` \|", section, re.MULTILINE)

    missing = [
        name
        for names, file in listed
        for name in re.findall(r"`(\w+)", names)
        if not re.search(rf"\b{name}\b", source_of(file))
    ]

    assert listed
    assert not missing


def source_of(name: str) -> str:
    """Return the source of a module that the architecture page names."""
    roots = [PROJECT_ROOT / root for root in ("pipeline", "")]
    return next(root / name for root in roots if (root / name).is_file()).read_text("utf-8")


ASVS = {
    "5.1": 1, "5.2": 3, "5.3": 2, "5.4": 3, "6.1": 3, "6.2": 12, "6.3": 4, "6.4": 4, "6.5": 5,
    "6.6": 3, "6.8": 4, "7.1": 3, "7.2": 4, "7.3": 2, "7.4": 5, "7.5": 2, "7.6": 2, "14.1": 2,
    "14.2": 4, "14.3": 3, "16.1": 1, "16.2": 5, "16.3": 4, "16.4": 3, "16.5": 3,
}  # fmt: skip
"""Requirements of levels 1 and 2 by section, in OWASP ASVS 5.0. They come first in a section."""


def test_security_answers_every_requirement_of_the_standard() -> None:
    answered = []
    for number, (state, how) in (
        (number, cells) for number, cells in rows("security.md").items() if number[0].isdigit()
    ):
        first, _, last = number.partition(" to ")
        section, _, begins = first.rpartition(".")
        ends = (last or first).rpartition(".")[2]
        answered += [f"{section}.{each}" for each in range(int(begins), int(ends) + 1)]
        assert state in {"met", "open", "not applicable"}, number
        assert how, number

    assert answered == [f"{name}.{n}" for name, most in ASVS.items() for n in range(1, most + 1)]
