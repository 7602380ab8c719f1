"""The stored results of Passes 1.5 to 3 agree with the truth of the samples.

A difference is a defect, unless a value is missing or a reviewer sees the entity anyway. The code
systems are those of the installed packages.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command

from pipeline.models import EnrichedEntity
from samples import check
from tests.support import records

pytestmark = [
    pytest.mark.slow(
        reason="ICD-10-CM is loaded, and four records run through all passes: minutes"
    ),
    pytest.mark.xdist_group("sample-truth"),
]


@pytest.fixture(scope="module")
def coded_db(module_db: str) -> str:
    """Provide a database with ICD-10-CM and LOINC, loaded once."""
    call_command("load_codes", "ICD10CM")
    call_command("load_codes", "LOINC")
    return module_db


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("lab_5p_8enc", 0.1),
        ("traps_10p", 0.05),
        ("visits_20p_4enc", 0.1),
        ("scan_5p", 0.9),
    ],
)
def test_a_record_differs_from_its_truth_only_where_a_value_is_missing_or_flagged(
    coded_db: str, settings: Any, name: str, most: float
) -> None:
    settings.SKIPPED_PASSES = ()
    record = records.completed_record(records.SAMPLES / f"{name}.pdf")

    found = check.clinical_differences(name, record.id)

    enriched = EnrichedEntity.objects.filter(shell_file=record).count()
    assert [str(each) for each in found if not (each.doubted or each.missing)] == []
    assert enriched > 0
    assert len(found) < most * enriched
