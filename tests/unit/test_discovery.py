"""Pass 0.5 of the local engine splits encounters at the right places only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.types import PageSlice
from pipeline.providers.local.discovery.encounters import discover
from pipeline.providers.prompts import read_prompt, render_discovery
from pipeline.providers.schemas import DiscoveryReply, FoundEncounter

TOKEN = "0123456789abcdef"
VISIT = """North Clinic
12 Mill Road, Elmsdale
OFFICE VISIT
Patient: Doe, Jane A. DOB: 03/14/1950
MRN: 55-1200 Date of Service: 01/02/2024
Provider: Ines Vander, MD"""
BODY = """HISTORY
She has had a cough for three days. Seen elsewhere on 12/20/2023.
ASSESSMENT AND PLAN
Rest, fluids. Return if fever develops.
Nothing else was discussed today.
She was content with that."""


def ask(*pages: str, first: int = 1, context: str | None = None) -> DiscoveryReply:
    shown = [
        PageSlice(page=number, start=0, text=text) for number, text in enumerate(pages, start=first)
    ]
    if context is not None:
        shown.insert(0, PageSlice(page=first - 1, start=0, text=context, context=True))
    return discover(read_prompt(render_discovery(TOKEN, shown)))


def seen(*pages: str) -> list[FoundEncounter]:
    return ask(*pages).encounters


def days(*pages: str) -> list[str | None]:
    return [encounter.date_start for encounter in seen(*pages)]


def lines(encounter: FoundEncounter) -> list[tuple[int, int, int]]:
    return [(s.page, s.first_line, s.last_line) for s in encounter.spans]


def visit(**changes: str) -> str:
    """Return the heading of a visit with some words changed."""
    text = VISIT
    for old, new in (
        ("facility", "North Clinic"),
        ("title", "OFFICE VISIT"),
        ("patient", "Doe, Jane A. DOB: 03/14/1950"),
        ("number", "55-1200"),
        ("label", "Date of Service"),
        ("day", "01/02/2024"),
    ):
        if old in changes:
            text = text.replace(new, changes[old])
    return text


def test_a_visit_is_read_as_printed() -> None:
    (encounter,) = seen(f"{VISIT}\n{BODY}")

    assert encounter.encounter_type == "office_visit"
    assert encounter.date_start == "2024-01-02"
    assert encounter.facility == "North Clinic"
    assert encounter.clinician == "Ines Vander, MD"
    assert encounter.patient_name == "Doe, Jane A."
    assert encounter.patient_birth_date == "1950-03-14"
    assert encounter.patient_identifier == "55-1200"
    assert lines(encounter) == [(1, 1, 12)]
    assert encounter.rule == "split.start"


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        (visit(day="02/09/2024"), "split.service_date"),
        (visit(facility="Harbor Heart Associates"), "split.facility"),
        (visit(title="LABORATORY REPORT"), "split.document_kind"),
        (visit(patient="Roe, Richard DOB: 01/01/1940"), "split.patient"),
    ],
)
def test_another_date_facility_kind_or_patient_begins_another_encounter(
    second: str, rule: str
) -> None:
    first, other = seen(f"{VISIT}\n{BODY}\n{second}\n{BODY}")

    assert lines(first) == [(1, 1, 12)]
    assert lines(other) == [(1, 13, 24)]
    assert other.rule == rule


@pytest.mark.parametrize(
    "label",
    [
        "Date of Service",
        "Visit date",
        "Encounter Time",
        "Encounter",
        "Collected",
        "Exam date",
        "DOS",
        "Procedure Date",
        "Arrival",
        "Date 0f Service",
        "Date of Servlce",
        "DATE OF SERVICE",
        "Dale of Service",
    ],
)
def test_every_label_of_a_service_date_splits(label: str) -> None:
    pages = (f"{visit(label=label)}\n{BODY}", f"{visit(label=label, day='05/06/2024')}\n{BODY}")

    assert days(*pages) == ["2024-01-02", "2024-05-06"]


@pytest.mark.parametrize(
    "line",
    [
        "Reported: 02/03/2024",
        "Printed: 02/03/2024 10:12",
        "Date of last visit: 02/03/2023",
        "Last visit: 02/03/2023",
        "Next appointment: 02/03/2025",
        "Seen on 02/03/2023 for a cold.",
        "RESULTS REVIEWED (collected 02/03/2023)",
        "Collected: 02/03/2023 08:00",
        "Date of surgery: 02/03/1999",
        "Electronically signed by Ines Vander, MD Date: 02/03/2025",
        "Mother's DOB: 02/03/1921",
        "Infant DOB: 02/03/2021",
        "Emergency contact name: Roe, Richard",
        "Name: Influenza Vaccine Lot: 12",
        "Patient: Doing well today",
        "Patient: resting in bed, no distress.",
        "Date of Service: 02/29/2001",
        "Primary tumor site: right",
        "The Harbor Heart Associates saw her.",
        "HOSPITAL COURSE",
        "IMAGING STUDIES",
        "FAMILY HISTORY",
    ],
)
def test_a_mention_of_a_date_title_or_place_does_not_split(line: str) -> None:
    encounters = seen(f"{VISIT}\n{BODY}\n{line}\n{BODY}")

    assert [lines(e) for e in encounters] == [[(1, 1, 19)]]
    assert encounters[0].facility == "North Clinic"
    assert encounters[0].date_start == "2024-01-02"


def test_notes_with_one_encounter_time_are_one_encounter_whatever_their_titles() -> None:
    notes = [
        visit(title=title, label="Encounter Time", day="01/02/2024 12:00:00")
        for title in ("NURSING INTAKE NOTE", "SURGICAL PATHOLOGY REPORT", "PHYSICIAN NOTE")
    ]

    (encounter,) = seen(*[f"{note}\n{BODY}" for note in notes])

    assert [span[0] for span in lines(encounter)] == [1, 2, 3]


def test_a_stay_holds_the_dated_notes_of_its_days() -> None:
    admission = visit(title="INPATIENT ADMISSION", label="Admission Date")
    daily = visit(title="PROGRESS NOTE", day="01/04/2024")
    discharge = visit(title="DISCHARGE SUMMARY", label="Admission Date").replace(
        "01/02/2024", "01/02/2024 Discharge Date: 01/06/2024"
    )
    after = visit(day="01/20/2024")

    stay, visit_after = seen(*[f"{head}\n{BODY}" for head in (admission, daily, discharge, after)])

    assert (stay.encounter_type, stay.date_start, stay.date_end) == (
        "inpatient",
        "2024-01-02",
        "2024-01-06",
    )
    assert [span[0] for span in lines(stay)] == [1, 2, 3]
    assert visit_after.date_start == "2024-01-20"


def test_a_bare_date_of_service_begins_the_next_note_of_the_same_patient() -> None:
    first, second = seen(f"{VISIT}\n{BODY}\nDate of Service: 03/03/2024\n{BODY}")

    assert lines(second) == [(1, 13, 19)]
    assert (second.patient_name, second.facility) == (first.patient_name, first.facility)


def test_a_series_of_laboratory_reports_is_split_by_its_collection_dates() -> None:
    head = visit(title="LABORATORY REPORT", label="Collected")
    rows = "Sodium 139 mmol/L\nPotassium 4.1 mmol/L\nChloride 101 mmol/L"

    assert days(f"{head}\n{rows}\nCollected: 02/03/2024 08:00\n{rows}") == [
        "2024-01-02",
        "2024-02-03",
    ]


def test_running_headers_and_pages_without_a_head_go_on_with_the_open_encounter() -> None:
    running = f"Patient: Doe, Jane A. MRN: 55-1200 Page 2 of 9\n{BODY}"

    (encounter,) = seen(f"{VISIT}\n{BODY}", running, BODY, f"{VISIT}\n{BODY}")

    assert lines(encounter) == [(1, 1, 12), (2, 1, 7), (3, 1, 6), (4, 1, 12)]


def test_a_running_header_above_a_new_head_belongs_to_the_new_encounter() -> None:
    running = "Doe, Jane A. MRN 55-1200 Page 2 of 9"

    first, second = seen(f"{VISIT}\n{BODY}", f"{running}\n{visit(day='03/03/2024')}\n{BODY}")

    assert [span[0] for span in lines(first)] == [1]
    assert lines(second) == [(2, 1, 13)]


def test_a_running_header_of_another_patient_begins_an_encounter() -> None:
    other = f"Patient: Roe, Richard MRN: 99-0001 Page 2 of 9\n{BODY}"

    first, second = seen(f"{VISIT}\n{BODY}", other)

    assert (first.patient_name, second.patient_name) == ("Doe, Jane A.", "Roe, Richard")
    assert second.rule == "split.patient"


def test_a_foot_line_of_another_facility_does_not_split() -> None:
    assert len(seen(f"{VISIT}\n{BODY}\nHollins Creek Medical Center Page 1 of 3", BODY)) == 1


def test_an_encounter_that_goes_on_after_another_is_one() -> None:
    laboratory = visit(title="LABORATORY REPORT", label="Collected", day="01/01/2024")

    first, second = seen(*[f"{head}\n{BODY}" for head in (VISIT, laboratory, VISIT)])

    assert [span[0] for span in lines(first)] == [1, 3]
    assert [span[0] for span in lines(second)] == [2]


def test_blank_pages_and_cover_sheets_are_left_out() -> None:
    cover = "Record Copy Service\nFAX COVER SHEET\nRecords requested: 01/01/2023\nPages: 4"

    (encounter,) = seen(cover, "  \n ", f"{VISIT}\n{BODY}", "", BODY)

    assert [span[0] for span in lines(encounter)] == [3, 5]
    assert encounter.rule == "split.after_cover"


def test_clinical_text_without_any_head_is_an_encounter_of_unknown_date() -> None:
    (encounter,) = seen(BODY)

    assert (encounter.date_start, encounter.facility, encounter.encounter_type) == (
        None,
        None,
        "other",
    )


def test_pages_in_another_language_are_listed_and_not_assigned() -> None:
    spanish = (
        "Clínica Comunitaria Río Alto\nMOTIVO DE LA CONSULTA\n"
        "La paciente acude por hinchazón de las piernas y cansancio desde hace tres semanas. "
        "Niega dolor en el pecho, fiebre o desmayos. Su hija la ayuda en casa por las tardes. "
        "Refiere que toma sus medicamentos todos los días y que ha reducido la sal."
    )

    reply = ask(f"{VISIT}\n{BODY}", spanish, f"{visit(day='05/05/2024')}\n{BODY}")

    assert reply.unsupported_pages == [2]
    assert [[span[0] for span in lines(e)] for e in reply.encounters] == [[1], [3]]


def test_an_encounter_is_open_at_the_edges_that_it_may_cross() -> None:
    reply = ask(BODY, f"{visit(day='04/04/2024')}\n{BODY}", first=8, context=f"{VISIT}\n{BODY}")

    first, second = reply.encounters
    assert (first.open_at_start, first.open_at_end) == (True, False)
    assert [span[0] for span in lines(first)] == [7, 8]
    assert (second.open_at_start, second.open_at_end) == (False, True)


def test_an_encounter_of_the_context_page_alone_is_not_reported() -> None:
    reply = ask(f"{visit(day='04/04/2024')}\n{BODY}", first=8, context=f"{VISIT}\n{BODY}")

    assert [e.date_start for e in reply.encounters] == ["2024-04-04"]
    assert not reply.encounters[0].open_at_start


def test_nothing_is_open_at_the_start_of_the_record() -> None:
    assert [e.open_at_start for e in ask(BODY, BODY).encounters] == [False]


def test_the_token_is_echoed_and_the_language_named() -> None:
    reply = ask(f"{VISIT}\n{BODY}")

    assert (reply.item_token, reply.language) == (TOKEN, "en")


def test_the_name_of_a_file_in_the_text_decides_nothing() -> None:
    assert (
        len(seen(f"Patient_03022023_LAB.pdf\n{VISIT}\n{BODY}", f"Scan_04052023.pdf\n{BODY}")) == 1
    )


def test_speckled_scans_are_read_through() -> None:
    scan = f"""_ NORTH CLINIC |
