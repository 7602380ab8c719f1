"""`long_72p`: twelve encounters on 72 pages, one of them a stay of 30 pages.

Sentences and tables cross page ends. Continuation pages carry a running header or nothing.
"""

from __future__ import annotations

import datetime as dt
import random

from samples import notes, phrases, tables, truth
from samples.layout import BARRED, SANS, SERIF, TYPED, Book, Style

PATIENT = truth.PatientTruth(
    name="Valtierra, Ottoline R.",
    birth_date=dt.date(1952, 4, 30),
    identifier="60-118-442",
    sex="F",
)
CLINIC = "Quillhaven Internal Medicine"
LABORATORY = "Tamarack Ridge Clinical Laboratory"
HOSPITAL = "Corvane Memorial Hospital"
RADIOLOGY = "Quillhaven Radiology Group"
THERAPY = "Stridewell Rehabilitation"
GUT = "Corvane Endoscopy Center"
KIDNEY = "Ferrow Valley Nephrology"
ADMITTED, DISCHARGED = dt.date(2024, 2, 6), dt.date(2024, 2, 25)


def build() -> Book:
    """Write the record."""
    book = Book(PATIENT)
    rng = random.Random(72)
    _visit(book, rng, "office_visit", CLINIC, dt.date(2023, 10, 12), 4, "OFFICE VISIT", SANS)
    _laboratory(book, rng, dt.date(2023, 10, 19), 6, 0.1)
    _radiology(book)
    _visit(
        book, rng, "emergency", f"{HOSPITAL} Emergency Department", dt.date(2024, 1, 3), 12,
        "EMERGENCY DEPARTMENT NOTE", BARRED,
    )  # fmt: skip
    _stay(book, rng)
    _visit(book, rng, "telehealth", CLINIC, dt.date(2024, 3, 1), 44, "TELEHEALTH VISIT", SANS)
    _laboratory(book, rng, dt.date(2024, 3, 14), 47, 0.6)
    _procedure(book, rng)
    _visit(
        book, rng, "consultation", KIDNEY, dt.date(2024, 5, 22), 57,
        "NEPHROLOGY CONSULTATION", SERIF,
    )  # fmt: skip
    _therapy(book, rng)
    _visit(book, rng, "office_visit", CLINIC, dt.date(2024, 8, 15), 69, "OFFICE VISIT", SANS)
    _laboratory(book, rng, dt.date(2024, 8, 22), 72, 1.0)
    return book


def _head(
    book: Book,
    type_: str,
    facility: str,
    day: dt.date,
    title: str,
    style: Style,
    *fields: tuple[str, str],
    end: dt.date | None = None,
) -> None:
    book.running = ""
    book.new_page()
    book.begin(type_, facility, day, end, style=style)
    book.letterhead(facility, left=style is not SERIF)
    book.title(title)
    book.fields(
        ("Patient:", PATIENT.name),
        ("DOB:", f"{PATIENT.birth_date:%m/%d/%Y}"),
        ("MRN:", PATIENT.identifier),
        *fields,
    )


def _visit(
    book: Book,
    rng: random.Random,
    type_: str,
    facility: str,
    day: dt.date,
    last_page: int,
    title: str,
    style: Style,
) -> None:
    label = "Arrival:" if type_ == "emergency" else "Date of Service:"
    shown = f"{day:%m/%d/%Y}" + (" 16:12" if type_ == "emergency" else "")
    who = {KIDNEY: "Abelard Nwosu, MD", CLINIC: "Jocasta Lindgren, MD"}
    provider = ("Provider:", who.get(facility, "Cosima Radcliffe-Ito, MD"))
    _head(book, type_, facility, day, title, style, (label, shown), provider)
    book.running = (
        "" if style is SERIF else f"Patient: {PATIENT.name}    Page {{page}} of {{total}}"
    )
    book.heading("ALLERGIES")
    book.para("No known drug allergies" if type_ == "telehealth" else "NKDA")
    book.nkda()
    book.heading("HISTORY")
    opening = {KIDNEY: phrases.KIDNEY, f"{HOSPITAL} Emergency Department": phrases.EMERGENCY}
    book.fill(last_page, notes.visit_blocks(book, rng, 0.3, opening.get(facility, ())))
    _end(book, last_page)


