"""`load_codes` replaces the codes of one system in one transaction, or changes nothing."""

from __future__ import annotations

import io
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from medproc import supervisor
from medproc.env import PROJECT_ROOT
from observability.models import AuditEvent
from pipeline.codes.loaders import ensure_loaded
from pipeline.codes.loaders.cvx import Cvx
from pipeline.codes.search import index
from pipeline.codes.version import code_table_version
from pipeline.models import Code, CodeEntry, CodeSystem, CodeTerm, CodeWord
from pipeline.models.codes import SystemKey
from tests.support import code_files


def load_codes(*arguments: object) -> dict[str, Any]:
    """Run the command and return its JSON object."""
    stdout = io.StringIO()
    call_command("load_codes", *map(str, arguments), "--json", stdout=stdout)
    return json.loads(stdout.getvalue())  # type: ignore[no-any-return]  # an object


@pytest.mark.django_db
def test_icd10cm_has_every_code_of_the_package() -> None:
    listed = package_rows()

    loaded = load_codes("ICD10CM")

    stored = {
        code: (display, parent, billable)
        for code, display, parent, billable in Code.objects.values_list(
            "code", "display", "parent", "billable"
        )
    }
    assert loaded["codes"] == len(listed) == len(stored) == 98_505
    # The package gives a section of one category the code of its category.
    blocks = {code for code in stored if is_block_of_one(code)}
    codes = {code: facts for code, *facts in listed}
    assert len(blocks) == len(listed) - len(codes)
    assert set(stored) - blocks == set(codes)
    for code, (display, parent, is_leaf) in codes.items():
        stored_parent = stored[code][1] or ""
        if is_block_of_one(stored_parent):
            stored_parent = stored_parent.partition("-")[0]
        assert (stored[code][0], stored_parent) == (" ".join(display.split()), parent)
        # The package answers for the section if a category has the code of its section. Twelve
        # sections are empty headings; a heading is never valid for billing.
        if f"{code}-{code}" not in blocks:
            assert stored[code][2] == (is_leaf and "-" not in code)
    assert sum(billable is True for _, _, billable in stored.values()) == 74_719
    assert loaded["version"] == "April 1 2026"
    assert loaded["terms"] == CodeTerm.objects.count()


def is_block_of_one(code: str) -> bool:
    """Return whether a code names a section of one category, such as `B99-B99`."""
    first, _, last = code.partition("-")
    return first == last


def package_rows() -> list[list[Any]]:
    """Return code, title, parent and leaf of each code, as the package itself answers."""
    # The package holds 193 MB, so it runs in a process of its own.
    script = (
        "import json, simple_icd_10_cm as p\n"
        "print(json.dumps([[c, p.get_description(c), p.get_parent(c), p.is_leaf(c)]"
        " for c in p.get_all_codes(True)]))"
    )
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    return json.loads(answer.stdout)  # type: ignore[no-any-return]  # a list of rows


@pytest.mark.django_db
def test_a_second_load_of_the_same_content_changes_nothing() -> None:
    first = load_codes("LOINC")
    version, ids = code_table_version(), set(Code.objects.values_list("pk", flat=True))

    second = load_codes("LOINC")

    assert first["is_changed"]
    assert second == {**first, "is_changed": False}
    assert code_table_version() == version
    assert set(Code.objects.values_list("pk", flat=True)) == ids


@pytest.mark.django_db
def test_an_unknown_system_is_refused_and_audited() -> None:
    with pytest.raises(CommandError, match="CODES_SYSTEM_UNKNOWN"):
        load_codes("ICD9")

    assert not CodeSystem.objects.exists()
    assert AuditEvent.objects.get().result == "refused"


def put(folder: Path, system: str, content: str) -> Path:
    """Write a file of a system and return its path."""
    path = folder / {"LOINC": "Loinc.csv", "UNII": "UNII_Names.txt", "CVX": "cvx.txt"}[system]
    path.write_bytes(content.encode())
    return path


def contents(system: str) -> dict[str, tuple[str, str | None, set[str]]]:
    """Return display, parent and terms of each stored code of a system."""
    codes = Code.objects.filter(system_id=system).prefetch_related("terms")
    return {row.code: (row.display, row.parent, {t.text for t in row.terms.all()}) for row in codes}


