"""`lab_5p_8enc`: eight laboratory reports on five pages, three of them on one page.

Two laboratories print in two layouts. One report of 38 results spans two pages.
"""

from __future__ import annotations

import datetime as dt

from samples import tables, truth
from samples.layout import BARRED, SANS, TYPED, Book, Style

PATIENT = truth.PatientTruth(
    name="Quintero-Hale, Marisol T.",
    birth_date=dt.date(1961, 7, 19),
    identifier="4482-0197",
    sex="F",
)
TAMARACK = "Tamarack Ridge Clinical Laboratory"
WEXCOMBE = "Wexcombe Diagnostics"


def build() -> Book:
    """Write the record."""
    book = Book(PATIENT)
    book.footer = "Confidential patient information        Page {page} of {total}"
    book.new_page()
    _tamarack(book, dt.date(2024, 1, 8), "TR-240108-0113", "07:52", "01/09/2024 06:10")
    _lipids(book)
    book.gap(16)
    _wexcombe(book, dt.date(2024, 1, 22), "W24-00871", "Jan 23, 2024")
    _thyroid(book)

    book.new_page()
    _tamarack(book, dt.date(2024, 2, 12), "TR-240212-0340", "08:15", "02/12/2024 15:44")
    _renal(book)
    book.gap(12)
    _tamarack(book, dt.date(2024, 2, 26), "TR-240226-0078", "08:02", "02/26/2024 14:20")
    _renal_again(book)
    book.gap(12)
    _wexcombe(book, dt.date(2024, 3, 7), "W24-02519", "Mar 08, 2024")
    _iron(book)

    book.running = "Patient: Quintero-Hale, Marisol T.    MRN: 4482-0197    Page {page} of {total}"
    book.new_page()
    _tamarack(book, dt.date(2024, 4, 15), "TR-240415-0009", "07:40", "04/16/2024 09:31")
    _annual(book)
    book.gap(14)
    _point_of_care(book)

    book.new_page()
    _wexcombe(book, dt.date(2024, 6, 11), "W24-06604", "Jun 14, 2024")
    _culture(book)
    return book


def _tamarack(book: Book, day: dt.date, accession: str, time: str, reported: str) -> None:
    book.begin("laboratory", TAMARACK, day, style=SANS)
    book.letterhead(TAMARACK, "2140 Quarry Hollow Road, Elmsdale  |  CLIA 99D0000001", left=True)
    book.fields(
        ("Patient:", PATIENT.name),
        ("MRN:", PATIENT.identifier),
        ("DOB:", f"{PATIENT.birth_date:%m/%d/%Y}"),
        ("Sex:", "Female"),
        ("Accession:", accession),
        ("Ordering provider:", "Ines Vandermolen, MD"),
        ("Collected:", f"{day:%m/%d/%Y} {time}"),
        ("Reported:", reported),
    )


def _wexcombe(book: Book, day: dt.date, specimen: str, reported: str) -> None:
    book.begin("laboratory", WEXCOMBE, day, style=Style(**{**BARRED.__dict__, "size": 9.4}))
    book.letterhead(WEXCOMBE.upper(), "Laboratory Report", "18 Pell Street, Marrow Bay")
    book.fields(
        ("Name", PATIENT.name),
        ("Date of Birth", f"{PATIENT.birth_date:%b %d, %Y}"),
        ("Patient ID", PATIENT.identifier),
        ("Client", "Larkmead Family Practice"),
        ("Specimen ID", specimen),
        ("Requested by", "I. Vandermolen MD"),
        ("Date Collected", f"{day:%b %d, %Y}"),
        ("Date Reported", reported),
    )


def _lipids(book: Book) -> None:
    book.heading("LIPID PANEL WITH HEMOGLOBIN A1C (FASTING)")
    tables.labs(
        book,
        [
            ("Total Cholesterol", "231", "H", "mg/dL", "100-199"),
            ("Triglycerides", "188", "H", "mg/dL", "0-149"),
            ("HDL Cholesterol", "41", "", "mg/dL", ">39"),
            ("LDL Cholesterol, calc", "152", "H", "mg/dL", "0-99"),
            ("VLDL Cholesterol", "38", "", "mg/dL", "5-40"),
            ("Hemoglobin A1c", "7.2", "H", "%", "4.0-5.6"),
            ("Estimated Average Glucose", "160", "", "mg/dL", ""),
        ],
    )
    book.para("Comment: fasting specimen. Result called to the office and read back.")


