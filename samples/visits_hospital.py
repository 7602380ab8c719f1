"""The two hospital encounters of `visits_20p_4enc`: emergency visit and inpatient stay."""

from __future__ import annotations

import datetime as dt

from samples import tables
from samples.layout import BARRED, TYPED, Book

ORLA = "Saint Orla Regional Hospital"
ORLA_ED = "Saint Orla Regional Hospital Emergency Department"


def emergency_visit(book: Book) -> None:
    """Write pages 6–10."""
    book.running = ""
    book.footer = ""
    book.new_page()
    book.running = "ED record   Okafor-Lindqvist, D   MRN 7730416"
    book.begin("emergency", ORLA_ED, dt.date(2024, 5, 2), style=BARRED)
    book.letterhead(ORLA_ED, "1 Causeway Boulevard, Orla")
    book.title("EMERGENCY DEPARTMENT VISIT")
    book.fields(
        ("Patient Name:", "Okafor-Lindqvist, Desmond A."),
        ("Date of Birth:", "11/02/1957"),
        ("MRN:", "7730416"),
        ("Acuity:", "2 - emergent"),
        ("Arrival:", "05/02/2024 18:41"),
        ("Attending:", "Cassius Bellweather, MD"),
    )
    book.heading("TRIAGE NOTE")
    book.para(
        'Walk-in with wife. States "my heart is racing" since about four in the afternoon. '
        "{s|Palpitations} and {s|lightheadedness}. No {s-|chest pain}. Ran out of "
        "{m|metoprolol succinate} three days ago."
    )
    book.para(
        "{v|BP;104/68;mmHg}  {v|HR;148;bpm}  {v|RR;22}  {v|Temp;98.4;°F}  {v|SpO2;93%} on room "
        "air  {v|Pain;0/10}"
    )
    book.heading("HISTORY OF PRESENT ILLNESS")
    book.para(
        "66-year-old man with {c|atrial fibrillation} diagnosed on 03/11/2024, {c|type 2 "
        "diabetes}, {c|hypertension} and {c|COPD}, who presents with two and a half hours of "
        "rapid irregular {s|palpitations}. They began while he was carrying beehive frames. He "
        "felt {s|lightheadedness} on standing but did not fall. There was no {s-|syncope}, no "
        "{s-|chest pain}, no {s-|fever}. He reports mild {s|shortness of breath}, a little worse "
        "than his usual. He takes his blood thinner without fail but could not fill the "
        "prescription for the rate-slowing tablet over the weekend."
    )
    book.para(
        "He drank two cups of coffee this morning and no alcohol. He has had a {s|cough} for two "
        "days with green sputum and used his rescue inhaler four times today."
    )
    book.heading("PAST HISTORY")
    book.para(
        "{c|Atrial fibrillation}, {c|type 2 diabetes}, {c|hypertension}, {c|hyperlipidemia}, "
        "{c|COPD}, {c|gout}. {p~|Appendectomy} in 1974."
    )
    book.heading("ALLERGIES")
    book.para("{a|Penicillin|reaction=hives} - hives.  {a|Codeine|reaction=vomiting} - vomiting.")
    book.new_page()
    book.heading("HOME MEDICATIONS (per wife's list)")
    book.items(
        "{m|apixaban;5 mg;PO;BID|status=active}",
        "{m|metoprolol succinate;25 mg;PO;daily|status=active} - none for three days",
        "{m|metformin;1000 mg;PO;BID|status=active}",
        "{m|empagliflozin;10 mg;PO;daily|status=active}",
        "{m|lisinopril;20 mg;PO;daily|status=active}",
        "{m|amlodipine;5 mg;PO;daily|status=active}",
        "{m|atorvastatin;80 mg;PO;nightly|status=active}",
        "{m|tiotropium;18 mcg;inhaled;daily|status=active}",
        "{m|albuterol;90 mcg;inhaled;q4h PRN|status=active}",
    )
    book.heading("REVIEW OF SYSTEMS")
    book.para(
        "Positive for {s|palpitations}, {s|lightheadedness}, {s|shortness of breath} and "
        "{s|cough}. Negative for {s-|chest pain}, {s-|abdominal pain}, {s-|vomiting}, "
        "{s-|headache}, {s-|leg swelling} and {s-|rash}. All other systems negative."
    )
    book.heading("PHYSICAL EXAM")
    book.para("Alert, anxious, skin warm and dry. No {s-|jaundice}.")
    book.para("Cardiac: rapid irregular rhythm, no {c-|murmur}, no rub.")
    book.para("Lungs: scattered expiratory {s|wheezing}, no {s-|crackles}.")
    book.para("Abdomen: soft, no {s-|tenderness}. Legs: no {s-|edema}, no {s-|calf tenderness}.")
    book.para("Neuro: no {s-|focal weakness}. Speech clear.")
    book.heading("SERIAL VITAL SIGNS 05/02/2024")
    tables.vitals_grid(
        book,
        [
            ("18:41", "104/68", "148", "22", "98.4", "93"),
            ("19:10", "101/66", "142", "22", "98.4", "94"),
            ("19:40", "108/70", "121", "20", "98.2", "95"),
            ("20:30", "112/72", "104", "18", "98.3", "96"),
            ("21:30", "118/74", "92", "18", "98.1", "96"),
            ("23:15", "122/76", "84", "16", "98.0", "97"),
        ],
    )
    book.new_page()
    book.heading("LABORATORY RESULTS - drawn 05/02/2024 18:58")
    tables.labs(
        book,
        [
            ("WBC", "12.4", "H", "K/uL", "4.0-11.0"),
            ("Hemoglobin", "13.8", "", "g/dL", "13.0-17.7"),
            ("Platelets", "244", "", "K/uL", "150-400"),
            ("Sodium", "138", "", "mmol/L", "135-145"),
            ("Potassium", "3.4", "L", "mmol/L", "3.5-5.1"),
            ("Chloride", "101", "", "mmol/L", "96-106"),
            ("CO2", "24", "", "mmol/L", "20-29"),
            ("BUN", "22", "", "mg/dL", "8-27"),
            ("Creatinine", "1.21", "", "mg/dL", "0.76-1.27"),
            ("Glucose", "198", "H", "mg/dL", "70-99"),
            ("Magnesium", "1.5", "L", "mg/dL", "1.6-2.3"),
            ("Troponin I", "0.03", "", "ng/mL", "<0.04"),
            ("BNP", "388", "H", "pg/mL", "<100"),
            ("TSH", "1.94", "", "mIU/L", "0.45-4.50"),
        ],
    )
    book.heading("REPEAT - drawn 05/02/2024 21:58")
    tables.labs(
        book,
        [
            ("Troponin I", "0.03", "", "ng/mL", "<0.04"),
            ("Potassium", "4.0", "", "mmol/L", "3.5-5.1"),
        ],
    )
    book.heading("IMAGING AND ECG")
    book.para(
        "{p|Electrocardiogram} 18:45: {c|atrial fibrillation} with {c|rapid ventricular "
        "response}, no ST elevation."
    )
    book.para(
        "{p|Chest x-ray}, portable: hyperinflation. No {c-|pneumonia}, no {c-|pneumothorax}, no "
        "{c-|pulmonary edema}."
    )
    book.new_page()
    book.heading("ED COURSE")
    book.para("18:55 IV access; monitor on. {m|Diltiazem;20 mg;IV;once} over two minutes.")
    book.para("19:15 Rate still fast. {m|Diltiazem;25 mg;IV;once} as a second bolus.")
    book.para("19:30 {m|Potassium chloride;40 mEq;PO;once}; {m|magnesium sulfate;2 g;IV;once}.")
    book.para("19:45 {m|Ipratropium-albuterol;3 mL;nebulized;once}. Less {s|wheezing} after.")
    book.para("20:40 {m|Metoprolol tartrate;25 mg;PO;once}.")
    book.para("21:30 Feels well. {s|Palpitations} much less. Walks to the bathroom.")
    book.para("22:20 Second troponin unchanged. Cardiology on call agrees with discharge.")
    book.heading("MEDICAL DECISION MAKING")
    book.para(
        "{c|Atrial fibrillation} with {c|rapid ventricular response}, most likely because the "
        "rate-slowing tablet ran out, with {c|hypokalemia}, {c|hypomagnesemia} and a mild {c|COPD "
        "exacerbation} as contributors. {c-|Acute coronary syndrome} was ruled out by two normal "
        "troponins. I considered {c?|pulmonary embolism}; he is fully anticoagulated and the "
        "oxygen level returned to normal, so no CT was done. There is no {c-|pneumonia} on the "
        "film. {p-|Cardioversion} was not performed since the rate settled with medicine and one "
        "missed dose of the anticoagulant last week could not be excluded."
    )
    book.para(
        "The case was discussed with the cardiologist on call, who advised doubling the previous "
        "dose of the tablet, and with the patient and his wife, who would rather go home."
    )
    book.new_page()
    book.heading("DIAGNOSES")
    book.items(
        "{c|Atrial fibrillation} with {c|rapid ventricular response}",
        "{c|COPD exacerbation}, mild",
        "{c|Hypokalemia}",
        "{c|Hypomagnesemia}",
        mark="1.",
    )
    book.heading("PRESCRIPTIONS")
    book.items(
        "{m|metoprolol succinate;50 mg;PO;daily|status=active}, thirty tablets",
        "{m|prednisone;40 mg;PO;daily|status=active} for five days",
        "{m|azithromycin;250 mg;PO;daily|status=active} for four days after a first double dose",
        "{m|potassium chloride;20 mEq;PO;daily|status=active} for one week",
    )
    book.heading("DISPOSITION")
    book.para(
        "Discharged home 05/02/2024 at 23:30 in good condition. See Larkmead Family Practice "
        "within five days (appointment 05/07/2024). Return for {s?|chest pain}, {s?|fainting}, "
        "{s?|shortness of breath} or a pulse that stays fast for more than an hour."
    )
    book.para("Cassius Bellweather, MD. Signed 05/03/2024 00:20.")


