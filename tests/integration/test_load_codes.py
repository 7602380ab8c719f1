"""`load_codes` replaces the codes of one system in one transaction, or changes nothing."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from observability.models import AuditEvent
from pipeline.codes.loaders import ensure_loaded
from pipeline.codes.version import code_table_version
from pipeline.models import Code, CodeSystem, CodeTerm
from pipeline.models.codes import SystemKey


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
    assert sum(billable for _, _, billable in stored.values()) == 74_719
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
    first = load_codes("ICD10CM")
    version, ids = code_table_version(), set(Code.objects.values_list("pk", flat=True)[:10])

    second = load_codes("ICD10CM")

    assert first["is_changed"]
    assert second == {**first, "is_changed": False}
    assert code_table_version() == version
    assert set(Code.objects.values_list("pk", flat=True)[:10]) == ids
    assert ensure_loaded([SystemKey.ICD10CM]) == []


@pytest.mark.django_db
def test_an_unknown_system_is_refused_and_audited() -> None:
    with pytest.raises(CommandError, match="CODES_SYSTEM_UNKNOWN"):
        load_codes("ICD9")

    assert not CodeSystem.objects.exists()
    assert AuditEvent.objects.get().result == "refused"