def _thyroid(book: Book) -> None:
    book.heading("THYROID")
    tables.labs(
        book,
        [
            ("TSH", "6.84", "H", "mIU/L", "0.45-4.50"),
            ("Free T4", "0.92", "", "ng/dL", "0.82-1.77"),
            ("Thyroid Peroxidase Ab", "214", "H", "IU/mL", "<34"),
        ],
        "range-first",
    )
    book.para("An elevated antibody supports {c?|autoimmune thyroiditis} in the right setting.")


def _renal(book: Book) -> None:
    book.heading("BASIC METABOLIC PANEL")
    tables.labs(
        book,
        [
            ("Sodium", "134", "L", "mmol/L", "135-145"),
            ("Potassium", "5.6", "H", "mmol/L", "3.5-5.1"),
            ("Creatinine", "1.38", "H", "mg/dL", "0.57-1.00"),
            ("eGFR", "43", "L", "mL/min/1.73m2", ">59"),
        ],
    )


def _renal_again(book: Book) -> None:
    book.heading("BASIC METABOLIC PANEL, REPEAT")
    book.para("Compared with 02/12/2024. No {c-|hemolysis} in this specimen.")
    tables.labs(
        book,
        [
            ("Sodium", "138", "", "mmol/L", "135-145"),
            ("Potassium", "4.7", "", "mmol/L", "3.5-5.1"),
            ("Creatinine", "1.21", "H", "mg/dL", "0.57-1.00"),
            ("eGFR", "50", "L", "mL/min/1.73m2", ">59"),
        ],
    )


def _iron(book: Book) -> None:
    book.heading("IRON STUDIES")
    tables.labs(
        book,
        [
            ("Ferritin", "9", "L", "ng/mL", "15-150"),
            ("Iron", "28", "L", "ug/dL", "37-145"),
            ("TIBC", "447", "", "ug/dL", "250-450"),
            ("Transferrin Saturation", "6", "L", "%", "15-55"),
        ],
        "range-first",
    )


def _annual(book: Book) -> None:
    book.heading("COMPLETE BLOOD COUNT WITH DIFFERENTIAL")
    tables.labs(
        book,
        [
            ("WBC", "11.8", "H", "x10E3/uL", "3.4-10.8"),
            ("RBC", "4.24", "", "x10E6/uL", "3.77-5.28"),
            ("Hemoglobin", "10.6", "L", "g/dL", "11.1-15.9"),
            ("Hematocrit", "33.1", "L", "%", "34.0-46.6"),
            ("MCV", "78", "L", "fL", "79-97"),
            ("MCH", "25.0", "L", "pg", "26.6-33.0"),
            ("MCHC", "32.0", "", "g/dL", "31.5-35.7"),
            ("RDW", "16.2", "H", "%", "11.7-15.4"),
            ("Platelets", "402", "", "x10E3/uL", "150-450"),
            ("Neutrophils", "74", "", "%", ""),
            ("Lymphs", "17", "", "%", ""),
            ("Monocytes", "6", "", "%", ""),
            ("Eos", "2", "", "%", ""),
            ("Basos", "1", "", "%", ""),
            ("Neutrophils (Absolute)", "8.7", "H", "x10E3/uL", "1.4-7.0"),
        ],
        "flag-last",
    )
    book.heading("COMPREHENSIVE METABOLIC PANEL")
    tables.labs(
        book,
        [
            ("Glucose", "141", "H", "mg/dL", "70-99"),
            ("BUN", "24", "", "mg/dL", "8-27"),
            ("Creatinine", "1.17", "H", "mg/dL", "0.57-1.00"),
            ("eGFR", "52", "L", "mL/min/1.73m2", ">59"),
            ("BUN/Creatinine Ratio", "21", "", "", "12-28"),
            ("Sodium", "139", "", "mmol/L", "135-145"),
            ("Potassium", "4.4", "", "mmol/L", "3.5-5.1"),
            ("Chloride", "103", "", "mmol/L", "96-106"),
            ("Carbon Dioxide, Total", "23", "", "mmol/L", "20-29"),
            ("Calcium", "9.1", "", "mg/dL", "8.7-10.3"),
            ("Protein, Total", "6.9", "", "g/dL", "6.0-8.5"),
            ("Albumin", "4.1", "", "g/dL", "3.8-4.9"),
            ("Bilirubin, Total", "0.4", "", "mg/dL", "0.0-1.2"),
            ("Alkaline Phosphatase", "88", "", "IU/L", "44-121"),
            ("AST (SGOT)", "31", "", "IU/L", "0-40"),
            ("ALT (SGPT)", "37", "H", "IU/L", "0-32"),
        ],
        "flag-last",
    )
    book.heading("URINE ALBUMIN AND VITAMINS")
    tables.labs(
        book,
        [
            ("Microalbumin, Urine", "62.5", "", "ug/mL", ""),
            ("Albumin/Creatinine Ratio", "71", "H", "mg/g creat", "0-29"),
            ("Vitamin D, 25-Hydroxy", "18.9", "L", "ng/mL", "30.0-100.0"),
            ("Vitamin B12", "288", "", "pg/mL", "232-1245"),
            ("Folate", "12.7", "", "ng/mL", ">3.0"),
            ("Uric Acid", "7.4", "H", "mg/dL", "3.0-7.2"),
            ("CRP, Quantitative", "<1.0", "", "mg/L", "0.0-10.0"),
        ],
        "flag-last",
    )
    book.para("Electronically released by the laboratory. End of report TR-240415-0009.")