@pytest.mark.django_db
def test_each_importer_stores_the_rows_of_its_file(tmp_path: Path) -> None:
    release = code_files.write_folder(tmp_path / "release", code_files.SNOMED)
    rrf = {"RXNCONSO.RRF": code_files.RXNCONSO, "RXNREL.RRF": code_files.RXNREL}
    rxnorm = code_files.write_archive(tmp_path / "RxNorm_full_11032025.zip", rrf)

    loaded = {
        "LOINC": load_codes("LOINC", put(tmp_path, "LOINC", code_files.LOINC)),
        "UNII": load_codes("UNII", put(tmp_path, "UNII", code_files.UNII)),
        "CVX": load_codes("CVX", put(tmp_path, "CVX", code_files.CVX)),
        "RXNORM": load_codes("RXNORM", rxnorm),
        "SNOMEDCT": load_codes("snomedct", release),
    }

    assert {system: (each["codes"], each["terms"]) for system, each in loaded.items()} == {
        "LOINC": (2, 7),
        "UNII": (1, 2),
        "CVX": (2, 4),
        "RXNORM": (3, 5),
        "SNOMEDCT": (2, 3),
    }
    for system, each in loaded.items():
        stored = contents(system)
        assert len(stored) == each["codes"]
        assert sum(len(terms) for _, _, terms in stored.values()) == each["terms"]
    assert contents("SNOMEDCT")[code_files.CHILD][1:] == (
        code_files.ROOT,
        {"Toy pruritus (finding)", "Toy itch"},
    )
    tablet = Code.objects.get(system_id="RXNORM", code="9000003")
    assert tablet.properties == {"has_ingredient": ["9000001"]}
    assert contents("UNII")["0000000001"][2] == {"TOYAMINE", "TOYLENOL"}
    audited = AuditEvent.objects.filter(action="load_codes", result="done")
    assert set(audited.values_list("target_id", flat=True)) == set(loaded)
    *parts, search = code_table_version().split("; ")
    assert [part.split(" ")[0] for part in parts] == sorted(loaded)
    assert search == f"search {index.REVISION} ngrams-1"


@pytest.mark.django_db
def test_the_full_loinc_replaces_the_built_in_codes_and_stays(tmp_path: Path) -> None:
    load_codes("LOINC")
    load_codes("LOINC", put(tmp_path, "LOINC", code_files.LOINC))

    assert ensure_loaded([SystemKey.LOINC]) == []
    assert set(contents("LOINC")) == {"10000-8", "10001-6"}


@pytest.mark.django_db
def test_make_codes_says_what_it_loads_and_keeps_the_codes_of_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_codes("UNII", put(tmp_path, "UNII", code_files.UNII))

    assert supervisor._load_packages(["LOINC", "UNII"]) == 0

    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Loading LOINC and its search index ..."
    assert "146 codes, 146 terms loaded" in said[1]
    assert said[2].startswith("UNII: your own codes stay, from UNII_Names.txt")
    assert said[2].endswith("manage.py load_codes UNII")
    assert len(said) == 3
    assert contents("UNII").keys() == {"0000000001"}


@pytest.mark.django_db
def test_a_missing_or_outdated_system_is_loaded_and_a_present_one_costs_one_statement(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    assert [each.is_changed for each in ensure_loaded([SystemKey.LOINC])] == [True]
    with django_assert_num_queries(1):
        assert ensure_loaded([SystemKey.LOINC]) == []
    CodeSystem.objects.update(source="labunits 0.1.0, reader 1")

    assert [each.is_changed for each in ensure_loaded([SystemKey.LOINC])] == [True]


@pytest.mark.django_db
def test_a_system_without_a_current_index_is_indexed_and_not_loaded_again() -> None:
    load_codes("LOINC")
    codes = set(Code.objects.values_list("id", flat=True))
    entries, words = CodeEntry.objects.count(), CodeWord.objects.count()
    CodeEntry.objects.all().delete()
    CodeWord.objects.all().delete()
    CodeSystem.objects.update(index_revision=0)

    assert ensure_loaded([SystemKey.LOINC]) == []

    assert set(Code.objects.values_list("id", flat=True)) == codes
    assert (CodeEntry.objects.count(), CodeWord.objects.count()) == (entries, words)
    assert set(CodeSystem.objects.values_list("index_revision", flat=True)) == {index.REVISION}


@pytest.mark.django_db
def test_a_start_indexes_systems_that_it_would_not_load(tmp_path: Path) -> None:
    load_codes("LOINC", put(tmp_path, "LOINC", code_files.LOINC))
    CodeEntry.objects.all().delete()
    CodeSystem.objects.update(index_revision=index.REVISION - 1)

    ensure_loaded([])

    assert CodeEntry.objects.filter(system_id="LOINC").exists()


@pytest.mark.django_db
def test_the_same_content_with_an_old_index_gets_a_new_index() -> None:
    load_codes("LOINC")
    CodeEntry.objects.all().delete()
    CodeSystem.objects.update(index_revision=index.REVISION - 1)

    load_codes("LOINC")

    assert CodeEntry.objects.filter(system_id="LOINC").exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("902 |", "901|", "CODES_DUPLICATE"),
        ("902 |toy toxoid", "902|toy\x1btoxoid", "CODES_ROW"),
        ("toy vaccine, live", "x" * 6_000, "CODES_ROW"),
        ("|Inactive|", "|", "CODES_ROW"),
    ],
)
def test_a_refused_load_changes_nothing(tmp_path: Path, old: str, new: str, code: str) -> None:
    load_codes("CVX", put(tmp_path, "CVX", code_files.CVX))
    before, version = contents("CVX"), code_table_version()
    assert old in code_files.CVX

    with pytest.raises(CommandError, match=code) as caught:
        load_codes("CVX", put(tmp_path, "CVX", code_files.CVX.replace(old, new, 1)))

    assert "\n" not in str(caught.value)
    assert (contents("CVX"), code_table_version()) == (before, version)
    assert AuditEvent.objects.filter(action="load_codes", result="refused").count() == 1