def _laboratory(
    book: Book, rng: random.Random, day: dt.date, last_page: int, progress: float
) -> None:
    _head(
        book, "laboratory", LABORATORY, day, "LABORATORY REPORT", SANS,
        ("Collected:", f"{day:%m/%d/%Y} 08:05"),
        ("Reported:", f"{day + dt.timedelta(days=1):%m/%d/%Y}"),
        ("Ordering provider:", "Jocasta Lindgren, MD"),
    )  # fmt: skip
    book.running = f"{LABORATORY}    {PATIENT.name}    Page {{page}} of {{total}}"
    panels = {
        "HEMATOLOGY": notes.BLOOD,
        "CHEMISTRY": notes.CHEMISTRY,
        "LIPIDS, HORMONES AND ENZYMES": notes.CHRONIC,
    }
    settled = 0.7 + 0.3 * progress
    for name, panel in panels.items():
        book.heading(name)
        tables.labs(book, notes.results(rng, panel, settled), "flag-last")
    aliquot = 1
    while book.page < last_page:
        aliquot += 1
        book.heading(f"REPEAT ANALYSIS, ALIQUOT {aliquot}")
        tables.labs(book, notes.results(rng, notes.CHEMISTRY, settled), "flag-last")
    book.para("Verified by the laboratory. Results relate only to the specimen received.")
    _end(book, last_page)


def _radiology(book: Book) -> None:
    _head(
        book, "imaging", RADIOLOGY, dt.date(2023, 11, 2), "IMAGING REPORT", BARRED,
        ("Exam Date:", "11/02/2023"),
        ("Radiologist:", "Emeric Stavros, MD"),
    )  # fmt: skip
    book.heading("EXAM")
    book.para("{p|Knee x-ray}, right, three views, standing. Comparison: 07/21/2020.")
    book.heading("FINDINGS")
    book.para(
        "Narrowing of the medial compartment with small osteophytes, more than in 2020. No "
        "{c-|fracture}. No {c-|joint effusion}. Bones are thin. Soft tissues are unremarkable."
    )
    book.heading("IMPRESSION")
    book.items(
        "{c|Osteoarthritis} of the right knee, moderate.",
        "{c|Osteopenia}; {c?|osteoporosis} to be assessed by bone density.",
        mark="1.",
    )
    _end(book, 7)


def _stay(book: Book, rng: random.Random) -> None:
    _head(
        book, "inpatient", HOSPITAL, ADMITTED, "INPATIENT RECORD - HISTORY AND PHYSICAL", TYPED,
        ("Admission Date:", f"{ADMITTED:%m/%d/%Y}"),
        ("Discharge Date:", f"{DISCHARGED:%m/%d/%Y}"),
        ("Attending:", "Halloran Mbeki, MD"),
        end=DISCHARGED,
    )  # fmt: skip
    book.running = f"{HOSPITAL}   {PATIENT.name}   MRN {PATIENT.identifier}   Page {{page}}"
    book.heading("CHIEF COMPLAINT")
    book.para("{s|Fever}, {s|cough} and {s|confusion} for three days.")
    book.heading("HISTORY OF PRESENT ILLNESS")
    book.para(
        "71-year-old woman with {c|type 2 diabetes}, {c|hypertension}, {c|atrial fibrillation} and "
        "{c|chronic kidney disease}, last in this hospital's emergency department on 01/03/2024, "
        "brought by her daughter. She had a cold two weeks ago, seemed to recover, and then "
        "developed {s|fever} and {s|cough} with brown sputum. Since yesterday she does not know "
        "the day. There is no {s-|chest pain}, no {s-|hemoptysis} and no recent travel. "
        "{i~|Influenza vaccine} was given on 10/12/2023."
    )
    book.heading("ALLERGIES")
    book.para("NKDA")
    book.nkda()
    book.heading("FAMILY HISTORY")
    book.para("Mother: {c^|osteoporosis}. Father: {c^|lung cancer}. Brother healthy.")
    notes.home_medicines(book, rng)
    book.heading("ADMISSION EXAM")
    book.para(notes.vitals_line(rng, 0.0))
    book.para(phrases.EXAM[1])
    book.heading("ADMISSION RESULTS")
    tables.labs(book, notes.results(rng, notes.BLOOD + notes.CHEMISTRY, 0.0))
    book.para(
        "{p|Chest x-ray}: right lower lobe consolidation, no {c-|pneumothorax}. "
        "{p|Electrocardiogram}: {c|atrial fibrillation}."
    )
    book.heading("ASSESSMENT")
    book.items(*phrases.PLAN[:4], mark="1.")
    days = (DISCHARGED - ADMITTED).days
    for number in range(2, days + 1):
        day = ADMITTED + dt.timedelta(days=number - 1)
        notes.progress_note(book, rng, day, number, number / days)
    last = DISCHARGED - dt.timedelta(days=1)
    book.fill(40, iter(lambda: lambda: notes.nursing_note(book, rng, last), None))
    _end(book, 40)
    _discharge(book, rng)
    _end(book, 42)