def stay(book: Book) -> None:
    """Write pages 11–15."""
    book.running = ""
    book.new_page()
    book.running = "SAINT ORLA REGIONAL HOSPITAL     OKAFOR-LINDQVIST, DESMOND A     MRN 7730416"
    book.begin("inpatient", ORLA, dt.date(2024, 6, 17), dt.date(2024, 6, 22), style=TYPED)
    book.letterhead("SAINT ORLA REGIONAL HOSPITAL", "Cardiac Telemetry Unit, 5 North", left=True)
    book.title("INPATIENT ADMISSION - HISTORY AND PHYSICAL")
    book.fields(
        ("PATIENT:", "OKAFOR-LINDQVIST, DESMOND A"),
        ("DOB:", "11/02/1957"),
        ("MRN:", "7730416"),
        ("ATTENDING:", "Yusra Delacroix, MD"),
        ("ADMITTED:", "06/17/2024 11:20"),
        ("DISCHARGED:", "06/22/2024 14:05"),
    )
    book.heading("CHIEF COMPLAINT")
    book.para("{s|Orthopnea} and {s|leg swelling} for ten days.")
    book.heading("HISTORY OF PRESENT ILLNESS")
    book.para(
        "66-year-old man with {c|atrial fibrillation}, {c|type 2 diabetes}, {c|hypertension} and "
        "{c|COPD} who was seen in this emergency department on 05/02/2024. For ten days he has "
        "had increasing {s|leg swelling}, {s|orthopnea} and {s|paroxysmal nocturnal dyspnea}. "
        "His clothes are tight and he has gained weight. He denies {s-|chest pain}, {s-|fever} "
        "and {s-|cough}. He has been eating canned soup since his wife traveled on 06/05/2024."
    )
    book.heading("ADMISSION VITAL SIGNS")
    book.para(
        "{v|BP;158/94;mmHg}, {v|HR;112;bpm}, {v|RR;24}, {v|Temp;98.0;°F}, {v|SpO2;89%} on room "
        "air, {v|Weight;226;lb}."
    )
    book.heading("PHYSICAL EXAM")
    book.para(
        "Jugular veins distended. Bibasilar {s|crackles}. Irregular rhythm, soft apical "
        "{c|murmur}. Pitting {s|edema} to the knees. Abdomen full without {s-|ascites}. Calves "
        "not tender. Oriented, no {s-|confusion}."
    )
    book.heading("ALLERGIES")
    book.para("{a|PENICILLIN|reaction=hives} (hives), {a|CODEINE|reaction=vomiting} (vomiting)")
    book.heading("ADMISSION ASSESSMENT")
    book.items(
        "{c|Acute decompensated heart failure}, new. {m|Furosemide;40 mg;IV;BID}.",
        "{c|Atrial fibrillation}. Continue {m|apixaban;5 mg;PO;BID|status=active}.",
        "{c|Type 2 diabetes}. Hold {m-|metformin|status=on_hold} while unstable.",
        "{c|Acute hypoxic respiratory failure}: oxygen by nasal cannula.",
        mark="1.",
    )
    book.new_page()
    book.heading("ADMISSION LABORATORY DATA 06/17/2024")
    tables.labs(
        book,
        [
            ("Sodium", "131", "L", "mmol/L", "135-145"),
            ("Potassium", "4.2", "", "mmol/L", "3.5-5.1"),
            ("BUN", "31", "H", "mg/dL", "8-27"),
            ("Creatinine", "1.52", "H", "mg/dL", "0.76-1.27"),
            ("Glucose", "204", "H", "mg/dL", "70-99"),
            ("NT-proBNP", "6210", "H", "pg/mL", "<125"),
            ("Troponin I", "0.05", "H", "ng/mL", "<0.04"),
            ("WBC", "8.9", "", "K/uL", "4.0-11.0"),
            ("Hemoglobin", "12.7", "L", "g/dL", "13.0-17.7"),
            ("Platelets", "231", "", "K/uL", "150-400"),
            ("ALT", "61", "H", "U/L", "0-44"),
            ("Lactate", "1.8", "", "mmol/L", "0.5-2.0"),
        ],
    )
    book.heading("IMAGING")
    book.para(
        "{p|Chest x-ray} 06/17/2024: {c|pulmonary edema}, small bilateral {c|pleural effusion}. "
        "No {c-|pneumonia}."
    )
    book.heading("PROGRESS NOTE 06/18/2024")
    book.para(
        "Subjective: slept in the chair. {s|Shortness of breath} improving. No {s-|chest pain}. "
        "Objective: {v|BP;134/82;mmHg}, {v|HR;96;bpm}, {v|SpO2;94%} on two liters, "
        "{v|weight;221;lb}. {s|Crackles} at both bases. "
        "{p|Transthoracic echocardiogram}: ejection fraction about one third, moderate {c|mitral "
        "regurgitation}."
    )
    book.para(
        "Plan: {m|furosemide;80 mg;IV;BID}, {m|metoprolol succinate;50 mg;PO;daily}. Troponin "
        "flat; no {c-|myocardial infarction}."
    )
    book.heading("PROGRESS NOTE 06/19/2024")
    book.para(
        "Subjective: lies flat with two pillows. {s|Leg swelling} less. Objective: "
        "{v|BP;126/78;mmHg}, {v|HR;88;bpm}, {v|SpO2;95%}, {v|weight;215;lb}. This morning "
        "{l|potassium;3.2;mmol/L}; {c|hypokalemia} from the diuretic. "
        "Plan: {m|potassium chloride;40 mEq;PO;BID}."
    )
    book.new_page()
    book.heading("PROCEDURE NOTE 06/20/2024")
    book.para(
        "{p|Thoracentesis}, right, under ultrasound. Indication: {c|pleural effusion} that did "
        "not clear. Consent obtained. Under local anesthesia, clear straw-colored fluid was "
        "drained, less than a liter. No {c-|pneumothorax} on the film afterward. Performed by "
        "E. Tamboli, MD."
    )
    tables.labs(
        book,
        [
            ("Pleural Fluid Protein", "2.1", "", "g/dL", ""),
            ("Pleural Fluid LDH", "84", "", "U/L", ""),
            ("Pleural Fluid Glucose", "171", "", "mg/dL", ""),
        ],
    )
    book.heading("NURSING FLOWSHEET")
    tables.vitals_grid(
        book,
        [
            ("06/17 20:00", "146/90", "108", "22", "98.1", "92"),
            ("06/18 08:00", "134/82", "96", "20", "97.9", "94"),
            ("06/18 20:00", "130/80", "94", "20", "98.2", "94"),
            ("06/19 08:00", "126/78", "88", "18", "98.0", "95"),
            ("06/20 08:00", "122/74", "82", "18", "97.8", "96"),
            ("06/21 08:00", "116/70", "78", "16", "98.1", "96"),
            ("06/22 08:00", "114/68", "76", "16", "97.7", "97"),
        ],
        "Date Time",
    )
    book.heading("MEDICATION ADMINISTRATION RECORD 06/20/2024")
    tables.administrations(
        book,
        [
            (("furosemide", "80 mg", "IV", "BID"), "0810 EK  2005 LM"),
            (("apixaban", "5 mg", "PO", "BID"), "held AM  2005 LM"),
            (("metoprolol succ", "50 mg", "PO", "daily"), "0812 EK"),
            (("potassium chloride", "40 mEq", "PO", "BID"), "0812 EK  2006 LM"),
            (("atorvastatin", "80 mg", "PO", "at bedtime"), "2106 LM"),
            (("insulin glargine", "12 units", "subcut", "at bedtime"), "2106 LM"),
        ],
    )
    book.new_page()
    book.title("DISCHARGE SUMMARY")
    book.fields(
        ("PATIENT:", "OKAFOR-LINDQVIST, DESMOND A"),
        ("MRN:", "7730416"),
        ("ADMISSION DATE:", "06/17/2024"),
        ("DISCHARGE DATE:", "06/22/2024"),
    )
    book.heading("DISCHARGE DIAGNOSES")
    book.items(
        "{c|Acute decompensated heart failure}, ejection fraction reduced",
        "{c|Atrial fibrillation}",
        "{c|Pleural effusion}, drained",
        "{c|Hypokalemia}, corrected",
        "{c|Type 2 diabetes}",
        mark="1.",
    )
    book.heading("HOSPITAL COURSE")
    book.para(
        "He was admitted to telemetry and given {m|furosemide;40 mg;IV;BID}, doubled the next "
        "day. He lost eighteen pounds. The {p|echocardiogram} of 06/18/2024 showed a dilated left "
        "ventricle. {p|Thoracentesis} on 06/20/2024 gave a transudate. On 06/21/2024 his former "
        "tablet was replaced by {m|sacubitril-valsartan;24 mg;PO;BID|status=active}. He had no "
        "{c-|ventricular "
        "tachycardia} on telemetry. Oxygen was off from 06/20/2024. His kidney values improved "
        "as he lost fluid. There was no {s-|fever} at any time, and antibiotics were not given."
    )
    book.para(
        "At discharge: {v|BP;114/68;mmHg}, {v|HR;76;bpm}, {v|SpO2;97%}, {v|weight;208;lb}. Lungs "
        "clear, trace {s|edema}. Able to climb one flight without stopping."
    )
    book.heading("DISCHARGE LABORATORY DATA 06/22/2024")
    tables.labs(
        book,
        [
            ("Sodium", "136", "", "mmol/L", "135-145"),
            ("Potassium", "4.4", "", "mmol/L", "3.5-5.1"),
            ("Creatinine", "1.29", "H", "mg/dL", "0.76-1.27"),
            ("NT-proBNP", "2105", "H", "pg/mL", "<125"),
        ],
    )
    book.new_page()
    book.heading("DISCHARGE MEDICATIONS")
    tables.medicines(
        book,
        [
            (("furosemide", "40 mg", "PO", "daily"), "new"),
            (("sacubitril-valsartan", "24 mg", "PO", "BID"), "new"),
            (("metoprolol succ", "50 mg", "PO", "daily"), "continue"),
            (("apixaban", "5 mg", "PO", "BID"), "continue"),
            (("empagliflozin", "10 mg", "PO", "daily"), "continue"),
            (("metformin", "1000 mg", "PO", "BID"), "resume"),
            (("atorvastatin", "80 mg", "PO", "at bedtime"), "continue"),
            (("tiotropium", "18 mcg", "inhaled", "daily"), "continue"),
        ],
        ("Medication", "Dose", "Route", "Frequency", "Status"),
    )
    book.para(
        "STOP: {m-|lisinopril|status=stopped}, {m-|amlodipine|status=stopped}, "
        "{m-|glipizide|status=stopped}."
    )
    book.heading("INSTRUCTIONS AND FOLLOW-UP")
    book.items(
        "Low-salt diet. Weigh every morning; call for a gain of three pounds in one day.",
        "Blood test 07/05/2024. Cardiology 07/09/2024, Brackenfold Heart Associates.",
        "Return for {s?|shortness of breath}, {s?|fainting} or {s?|chest pain}.",
        mark="1.",
    )
    book.para("Yusra Delacroix, MD. Dictated 06/22/2024 13:40. Signed 06/24/2024 09:12.")
