"""`scan_5p`: a five-page record as a noisy, skewed scan; no page has a text layer.

The truth keeps the clean text of each page.
"""

from __future__ import annotations

import datetime as dt
import io
import random
import time
from dataclasses import dataclass

import pikepdf
import pypdfium2
from PIL import Image, ImageChops, ImageFilter

from samples import tables, truth
from samples.layout import SANS, SERIF, TYPED, Book, Style

PATIENT = truth.PatientTruth(
    name="Brannigan, Teodora",
    birth_date=dt.date(1970, 1, 17),
    identifier="90-4471",
    sex="F",
)
CLINIC = "Pell Street Community Clinic"
LABORATORY = "Wexcombe Diagnostics"
URGENT = "Harrow Lane Urgent Care"
DPI = 170
SPECKS = 260
LARGE = Style(**{**SANS.__dict__, "size": 11.0, "leading": 15.0})


@dataclass(frozen=True)
class Damage:
    """The damage of a scanned page: skew in degrees, noise 0–255, clockwise turn, fax."""

    skew: float
    noise: int
    turn: int = 0
    fax: bool = False


DAMAGE = (
    Damage(skew=0.6, noise=34),
    Damage(skew=-1.7, noise=46),
    Damage(skew=0.4, noise=38, turn=90),
    Damage(skew=1.1, noise=30, fax=True),
    Damage(skew=-0.8, noise=26),
)


def build() -> Book:
    """Write the record as it was before the scan."""
    book = Book(PATIENT)
    _clinic(book)
    _laboratory(book)
    _urgent_care(book)
    if book.page != len(DAMAGE):
        raise ValueError(f"the scan has {book.page} pages")
    return book


def scan(pdf: bytes) -> bytes:
    """Return `pdf` as an image-only PDF; the same renderer and Pillow produce the same bytes."""
    document = pypdfium2.PdfDocument(pdf)
    joined = pikepdf.new()
    for number, damage in enumerate(DAMAGE):
        clean = document[number].render(scale=DPI / 72).to_pil().convert("L")
        page = _degrade(clean, damage, random.Random(number))
        with pikepdf.open(io.BytesIO(_image_pdf(page))) as single:
            joined.pages.extend(single.pages)
    document.close()
    out = io.BytesIO()
    joined.save(out, deterministic_id=True)
    return out.getvalue()


def _image_pdf(page: Image.Image) -> bytes:
    out = io.BytesIO()
    fixed = time.struct_time((2024, 1, 1, 0, 0, 0, 0, 1, 0))
    jpeg = {} if page.mode == "1" else {"quality": 45}
    page.save(out, "PDF", resolution=DPI, creationDate=fixed, modDate=fixed, **jpeg)
    return out.getvalue()


def rotations() -> dict[int, int]:
    """Return the turned pages, with their clockwise degrees."""
    return {number: d.turn for number, d in enumerate(DAMAGE, 1) if d.turn}


