"""The clinical summary and the page view show what Passes 1.5 to 3 found, and nothing else."""

from __future__ import annotations

import io
import json
from http import HTTPStatus
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from observability.drilldown.explain import drill_down
from observability.permissions import Role
from observability.phi.results import results_page
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import (
    Encounter,
    EnrichedEntity,
    Job,
    NarrativeResult,
    NarrativeSentence,
    Page,
    RecordListItem,
    Reuse,
    Session,
    ShellFile,
    ZoneResult,
)
from tests.support.audit_rows import audit_events
from tests.support.clinical_rows import CONTRADICTION, SUPPORTED, UNSUPPORTED, clinical_rows
from tests.support.rows import a_job, an_encounter
from tests.support.wide_results import a_wide_record

pytestmark = pytest.mark.django_db


MISSING = ", so results are missing here or incomplete:"


def _record(name: str = "metoprolol") -> UUID:
    """Insert a record of one encounter with results of all passes."""
    job = a_job()
    an_encounter(job)
    record_id: UUID = job.shell_file_id
    Page.objects.create(
        shell_file_id=record_id,
        page_number=1,
        text=f"{name} 25mg BID",
        source="text_layer",
        width=612,
        height=792,
    )
    clinical_rows(Encounter.objects.get(shell_file_id=record_id), name=name)
    return record_id


def _client(role: Role) -> Client:
    user = User.objects.create_user(f"{role}-{uuid4()}", is_staff=True)
    user.groups.set(Group.objects.filter(name=role))
    client = Client()
    client.force_login(user)
    return client


def _page(record_id: UUID, name: str = "record_results", *args: object) -> str:
    answer = _client(Role.REVIEWER).get(reverse(f"admin:{name}", args=[record_id, *args]))
    assert answer.status_code == HTTPStatus.OK
    return answer.content.decode()


def _command(record_id: UUID | str, *options: str) -> str:
    out = io.StringIO()
    call_command("summary", str(record_id), *options, stdout=out)
    return out.getvalue()


def test_page_and_command_show_supported_sentences_and_contradictions_alone() -> None:
    record_id, other = _record(), _record("warfarin")

    for shown in (_page(record_id), _command(record_id), _command(record_id, "--json")):
        assert SUPPORTED in shown
        assert UNSUPPORTED not in shown
        assert CONTRADICTION in shown
        assert "RXNORM|6918" in shown
        assert "warfarin" not in shown
        assert str(other) not in shown
    assert "1 sentence left out" in " ".join(_page(record_id).split())
    assert "1 sentence not supported and left out" in _command(record_id)
    assert "code_uncertain" not in _page(record_id) + _command(record_id)
    assert "the page does not decide between the codes" in _command(record_id)


def test_page_and_command_list_contradicted_and_flagged_entries_first_and_alike() -> None:
    wide = a_wide_record(entries=12, encounters=4, results=3)

    found = json.loads(_command(wide.record_id, "--json"))["lists"]
    shown = results_page(wide.record_id).lists

    for of in shown:
        listed = [entry["id"] for entry in found[of.kind]]
        assert listed[: len(of.part.rows)] == [each.entry.id for each in of.part.rows]
    assert [entry["name"] for entry in found["problem"]][:1] == [f"problem {wide.flagged}"]
    assert found["medication"][0]["contradictions"]
    assert not any(entry["contradictions"] for entry in found["medication"][1:])


def test_each_reading_is_one_row_of_the_audit_and_needs_the_right() -> None:
    record_id = _record()
    before = audit_events().count()
    url = reverse("admin:record_results", args=[record_id])

    refused = _client(Role.OPERATOR).get(url)
    after_refusal = audit_events().count()
    _page(record_id)
    _command(record_id)

    assert refused.status_code == HTTPStatus.FORBIDDEN
    assert SUPPORTED not in refused.content.decode()
    assert after_refusal == before
    written = list(audit_events())[before:]
    assert [(each.action, each.target_id) for each in written] == [
        ("read_phi", str(record_id)),
        ("read_phi", str(record_id)),
    ]


def test_a_record_without_later_passes_says_so() -> None:
    record_id: UUID = a_job().shell_file_id

    assert "No pass after Pass 1 has results of this record." in _page(record_id)
    assert "No pass after Pass 1 has results of this record." in _command(record_id)
    assert json.loads(_command(record_id, "--json"))["entities"] == 0


@pytest.mark.parametrize(
    ("statuses", "sentences"),
    [
        ({"pass2_status": "completed", "pass3_status": "completed"}, []),
        (
            {"pass2_status": "completed", "pass3_status": "failed"},
            [f"Pass 3 has failed{MISSING} narratives."],
        ),
        (
            {"pass2_status": "failed", "pass3_status": "pending"},
            [
                f"Pass 2 has failed{MISSING} attributes, chosen codes and lists; narratives.",
            ],
        ),
        (
            {"pass2_status": "processing", "pass3_status": "skipped"},
            [
                "Pass 3 is switched off: the record has no narratives.",
                f"Pass 2 is not complete yet{MISSING} attributes, chosen codes and lists.",
            ],
        ),
    ],
)
def test_page_and_command_say_which_results_are_missing(
    statuses: dict[str, str], sentences: list[str]
) -> None:
    record_id = _record()
    Session.objects.filter(shell_file_id=record_id).update(pass1_5_status="completed", **statuses)

    shown = json.loads(_command(record_id, "--json"))["open_passes"]

    assert shown == sentences
    page, command = _page(record_id), _command(record_id)
    assert page.count("data-open-pass") == len(sentences)
    for sentence in sentences:
        assert sentence in page
        assert sentence in command


