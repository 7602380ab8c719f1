"""`traps_10p`: a record whose dates, facilities and patients invite wrong encounters.

`samples/README.md` lists the trap of each page.
"""

from __future__ import annotations

import datetime as dt

from samples import tables, truth
from samples.layout import BARRED, SANS, SERIF, TYPED, Book

PATIENT = truth.PatientTruth(
    name="Achterberg, Rosalind M.",
    birth_date=dt.date(1949, 12, 5),
    identifier="A-558120",
    sex="F",
)
HOLLINS = "Hollins Creek Medical Center"
IMAGING = "Pinnacle Ford Imaging"
HOSPITAL = "Marrow Bay General Hospital"


def build() -> Book:
    """Write the record."""
    book = Book(PATIENT)
    _cover(book)
    _three_notes(book)
    _same_day_clinic(book)
    _same_day_imaging(book)
    _return_visit(book)
    _other_patient(book)
    book.running = book.footer = ""
    book.unassigned()
    book.new_page(blank=True)
    _spanish(book)
    _stay(book)
    return book


def _cover(book: Book) -> None:
    book.new_page()
    book.unassigned()
    book.letterhead("Hollins Creek Health Information Services", "Release of Information")
    book.title("FAX COVER SHEET")
    book.fields(
        ("To:", "Records requester on file"),
        ("From:", "Release of Information desk"),
        ("Re:", PATIENT.name),
        ("Records requested:", "01/01/2023 through 12/31/2023"),
        ("Sent:", "02/08/2024 10:12"),
        ("Pages including cover:", "10"),
        columns=1,
    )
    book.gap(10)
    book.para(
        "The documents that follow were copied in the ordinary course of business from the "
        "chart of the person named above. If you received this transmission in error, notify "
        "the sender and destroy every copy. Redisclosure is prohibited without consent."
    )


def _note_head(book: Book, title: str, author: str) -> None:
    book.title(title)
    book.fields(
        ("Patient:", PATIENT.name),
        ("DOB:", "12/05/1949"),
        ("MRN:", PATIENT.identifier),
        ("Encounter:", "03/02/2023 09:30"),
        ("Facility:", HOLLINS),
        ("Author:", author),
    )


def _three_notes(book: Book) -> None:
    book.footer = "Hollins Creek Medical Center    Page {page} of {total}"
    book.new_page()
    book.begin("office_visit", HOLLINS, dt.date(2023, 3, 2), style=SANS)
    book.letterhead(HOLLINS, "900 Millrace Avenue, Hollins Creek", left=True)
    _note_head(book, "NURSING INTAKE NOTE", "B. Sandoval-Reyes, RN")
    book.heading("INTAKE")
    book.para(
        "Patient last seen 01/02/2022. Here for {s|fatigue} and {s|swelling of the ankles}. "
        "She denies {s-|chest pain}, {s-|fever} and {s-|palpitations}."
    )
    book.heading("ALLERGIES")
    book.para("NKDA")
    book.nkda()
    book.heading("VITAL SIGNS")
    book.para(
        "{v|BP;146/88;mmHg}   {v|Pulse;78;bpm}   {v|Resp;18}   {v|Temp;97.9;°F}   "
        "{v|SpO2;96%}   {v|Weight;172;lb}"
    )
    book.heading("IMMUNIZATIONS")
    book.table(
        ("Vaccine", "Date given", "Lot"),
        [
            ("{i|Influenza, high dose}", "10/11/2022", "UT7719"),
            ("{i|Tdap}", "05/23/2016", "C5540A"),
            ("{i|Pneumococcal conjugate 20-valent}", "10/11/2022", "FN2283"),
            ("{i|Zoster recombinant}", "02/29/2001 (as written)", "illegible"),
        ],
        (0.46, 0.32, 0.22),
    )
    book.gap(6)
    _note_head(book, "PHYSICIAN PROGRESS NOTE", "Leopold Nkemelu, MD")
    book.heading("HISTORY")
    book.para(
        "73-year-old woman with {c|hypertension} and {c|chronic kidney disease stage 3}, and a "
        "remote history of {c~|pulmonary embolism} (July 1998). She was hospitalized "
        "09/14/2019 to 09/18/2019 for {c~|diverticulitis}, which resolved. Her "
        "{c|hypertension} is not worse; no change in the {c|chronic kidney disease}. "
        "Not only {s|fatigue} but also {s|dyspnea on exertion} for two months."
    )
    book.heading("FAMILY HISTORY")
    book.para(
        "Mother died of {c^|breast cancer} at 61. Father had {c^|type 2 diabetes} and "
        "{c^|myocardial infarction} in 1971. No family history of {c-|colon cancer}."
    )
    book.heading("REVIEW OF SYSTEMS")
    book.para(
        "Constitutional: no {s-|weight loss}, {s-|chills} or {s-|night sweats}. Respiratory: "
        "positive for {s|cough}, negative for {s-|wheezing} and {s-|hemoptysis}. GI: denies "
        "{s-|nausea}, {s-|vomiting} and {s-|diarrhea}."
    )
    book.heading("ASSESSMENT AND PLAN")
    book.items(
        "{c|Hypertension}, above goal. Start {m|amlodipine;5 mg;by mouth;once "
        "daily|status=active}.",
        "{s|Dyspnea on exertion}: rule out {c?|heart failure}; {p?|echocardiogram} ordered. There "
        "is no evidence of {c-|deep vein thrombosis}.",
        "If {s?|fever} develops she will call. {p~|Mammogram} of 11/14/2021 was read as normal; "
        "the next was due 11/14/2022.",
        mark="1.",
    )
    book.gap(4)
    _note_head(book, "PHARMACY RECONCILIATION NOTE", "Wren Castellanos, PharmD")
    book.heading("MEDICATIONS RECONCILED")
    tables.medicines(
        book,
        [
            (("lisinopril", "20 mg", "PO", "daily"), "{c|hypertension}"),
            (("aspirin", "81 mg", "PO", "daily"), "started 06/2015"),
            (("vitamin D3", "2,000 units", "PO", "daily"), "supplement"),
            (("acetaminophen", "500 mg", "PO", "q6h PRN"), "{s|knee pain}"),
        ],
    )
    book.para(
        "{m~|Hydrochlorothiazide;25 mg|status=stopped} was stopped on 08/19/2022 for "
        "{c~|hyponatremia}. "
        "Not taking {m-|warfarin|status=not_started}."
    )