def _degrade(page: Image.Image, damage: Damage, rng: random.Random) -> Image.Image:
    page = page.rotate(damage.skew, Image.Resampling.BICUBIC, fillcolor=255)
    page = page.filter(ImageFilter.GaussianBlur(0.55))
    page = page.point([30 + round(v * 0.84) for v in range(256)])
    shade = Image.linear_gradient("L").rotate(rng.choice((0, 90, 180, 270))).resize(page.size)
    page = ImageChops.multiply(page, shade.point([225 + v * 30 // 255 for v in range(256)]))
    for _ in range(2):
        grain = Image.frombytes("L", page.size, rng.randbytes(page.width * page.height))
        grain = grain.point([128 + (v - 128) * damage.noise // 256 for v in range(256)])
        page = ImageChops.add(page, grain, 1, -128)
    for _ in range(SPECKS):
        x, y = rng.randrange(page.width), rng.randrange(page.height)
        page.paste(rng.randint(20, 110), (x, y, x + rng.randint(1, 3), y + rng.randint(1, 2)))
    if damage.fax:
        page = page.point([0 if v < 148 else 255 for v in range(256)]).convert("1")
    if damage.turn:
        page = page.transpose(Image.Transpose.ROTATE_270)
    return page


def _clinic(book: Book) -> None:
    book.footer = "Pell Street Community Clinic - medical records copy"
    book.new_page()
    book.begin("office_visit", CLINIC, dt.date(2023, 9, 14), style=LARGE)
    book.letterhead(CLINIC, "18 Pell Street, Marrow Bay", left=True)
    book.title("OFFICE VISIT")
    book.fields(
        ("Patient:", PATIENT.name),
        ("DOB:", "01/17/1970"),
        ("MRN:", PATIENT.identifier),
        ("Date of Service:", "09/14/2023"),
        ("Provider:", "Solveig Amadi, NP"),
        ("Sex:", "Female"),
    )
    book.heading("CHIEF COMPLAINT")
    book.para("{s|Headache} and follow-up of {c|hypertension}.")
    book.heading("HISTORY OF PRESENT ILLNESS")
    book.para(
        "53-year-old woman with {c|hypertension}, {c|hypothyroidism} and {c|asthma}. For three "
        "weeks she has had a dull {s|headache} in the mornings. She denies {s-|blurred vision}, "
        "{s-|vomiting} and {s-|weakness}. She ran out of one of her tablets in August. "
        "{s|Wheezing} about twice a week, at night. No {s-|fever}."
    )
    book.heading("ALLERGIES")
    book.para("{a|Penicillin|reaction=hives} (hives)")
    book.heading("MEDICATIONS")
    tables.medicines(
        book,
        [
            (("losartan", "50 mg", "PO", "daily"), "{c|hypertension}"),
            (("levothyroxine", "88 mcg", "PO", "daily"), "{c|hypothyroidism}"),
            (("albuterol", "90 mcg", "inhaled", "q4h PRN"), "{c|asthma}"),
            (("montelukast", "10 mg", "PO", "at bedtime"), "{c|asthma}"),
        ],
    )
    book.running = "Brannigan, Teodora    MRN 90-4471    Page {page} of {total}"
    book.new_page()
    book.heading("VITAL SIGNS")
    book.para("{v|BP;164/98;mmHg}, {v|HR;72;bpm}, {v|RR;16}, {v|Temp;98.2;°F}, {v|SpO2;98%}")
    book.para("{v|Weight;187;lb}, {v|Height;64;in}, {v|BMI;32.1;kg/m2}")
    book.heading("PHYSICAL EXAM")
    book.para("Alert, comfortable. Heart regular, no {c-|murmur}. Lungs clear, no {s-|wheezing}.")
    book.para("Abdomen soft, not tender. Legs without {s-|edema}. Gait normal.")
    book.heading("IMMUNIZATIONS")
    book.para("{i|Influenza vaccine} given today, left arm. {i|Tdap} 04/22/2019.")
    book.heading("ASSESSMENT AND PLAN")
    book.items(
        "{c|Hypertension}, not controlled. Increase to {m|losartan;100 "
        "mg;PO;daily|status=changed} and add "
        "{m|hydrochlorothiazide;12.5 mg;PO;every morning|status=active}.",
        "{s|Headache}, probably from pressure. No sign of {c-|stroke}.",
        "{c|Asthma}, mild persistent. Start {m|fluticasone;110 mcg;inhaled;twice "
        "daily|status=active}.",
        "{c|Hypothyroidism}. Blood test next week.",
        mark="1.",
    )
    book.para("Return in four weeks. Signed: Solveig Amadi, NP, 09/14/2023")


def _laboratory(book: Book) -> None:
    book.running = book.footer = ""
    book.new_page()
    book.begin("laboratory", LABORATORY, dt.date(2023, 9, 21), style=LARGE)
    book.letterhead(LABORATORY, "400 Foundry Court, Marrow Bay")
    book.title("LABORATORY REPORT")
    book.fields(
        ("Patient:", PATIENT.name),
        ("DOB:", "01/17/1970"),
        ("MRN:", PATIENT.identifier),
        ("Collected:", "09/21/2023 08:30"),
        ("Reported:", "09/22/2023"),
        ("Ordered by:", "Solveig Amadi, NP"),
    )
    book.heading("CHEMISTRY")
    tables.labs(
        book,
        [
            ("Sodium", "141", "", "mmol/L", "135-145"),
            ("Potassium", "3.4", "L", "mmol/L", "3.5-5.1"),
            ("Chloride", "101", "", "mmol/L", "96-106"),
            ("BUN", "14", "", "mg/dL", "8-27"),
            ("Creatinine", "0.88", "", "mg/dL", "0.57-1.00"),
            ("Glucose", "118", "H", "mg/dL", "70-99"),
            ("Calcium", "9.6", "", "mg/dL", "8.7-10.3"),
            ("ALT", "41", "H", "U/L", "0-32"),
            ("Total Cholesterol", "226", "H", "mg/dL", "100-199"),
            ("LDL Cholesterol", "148", "H", "mg/dL", "0-99"),
            ("HDL Cholesterol", "46", "", "mg/dL", ">39"),
            ("Hemoglobin A1c", "6.1", "H", "%", "4.0-5.6"),
            ("TSH", "5.92", "H", "mIU/L", "0.45-4.50"),
        ],
    )
    book.heading("HEMATOLOGY")
    tables.labs(
        book,
        [
            ("WBC", "7.3", "", "K/uL", "4.0-11.0"),
            ("Hemoglobin", "11.4", "L", "g/dL", "12.0-15.5"),
            ("Hematocrit", "34.8", "L", "%", "36.0-46.0"),
            ("Platelets", "389", "", "K/uL", "150-400"),
        ],
    )
    book.para("End of report. Laboratory director: Oswin Pereira-Blum, MD, PhD")


def _urgent_care(book: Book) -> None:
    book.new_page()
    book.begin("emergency", URGENT, dt.date(2023, 10, 2), style=SERIF)
    book.letterhead(URGENT.upper(), "9 Harrow Lane, Pinnacle Ford")
    book.title("URGENT CARE VISIT")
    book.fields(
        ("Patient:", PATIENT.name),
        ("DOB:", "01/17/1970"),
        ("MRN:", PATIENT.identifier),
        ("Date of Service:", "10/02/2023"),
        ("Arrival time:", "19:22"),
        ("Clinician:", "Ulric Fontaine, PA"),
    )
    book.heading("HISTORY")
    book.para(
        "Two days of {s|cough} and {s|wheezing} after a cold, with {s|shortness of breath} on "
        "stairs. No {s-|chest pain}, no {s-|fever}. She used her rescue inhaler six times today. "
        "She was seen at her clinic on 09/14/2023."
    )
    book.heading("ALLERGIES")
    book.para("{a|Penicillin}")
    book.heading("VITAL SIGNS")
    book.para("{v|BP;148/90;mmHg}, {v|HR;104;bpm}, {v|RR;24}, {v|Temp;99.1;°F}, {v|SpO2;92%}")
    book.heading("EXAM")
    book.para(
        "Speaks in phrases. {s|Wheezing} on both sides. Heart regular, fast. No {s-|rash}. No "
        "{s-|leg swelling}."
    )
    book.heading("TREATMENT GIVEN")
    book.para("19:40 {m|Albuterol;2.5 mg;nebulized;once}, repeated at 20:05.")
    book.para("19:50 {m|Prednisone;60 mg;PO;once}.")
    book.para("20:40 After treatment: {v|HR;98;bpm}, {v|RR;18}, {v|SpO2;96%}. {s|Wheezing} less.")
    book.new_page()
    book.style = TYPED
    book.heading("RESULTS")
    book.para("{p|Chest x-ray}: no {c-|pneumonia}, no {c-|pneumothorax}.")
    tables.labs(
        book,
        [
            ("WBC", "12.6", "H", "K/uL", "4.0-11.0"),
            ("Glucose", "137", "H", "mg/dL", "70-99"),
            ("Potassium", "3.2", "L", "mmol/L", "3.5-5.1"),
        ],
    )
    book.heading("DIAGNOSES")
    book.items("{c|Asthma exacerbation}", "{c|Hypokalemia}", mark="1.")
    book.heading("PRESCRIPTIONS")
    tables.medicines(
        book,
        [
            (("prednisone", "40 mg", "PO", "daily"), "five days"),
            (("potassium chloride", "20 mEq", "PO", "daily"), "seven days"),
            (("albuterol", "90 mcg", "inhaled", "q4h PRN"), "new inhaler"),
        ],
        ("Medication", "Dose", "Route", "Frequency", "Supply"),
    )
    book.heading("DISPOSITION")
    book.para("Home at 21:10. Return for {s?|chest pain} or if {s?|shortness of breath} returns.")
    book.para("See Pell Street Community Clinic within one week. U. Fontaine, PA")
