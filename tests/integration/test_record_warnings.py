"""Each warning of a record appears once, in its newest form."""

from __future__ import annotations

import pytest

from pipeline.core.errors import ErrorCode
from pipeline.models import ShellFile
from pipeline.stages.pass05.run import LANGUAGE
from pipeline.stages.record_warnings import warn
from tests.support.rows import a_job


@pytest.mark.django_db
def test_a_repeated_warning_replaces_the_earlier_warning() -> None:
    record = a_job().shell_file_id

    warn(record, ErrorCode.NO_ENTITIES_FOUND, "Nothing there.", [3])
    warn(record, ErrorCode.OCR_QUALITY_LOW, "Poor.", [1])
    warn(record, ErrorCode.NO_ENTITIES_FOUND, "Nothing there.", [5, 3])

    found = ShellFile.objects.get(id=record).warnings
    assert [(w["code"], w["pages"]) for w in found] == [
        ("OCR_QUALITY_LOW", [1]),
        ("NO_ENTITIES_FOUND", [3, 5]),
    ]


@pytest.mark.django_db
def test_a_repeated_warning_has_the_newest_number() -> None:
    record = a_job().shell_file_id

    warn(record, ErrorCode.ITEM_REJECTED, "Left out.", [3], count=2)
    warn(record, ErrorCode.ITEM_REJECTED, "Left out.", [4], count=1)
    warn(record, ErrorCode.OCR_QUALITY_LOW, "Poor.")

    found = ShellFile.objects.get(id=record).warnings
    assert [w.get("count") for w in found] == [1, None]


@pytest.mark.parametrize(
    ("written", "is_tag"),
    [
        ("en", True),
        ("pt-BR", True),
        ("Odalys Wrenfield", False),
        ("English", False),
        ("", False),
        ("en-Wrenfiel", False),
        ("ody", False),
        ("xx", False),
    ],
)
def test_only_a_language_tag_is_taken_for_a_language(written: str, is_tag: bool) -> None:
    assert bool(LANGUAGE.fullmatch(written)) is is_tag