def _same_day_clinic(book: Book) -> None:
    book.new_page()
    book.begin("office_visit", HOLLINS, dt.date(2023, 3, 17), style=SANS)
    book.letterhead(HOLLINS, "900 Millrace Avenue, Hollins Creek", left=True)
    book.title("OFFICE VISIT")
    book.fields(
        ("Patient:", PATIENT.name),
        ("DOB:", "12/05/1949"),
        ("MRN:", PATIENT.identifier),
        ("Date of Service:", "03/17/2023"),
        ("Provider:", "Leopold Nkemelu, MD"),
        ("Allergies:", "No known drug allergies"),
    )
    book.nkda()
    book.heading("INTERVAL HISTORY")
    book.para(
        "Returns two weeks after 03/02/2023. {s|Cough} has become productive; she reports "
        "{s|dysuria} since 03/14/2023 and no {s-|flank pain}. She has had no {s-|fever} at home."
    )
    book.heading("OBJECTIVE")
    book.para("{v|BP;132/80;mmHg}, {v|HR;84;bpm}, {v|Temp;98.8;°F}, {v|SpO2;95%} on room air.")
    book.heading("ASSESSMENT AND PLAN")
    book.items(
        "{c|Urinary tract infection}. Culture of 03/14/2023 grew gram negative rods. Start "
        "{m|trimethoprim-sulfamethoxazole;160 mg;PO;twice daily|status=active} for five days.",
        "{s|Cough}: {p?|chest x-ray} today at Pinnacle Ford Imaging to exclude {c?|pneumonia}.",
        mark="1.",
    )
    book.para("Electronically signed by Leopold Nkemelu, MD on 03/19/2023 at 07:14.")


def _same_day_imaging(book: Book) -> None:
    book.gap(12)
    book.begin("imaging", IMAGING, dt.date(2023, 3, 17), style=BARRED)
    book.letterhead(IMAGING, "77 Harrow Lane, Pinnacle Ford")
    book.title("RADIOLOGY REPORT")
    book.fields(
        ("Patient Name:", PATIENT.name),
        ("Birth Date:", "12/05/1949"),
        ("Patient ID:", PATIENT.identifier),
        ("Exam Date:", "03/17/2023 14:05"),
        ("Referring:", "Leopold Nkemelu, MD"),
        ("Read by:", "Thea Brightwater, MD"),
    )
    book.heading("EXAM")
    book.para("{p|Chest x-ray}, two views. Comparison: 06/02/2018.")
    book.heading("FINDINGS")
    book.para(
        "The heart is mildly enlarged. There is no {c-|pneumothorax} and no "
        "{c-|pleural effusion}. Faint right basal opacity. The previously described "
        "{c~|rib fracture} of 2018 has healed."
    )
    book.heading("IMPRESSION")
    book.items(
        "Right basal opacity; {c?|pneumonia} cannot be excluded.",
        "{c|Cardiomegaly}, mild.",
        mark="1.",
    )