@pytest.mark.parametrize("text", ["0b02ca07-dce8-4ca2-9850-8a2edbe5b7e8", "abcdef", "xyz"])
def test_an_unknown_id_is_one_line(text: str) -> None:
    with pytest.raises(CommandError) as error:
        _command(text)

    assert str(error.value).count("\n") == 0


def test_an_unknown_record_is_not_found_and_no_reading() -> None:
    before = audit_events().count()

    answer = _client(Role.REVIEWER).get(reverse("admin:record_results", args=[uuid4()]))

    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert audit_events().count() == before


def test_a_page_shows_attributes_code_shortlist_flags_and_both_readings() -> None:
    shown = " ".join(_page(_record(), "record_page", 1).split())

    assert "<dt>dose</dt> <dd>25 mg</dd>" in shown
    assert "<dt>timing</dt> <dd>twice a day</dd>" in shown
    assert "<code>RXNORM|6918</code> metoprolol" in shown
    assert "Shortlist of 2 codes" in shown
    assert "2. <code>RXNORM|1202</code> atenolol" in shown
    assert "score 0.50 · 1 of 1 words" in shown
    assert "the printed amount is not understood" in shown
    assert "<td>left out</td> <td>intravenous</td>" in shown
    assert "dose_not_understood" not in shown


def test_an_id_of_each_new_row_leads_to_its_node() -> None:
    record_id = _record()
    zone = ZoneResult.objects.get(healthcare_encounter__shell_file_id=record_id)
    narrative = NarrativeResult.objects.get(processing_session__shell_file_id=record_id)
    encounter = Encounter.objects.get(shell_file_id=record_id)
    rows = {
        zone.id: zone.id,
        narrative.id: narrative.id,
        EnrichedEntity.objects.get(shell_file_id=record_id).id: encounter.id,
        NarrativeSentence.objects.filter(shell_file_id=record_id)[0].id: narrative.id,
        RecordListItem.objects.get(shell_file_id=record_id).id: record_id,
    }

    found = {asked: drill_down(str(asked)).focus for asked in rows}

    assert found == {asked: str(node) for asked, node in rows.items()}


def test_an_encounter_leads_to_its_zones_and_its_narrative_and_back() -> None:
    record_id = _record()
    zone = ZoneResult.objects.get(healthcare_encounter__shell_file_id=record_id)
    encounter = Encounter.objects.get(shell_file_id=record_id)
    client, url = _client(Role.VIEWER), reverse("admin:record", args=[record_id])

    from_encounter = client.get(f"{url}?node={encounter.id}").context["related"]
    from_zone = client.get(f"{url}?node={zone.id}").context["related"]

    assert [title for title, _ in from_encounter] == ["Pass 2: 1 zone", "Pass 3: 1 narrative"]
    assert [node.id for _, nodes in from_zone for node in nodes] == [str(encounter.id)]


def test_a_failed_zone_is_told_in_words_and_the_entities_stay_visible() -> None:
    record_id = _record()
    Job.objects.filter(shell_file_id=record_id).update(
        current_step=Step.PASS2,
        status=JobStatus.FAILED,
        error_code="PARSE_JSON",
        last_error="1 of 1 zones failed.",
        completed_at=timezone.now(),
    )
    ZoneResult.objects.filter(healthcare_encounter__shell_file_id=record_id).update(
        status=WorkStatus.FAILED, error_code="PARSE_JSON", error_message="The reply was no JSON."
    )

    answer = drill_down(str(record_id)).record_answer

    assert answer.startswith("Pass 2 failed: encounter 1, zone 1 (page 1): The reply was no JSON.")
    assert "The entities of Pass 1 stay visible." in answer


def test_a_result_leads_to_its_quote_with_the_mentions_of_its_entry() -> None:
    record_id = _record()
    item = RecordListItem.objects.get(shell_file_id=record_id)
    (entity_id,) = item.entity_ids
    client = _client(Role.REVIEWER)
    url = reverse("admin:source", args=[record_id, entity_id])
    before = audit_events().count()

    shown = client.get(url, {"item": str(item.id)}).content.decode()

    assert '<blockquote class="v-quote">metoprolol</blockquote>' in shown
    assert "1 mention of metoprolol" in " ".join(shown.split())
    assert f"{url}?item={item.id}" in _page(record_id)
    written = list(audit_events())[before]
    assert (written.action, written.target_id) == ("read_phi", str(record_id))


def test_a_source_of_another_record_is_not_found() -> None:
    record_id, other = _record(), _record("warfarin")
    foreign = RecordListItem.objects.get(shell_file_id=other)
    (own,) = RecordListItem.objects.get(shell_file_id=record_id).entity_ids
    client = _client(Role.REVIEWER)
    url = reverse("admin:source", args=[record_id, own])

    answers = [
        client.get(reverse("admin:source", args=[record_id, foreign.entity_ids[0]])),
        client.get(url, {"item": str(foreign.id)}),
        client.get(url, {"item": "x"}),
        client.get(reverse("admin:source", args=[uuid4(), own])),
    ]

    assert [each.status_code for each in answers] == [HTTPStatus.NOT_FOUND] * 4


def test_the_results_name_encounters_warnings_and_reused_records() -> None:
    record_id, source = _record(), _record("warfarin")
    ShellFile.objects.filter(id=record_id).update(
        warnings=[{"code": "PARTLY_READ", "message": "A part was not read.", "pages": [1]}]
    )
    Reuse.objects.create(shell_file_id=record_id, step=Step.PASS1, source_id=source, items=1)
    Encounter.objects.filter(shell_file_id=record_id).update(facility_name="Larkmead Practice")

    shown = " ".join(_page(record_id).split())

    assert "Larkmead Practice" in shown
    assert "A part was not read." in shown
    assert f'reused from <a href="{reverse("admin:record", args=[source])}">' in shown
    assert "held or failed: no results" in shown
