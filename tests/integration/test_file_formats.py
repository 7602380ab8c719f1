"""One visit in each file format: the same entities, on a page that the console draws and marks."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from observability.permissions import Role
from pipeline.core.states import JobStatus
from pipeline.documents import reader
from pipeline.execution.attachments import source_of
from pipeline.models import Entity, Job, Page, ShellFile
from samples import visit_formats
from tests.support import records
from tests.support.users import client_of

TEXTS = ("txt", "rtf", "docx", "xml")
IMAGES = ("webp", "bmp", "heic")
FACTS = (
    "category", "name", "value", "unit", "abnormal_flag", "reference_range", "dose", "route",
    "frequency", "reaction", "negated",
)  # fmt: skip

pytestmark = pytest.mark.xdist_group("file-formats")


def facts_of(record: UUID) -> list[dict[str, Any]]:
    """Return the stated facts of each entity, in the order of the text."""
    rows = Entity.objects.filter(shell_file_id=record).order_by("entity_index")
    return [{k: v for k, v in row.items() if v} for row in rows.values(*FACTS)]


@pytest.fixture(scope="module")
def found(module_db: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ShellFile]:
    """Return the completed record of each format."""
    printed = tmp_path_factory.mktemp("visit") / "visit.pdf"
    printed.write_bytes(visit_formats.as_pdf())
    paths = {kind: visit_formats.HERE / f"visit.{kind}" for kind in (*TEXTS, *IMAGES)}
    paths["pdf"] = printed
    return {kind: records.completed_record(path) for kind, path in paths.items()}


@pytest.mark.parametrize("kind", [*TEXTS, "pdf"])
def test_each_text_format_gives_the_entities_of_the_truth(
    found: dict[str, ShellFile], kind: str
) -> None:
    truth = json.loads((visit_formats.HERE / "visit.entities.json").read_text("utf-8"))

    assert Job.objects.get(shell_file=found[kind]).status == JobStatus.COMPLETED
    assert facts_of(found[kind].id) == truth


@pytest.mark.parametrize("kind", IMAGES)
def test_no_image_format_gives_another_value(found: dict[str, ShellFile], kind: str) -> None:
    truth = json.loads((visit_formats.HERE / "visit.entities.json").read_text("utf-8"))

    def stated(facts: dict[str, Any]) -> tuple[str, ...]:
        # OCR reads µ as u, and L as l: the same units.
        keys = ("name", "value", "unit", "dose")
        return tuple((facts.get(key) or "").replace("µ", "u").lower() for key in keys)

    read = {stated(each) for each in facts_of(found[kind].id)}
    right = {stated(each) for each in truth}
    # What OCR loses is published without a value.
    assert {each for each in read - right if each[1] or each[3]} == set()
    assert len(read & right) >= len(right) - 3


@pytest.mark.parametrize("kind", [*TEXTS, *IMAGES])
def test_the_console_draws_the_page_and_marks_each_entity(
    found: dict[str, ShellFile], kind: str
) -> None:
    client, record = client_of(Role.REVIEWER, f"reviewer-{kind}"), found[kind]

    page = client.get(reverse("admin:record_page", args=[record.id, 1])).content.decode()
    image = client.get(reverse("admin:page_image", args=[record.id, 1]))

    assert image.status_code == HTTPStatus.OK
    assert image.content.startswith(b"\x89PNG")
    assert "no word boxes" not in page
    assert page.count("<rect") >= Entity.objects.filter(shell_file=record).count()


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_file_is_sent_as_text_although_pages_are_attached(
    found: dict[str, ShellFile], kind: str, settings: Any
) -> None:
    settings.PASS_INPUT = "pdf"

    with source_of(found[kind].id) as source:
        assert source is None
    with source_of(found["heic"].id) as source:
        assert source is not None


@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_is_sent_as_jpeg(kind: str) -> None:
    (part,) = reader.slice_pages(visit_formats.HERE / f"visit.{kind}", [1])

    assert part.media_type is reader.MediaType.JPEG


@pytest.mark.django_db
@pytest.mark.parametrize("kind", [*TEXTS, *IMAGES])
def test_the_upload_form_takes_each_format(kind: str) -> None:
    client: Client = client_of(Role.OPERATOR)
    path = visit_formats.HERE / f"visit.{kind}"
    file = SimpleUploadedFile(path.name, path.read_bytes())
    fields = {"token": str(uuid4()), "patient": "", "priority": "0", "files": [file]}

    client.post(reverse("admin:upload_files"), fields)

    assert ShellFile.objects.get().media_type == reader.sniff(path)


def test_the_committed_files_are_those_that_the_module_writes() -> None:
    written = visit_formats.files()

    assert {name: (visit_formats.HERE / name).read_bytes() for name in written} == written


def test_a_page_of_a_text_file_has_a_box_for_each_word(found: dict[str, ShellFile]) -> None:
    page = Page.objects.get(shell_file=found["docx"])

    assert page.words is not None
    assert [page.text[word[0] : word[1]] for word in page.words] == page.text.split()


def test_a_refused_file_leaves_no_record(tmp_path: Path, db: None) -> None:
    from pipeline.core.errors import InputError

    path = tmp_path / "oru.hl7"
    path.write_bytes(b"MSH|^~\\&|LAB|\rPID|1\r")

    with pytest.raises(InputError, match="HL7 v2 messages"):
        records.submit(path)
    assert not ShellFile.objects.exists()