def _discharge(book: Book, rng: random.Random) -> None:
    book.new_page()
    book.title("DISCHARGE SUMMARY")
    book.fields(
        ("Patient:", PATIENT.name),
        ("MRN:", PATIENT.identifier),
        ("Admission Date:", f"{ADMITTED:%m/%d/%Y}"),
        ("Discharge Date:", f"{DISCHARGED:%m/%d/%Y}"),
    )
    book.heading("DISCHARGE DIAGNOSES")
    book.items(
        "{c|Community-acquired pneumonia} with {c|sepsis}",
        "{c|Acute kidney injury}, recovered",
        "{c|Delirium}, resolved",
        "{c|Atrial fibrillation}",
        "{c|Type 2 diabetes}",
        mark="1.",
    )
    book.heading("HOSPITAL COURSE")
    for text in (
        (
            "She was admitted with {c|sepsis} from {c|community-acquired pneumonia} and received "
            "{m|ceftriaxone;2 g;IV;daily} and {m|azithromycin;500 mg;IV;daily}. Pressure "
            "responded to fluids; vasopressors were not needed. Cultures stayed negative."
        ),
        (
            "{c|Delirium} marked the first week and cleared without restraints. {c|Acute kidney "
            "injury} recovered to her usual level. She was never intubated. {c-|Pulmonary "
            "embolism} was excluded on 02/14/2024 by {p|CT angiography}."
        ),
        (
            "She walked with the therapist from 02/12/2024. At discharge she climbs a flight of "
            "stairs with the rail, eats full meals and is oriented."
        ),
    ):
        book.para(text)
    book.para("At discharge: " + notes.vitals_line(rng, 1.0))
    book.heading("LAST RESULTS")
    tables.labs(book, notes.results(rng, notes.BLOOD + notes.CHEMISTRY, 1.0))
    notes.home_medicines(book, rng)
    book.heading("FOLLOW-UP")
    book.items(
        "Dr. Lindgren by telephone on 03/01/2024; blood test on 03/14/2024.",
        "Return for {s?|fever}, {s?|shortness of breath} or {s?|confusion}.",
        mark="1.",
    )
    book.para("Halloran Mbeki, MD. Dictated 02/25/2024. Signed 02/28/2024.")


def _procedure(book: Book, rng: random.Random) -> None:
    _head(
        book, "procedure", GUT, dt.date(2024, 4, 9), "PROCEDURE REPORT", SERIF,
        ("Procedure Date:", "April 9, 2024"),
        ("Endoscopist:", "Mireille Vantongeren, MD"),
        ("Allergies:", "NKDA"),
    )  # fmt: skip
    book.nkda()
    book.heading("PROCEDURE")
    book.para("{p|Colonoscopy} with {p|polypectomy}. Indication: {c|anemia}.")
    book.heading("SEDATION")
    book.para("{m|Midazolam;2 mg;IV;once} and {m|fentanyl;50 mcg;IV;once}.")
    book.heading("FINDINGS")
    book.para(
        "The scope passed to the cecum. {c|Diverticulosis} of the sigmoid. One flat polyp of the "
        "ascending colon was removed whole. No {c-|colon cancer}, no {c-|colitis}. "
        "{c|Internal hemorrhoids}, not {s-|bleeding}."
    )
    book.heading("BACKGROUND")
    book.fill(51, notes.visit_blocks(book, rng, 0.6))
    _end(book, 51)


def _therapy(book: Book, rng: random.Random) -> None:
    _head(
        book, "outpatient", THERAPY, dt.date(2024, 6, 18), "PHYSICAL THERAPY EVALUATION", BARRED,
        ("Date of Service:", "06/18/2024"),
        ("Therapist:", "Bram Osterhout, PT"),
    )  # fmt: skip
    book.heading("REFERRAL")
    book.para(
        "Referred by Dr. Lindgren on 05/30/2024 for {c|osteoarthritis} and {s|weakness} after the "
        "stay of 02/06/2024 to 02/25/2024."
    )
    book.fill(64, notes.therapy_blocks(book, rng))
    _end(book, 64)


def _end(book: Book, page: int) -> None:
    if book.page != page:
        raise ValueError(f"page {book.page} where {page} was meant")