def _return_visit(book: Book) -> None:
    book.running = "Achterberg, Rosalind M.   DOB 12/05/1949   MRN A-558120   Page {page}"
    book.new_page()
    book.begin("office_visit", HOLLINS, dt.date(2023, 3, 31), style=SANS)
    book.letterhead(HOLLINS, "900 Millrace Avenue, Hollins Creek", left=True)
    book.title("OFFICE VISIT")
    book.fields(
        ("Patient:", PATIENT.name),
        ("DOB:", "12/05/1949"),
        ("MRN:", PATIENT.identifier),
        ("Date of Service:", "03/31/2023"),
        ("Date of last visit:", "03/17/2023"),
        ("Provider:", "Leopold Nkemelu, MD"),
    )
    book.heading("SUBJECTIVE")
    book.para(
        "On day three of the antibiotic she developed an itchy {s|rash} on the trunk and stopped "
        "it on 03/20/2023. There is no further {s-|dysuria}. No {s-|shortness of breath} at rest, "
        "no {s-|throat swelling}. {p~|Colonoscopy} 05/05/2015: normal."
    )
    book.heading("ALLERGIES")
    book.table(
        ("Allergen", "Reaction", "Noted"),
        [("{a|Sulfa antibiotics|reaction=rash}", "rash", "03/31/2023")],
        (0.4, 0.35, 0.25),
    )
    book.heading("RESULTS REVIEWED")
    book.para("Basic metabolic panel of 03/29/2023:")
    tables.labs(
        book,
        [
            ("Sodium", "136", "", "mmol/L", "135-145"),
            ("Potassium", "5.2", "H", "mmol/L", "3.5-5.1"),
            ("Creatinine", "1.44", "H", "mg/dL", "0.57-1.00"),
            ("BNP", "312", "H", "pg/mL", "<100"),
        ],
    )
    book.heading("VITAL SIGNS")
    book.para("{v|BP;128/74;mmHg}   {v|HR;76;bpm}   {v|SpO2;97%}   {v|Weight;175;lb}")
    book.heading("PLAN")
    book.items(
        "{c|Drug eruption}: {m|cetirizine;10 mg;PO;daily} for one week. Avoid sulfonamides.",
        "{c|Heart failure} is now likely. Start {m|furosemide;20 mg;PO;every "
        "morning|status=active}.",
        "{m-|Metformin|status=not_started} is not indicated; she does not have {c-|diabetes}.",
        "{m|Prednisone;30 mg;PO;daily|step=1} for three days, then "
        "{m|prednisone;10 mg;PO;daily|say=10 mg daily|step=2} for three days.",
        "Iron: {m|ferrous sulfate;one tablet;PO;daily|strength=325 mg"
        "|say=ferrous sulfate 325 mg tablet, one tablet PO daily}.",
        "Increase {m|acetaminophen;650 mg;PO;q6h PRN|previous_dose=500 mg|status=changed"
        "|say=acetaminophen from 500 mg to 650 mg PO q6h PRN}.",
        mark="1.",
    )
    book.para("Return 04/28/2023 or sooner if {s?|chest pain} or {s?|syncope} occurs.")


def _other_patient(book: Book) -> None:
    book.running = ""
    book.new_page()
    book.begin("laboratory", HOLLINS, dt.date(2023, 3, 31), style=BARRED, mismatch=True)
    book.letterhead(HOLLINS, "Department of Laboratory Medicine")
    book.title("LABORATORY REPORT")
    book.fields(
        ("Patient:", "Achterman, Rosalie J."),
        ("DOB:", "08/23/1972"),
        ("MRN:", "A-558210"),
        ("Sex:", "Female"),
        ("Collected:", "03/31/2023 08:20"),
        ("Ordered by:", "Leopold Nkemelu, MD"),
    )
    book.heading("CHEMISTRY AND HEMATOLOGY")
    tables.labs(
        book,
        [
            ("Glucose", "318", "H", "mg/dL", "70-99"),
            ("Hemoglobin A1c", "10.4", "H", "%", "4.0-5.6"),
            ("Creatinine", "0.71", "", "mg/dL", "0.57-1.00"),
            ("Hemoglobin", "13.6", "", "g/dL", "11.1-15.9"),
        ],
        "flag-last",
    )
    book.para("Critical value called to the ordering provider on 03/31/2023 at 11:05.")