12 Ml1l Road, Elmsdale
OFFICE VISlT .
Patlent: Doe, Jane A. D0B: 03/14/1950
MRN: 55-1200 _ Date 0f Service: 01/02/2O24 . Cliniclan: Ines Vander, MD
{BODY}"""

    (encounter,) = seen(scan)

    assert encounter.encounter_type == "office_visit"
    assert encounter.facility == "NORTH CLINIC"
    assert encounter.date_start == "2024-01-02"
    assert encounter.patient_birth_date == "1950-03-14"


def test_a_letterhead_below_other_text_begins_a_document_even_where_its_date_is_lost() -> None:
    spoilt = VISIT.replace("Date of Service: 01/02/2024", "D#te of S: O#/%2/2024")

    first, second = seen(f"{VISIT}\n{BODY}\n{spoilt}\n{BODY}")

    assert (first.date_start, second.date_start) == ("2024-01-02", None)


_LINES = st.sampled_from(
    [
        *VISIT.split("\n"),
        *BODY.split("\n"),
        "",
        "Page 3 of 4",
        "Date of Service: 13/45/2024",
        "DOB:",
    ]
)


@given(
    st.lists(
        st.one_of(st.lists(_LINES, max_size=12).map("\n".join), st.text(max_size=80)), max_size=5
    )
)
def test_any_text_is_answered_with_lines_that_are_there(pages: list[str]) -> None:
    reply = ask(*pages)

    claimed = [
        (s.page, n)
        for e in reply.encounters
        for s in e.spans
        for n in range(s.first_line, s.last_line + 1)
    ]
    assert len(claimed) == len(set(claimed))
    for page, number in claimed:
        assert number <= len(pages[page - 1].split("\n"))