@pytest.mark.django_db
def test_a_file_that_changes_during_the_load_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = itertools.count()
    monkeypatch.setattr(Cvx, "digest", lambda self: str(next(digests)))

    with pytest.raises(CommandError, match="CODES_FILE_CHANGED"):
        load_codes("CVX", put(tmp_path, "CVX", code_files.CVX))

    assert not CodeSystem.objects.exists()


@pytest.mark.django_db
def test_every_command_of_the_document_runs(tmp_path: Path) -> None:
    rrf = {"rrf/RXNCONSO.RRF": code_files.RXNCONSO, "rrf/RXNREL.RRF": code_files.RXNREL}
    code_files.write_folder(tmp_path, {"Loinc_2.82/LoincTable/Loinc.csv": code_files.LOINC})
    code_files.write_archive(tmp_path / "RxNorm_full_11032025.zip", rrf)
    code_files.write_archive(tmp_path / "SnomedCT_release.zip", code_files.SNOMED)
    put(tmp_path, "CVX", code_files.CVX)
    text = (PROJECT_ROOT / "docs/codes.md").read_text("utf-8")
    commands = re.findall(r"^manage\.py load_codes (.+)$", text, re.MULTILINE)

    # A test of its own loads ICD-10-CM.
    for line in commands[1:]:
        call_command("load_codes", *line.replace("/data", str(tmp_path)).split())

    assert commands[0] == "ICD10CM"
    assert set(CodeSystem.objects.values_list("key", flat=True)) == {
        "LOINC", "RXNORM", "SNOMEDCT", "CVX",
    }  # fmt: skip


def start(*arguments: object) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own."""
    command = [sys.executable, "manage.py", "load_codes", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=PROJECT_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def vaccines(first: int, count: int) -> str:
    """Return the list of some vaccines."""
    return "".join(
        f"{code}|toy {code}|toy vaccine {code}||Active|False|2024/05/28|\n"
        for code in range(first, first + count)
    )


def test_kill_9_during_a_load_leaves_the_old_codes(cloned_db: str, tmp_path: Path) -> None:
    load_codes("UNII", put(tmp_path, "UNII", code_files.UNII))
    before, version = contents("UNII"), code_table_version()
    header = code_files.UNII.split("\r\n")[0]
    rows = [f"TOY {at}\tof\t{at:010}\tTOY {at}\r\n" for at in range(20_000)]
    large = put(tmp_path, "UNII", f"{header}\r\n{''.join(rows)}")

    child = start("UNII", large)
    while not is_inserting():
        assert child.poll() is None, child.communicate()
    child.kill()
    child.communicate()

    assert (contents("UNII"), code_table_version()) == (before, version)
    assert load_codes("UNII", large)["codes"] == 20_000


def is_inserting() -> bool:
    """Return whether another session of the database inserts terms."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND query LIKE '%%first_of_each%%'"
        )
        return bool(cursor.fetchone()[0])


def test_two_loads_at_once_never_mix(cloned_db: str, tmp_path: Path) -> None:
    files = []
    for name, content in (("a", vaccines(1, 300)), ("b", vaccines(250, 200))):
        (tmp_path / name).mkdir()
        files.append(put(tmp_path / name, "CVX", content))

    children = [start("CVX", file) for file in files * 2]
    outputs = [child.communicate() for child in children]

    assert [child.returncode for child in children] == [0] * 4, outputs
    stored = {int(code) for code in contents("CVX")}
    assert stored in (set(range(1, 301)), set(range(250, 450)))
    assert CodeTerm.objects.count() == 2 * len(stored) == CodeSystem.objects.get().term_count