def _spanish(book: Book) -> None:
    book.new_page(unsupported=True)
    book.letterhead("Clínica Comunitaria Río Alto", "Avenida del Molino 14")
    book.title("INSTRUCCIONES PARA LA PACIENTE")
    book.fields(
        ("Paciente:", PATIENT.name),
        ("Fecha de nacimiento:", "05/12/1949"),
        ("Fecha de la consulta:", "22/05/2023"),
        ("Médico:", "Dra. Amparo Villaseñor"),
    )
    book.heading("MOTIVO DE LA CONSULTA")
    book.para(
        "La paciente acude por hinchazón de las piernas y cansancio desde hace tres semanas. "
        "Niega dolor en el pecho, fiebre o desmayos. Refiere que toma sus medicamentos todos los "
        "días y que ha reducido la sal en las comidas. Su hija la ayuda en casa por las tardes."
    )
    book.heading("TRATAMIENTO")
    book.items(
        "Furosemida: una tableta por la mañana con un vaso de agua.",
        "Amlodipino: una tableta cada noche. No suspenda el tratamiento sin consultar.",
        "Pésese todas las mañanas y anote el peso en la libreta.",
    )
    book.para(
        "Llame a la clínica si aumenta la hinchazón, si le falta el aire al acostarse o si nota "
        "latidos irregulares. Traiga esta hoja y todos sus frascos de medicina a la próxima cita."
    )


def _stay(book: Book) -> None:
    book.new_page()
    book.begin("inpatient", HOSPITAL, dt.date(2023, 6, 29), dt.date(2023, 7, 1), style=SERIF)
    book.letterhead(HOSPITAL.upper(), "Medicine Service, 3 West")
    book.title("DISCHARGE SUMMARY")
    book.fields(
        ("Patient:", "Rosalind M. Achterberg"),
        ("Medical record no.:", PATIENT.identifier),
        ("Date of birth:", "December 5, 1949"),
        ("Attending:", "Priya Halvorsen, DO"),
        ("Admission Date:", "06/29/2023"),
        ("Discharge Date:", "07/01/2023"),
    )
    book.heading("REASON FOR ADMISSION")
    book.para(
        "{c|Acute decompensated heart failure}. She presented on 06/29/2023 with "
        "{s|orthopnea} and {s|leg swelling} after she ran out of her diuretic on 06/20/2023. "
        "An outpatient {p~|echocardiogram} of 04/12/2023 had shown a reduced ejection fraction."
    )
    book.heading("HOSPITAL COURSE")
    book.para(
        "06/29/2023: {m|furosemide;40 mg;IV;twice daily} was given. {c-|Myocardial infarction} "
        "was ruled out. 06/30/2023: she lost four pounds, {s|orthopnea} improved. "
        "07/01/2023: walking without {s-|dyspnea}; no {c-|arrhythmia} on telemetry."
    )
    book.heading("ALLERGIES")
    book.para("{a|Sulfa antibiotics|reaction=skin rash} (skin rash, noted 03/31/2023).")
    book.heading("VITAL SIGNS AT DISCHARGE")
    book.para("{v|BP;118/70;mmHg}, {v|HR;68;bpm}, {v|RR;16}, {v|SpO2;96%}, {v|Weight;166;lb}.")
    book.heading("DISCHARGE MEDICATIONS")
    tables.medicines(
        book,
        [
            (("furosemide", "40 mg", "PO", "twice daily"), "changed"),
            (("carvedilol", "3.125 mg", "PO", "twice daily"), "new"),
            (("lisinopril", "20 mg", "PO", "daily"), "continue"),
            (("spironolactone", "12.5 mg", "PO", "daily"), "new"),
        ],
        ("Medication", "Dose", "Route", "Frequency", "Change"),
    )
    book.new_page()
    book.style = TYPED
    book.heading("LABORATORY DATA, LAST VALUES")
    tables.labs(
        book,
        [
            ("Potassium", "4.1", "", "mmol/L", "3.5-5.1"),
            ("Creatinine", "1.32", "H", "mg/dL", "0.57-1.00"),
            ("BNP", "640", "H", "pg/mL", "<100"),
            ("Magnesium", "1.9", "", "mg/dL", "1.6-2.3"),
        ],
    )
    book.heading("FOLLOW-UP")
    book.items(
        "Cardiology, 07/12/2023. Primary care, 07/08/2023 (seen there last 03/31/2023).",
        "Return to the emergency department for {s?|shortness of breath}, {s?|fainting} or "
        "weight gain.",
        "Family meeting held 06/30/2023; her brother has {c^|heart failure} as well.",
        mark="1.",
    )
    book.para("Dictated 07/03/2023 and transcribed 07/05/2023. Priya Halvorsen, DO")