def _point_of_care(book: Book) -> None:
    book.begin("laboratory", "Larkmead Family Practice", dt.date(2024, 5, 3), style=TYPED)
    book.para("LARKMEAD FAMILY PRACTICE - POINT OF CARE TESTING LOG")
    book.para(
        f"PATIENT: {PATIENT.name.upper()}   DOB: {PATIENT.birth_date:%m/%d/%Y}   "
        f"MRN: {PATIENT.identifier}"
    )
    book.para("DATE OF SERVICE: 05/03/2024   PERFORMED BY: T. Abernathy, MA")
    tables.labs(
        book,
        [
            ("Glucose, fingerstick", "212", "H", "mg/dL", "70-140"),
            ("INR", "2.4", "", "", "2.0-3.0"),
            ("Urine pH", "6.5", "", "", "5.0-8.0"),
            ("Hemoglobin", "10.9", "L", "g/dL", "12.0-16.0"),
        ],
    )


def _culture(book: Book) -> None:
    book.heading("URINALYSIS")
    tables.labs(
        book,
        [
            ("Specific Gravity", "1.022", "", "", "1.005-1.030"),
            ("pH", "7.5", "", "", "5.0-7.5"),
            ("WBC, Urine", "50", "H", "/hpf", "0-5"),
            ("RBC, Urine", "4", "H", "/hpf", "0-2"),
            ("Nitrite", "Positive", "A", "", "Negative"),
            ("Leukocyte Esterase", "3+", "A", "", "Negative"),
            ("Glucose, Urine", "Negative", "", "", "Negative"),
        ],
        "range-first",
    )
    book.heading("URINE CULTURE, ROUTINE")
    book.para(
        "Source: clean catch. Final report: greater than 100,000 colonies per mL of Escherichia "
        "coli, consistent with {c?|urinary tract infection}. The isolate is not an "
        "extended-spectrum producer."
    )
    book.heading("SUSCEPTIBILITY")
    book.table(
        ("Antimicrobial", "Interpretation"),
        [
            ("Ampicillin", "Resistant"),
            ("Cefazolin", "Susceptible"),
            ("Ciprofloxacin", "Susceptible"),
            ("Nitrofurantoin", "Susceptible"),
            ("Trimethoprim/Sulfa", "Resistant"),
        ],
        (0.5, 0.5),
    )
    book.para(
        "This report was issued on Jun 14, 2024 and replaces the preliminary report of "
        "Jun 12, 2024. Results relate to the specimen received only."
    )
    book.para("Laboratory director: Oswin Pereira-Blum, MD, PhD")
