"""The two outpatient encounters of `visits_20p_4enc`: office visit and cardiology consult."""

from __future__ import annotations

import datetime as dt

from samples import tables
from samples.layout import SANS, SERIF, Book

LARKMEAD = "Larkmead Family Practice"
BRACKENFOLD = "Brackenfold Heart Associates"


def office_visit(book: Book) -> None:
    """Write pages 1–5."""
    book.running = "Patient: Okafor-Lindqvist, Desmond A.    MRN: 7730416    Page {page} of 5"
    book.footer = "Larkmead Family Practice - printed from the ambulatory record"
    book.new_page()
    book.begin("office_visit", LARKMEAD, dt.date(2024, 3, 11), style=SANS)
    book.letterhead(LARKMEAD, "31 Orchard Terrace, Larkmead  |  Tel 555-0142", left=True)
    book.title("OFFICE VISIT - ESTABLISHED PATIENT")
    book.fields(
        ("Patient:", "Desmond A. Okafor-Lindqvist"),
        ("DOB:", "11/02/1957 (66 y)"),
        ("MRN:", "7730416"),
        ("Sex:", "Male"),
        ("Date of Service:", "03/11/2024"),
        ("Provider:", "Ines Vandermolen, MD"),
    )
    book.heading("CHIEF COMPLAINT")
    book.para("{s|Shortness of breath} on stairs and follow-up of long-standing conditions.")
    book.heading("HISTORY OF PRESENT ILLNESS")
    book.para(
        "Mr. Okafor-Lindqvist is a 66-year-old man with {c|type 2 diabetes}, {c|hypertension}, "
        "{c|hyperlipidemia} and {c|COPD} who comes for a scheduled visit. He was last seen here "
        "on 11/20/2023. Over the past six weeks he has noticed {s|shortness of breath} when he "
        "climbs one flight of stairs, where in the autumn he managed three. He sleeps on two "
        "pillows by habit. He denies {s-|chest pain}, {s-|syncope} and {s-|hemoptysis}. "
        "There is occasional {s|palpitations} in the evening, lasting some minutes, without "
        "{s-|dizziness}."
    )
    book.para(
        "His home glucose meter shows fasting readings mostly between one hundred forty and one "
        "hundred seventy. He has had no {c-|hypoglycemia}. He skips the evening dose of his "
        "tablets about twice a week because of {s|nausea} after supper. He walks the dog daily, "
        "but the route has become shorter. A neighbor measured his pressure once and told him "
        "that it was high; he did not write the number down."
    )
    book.para(
        "His {c|COPD} has been stable. He has a morning {s|cough} with scant white sputum, not "
        "changed from last year, and he has not needed oral steroids since 02/2022. No "
        "{s-|fever}, no {s-|chills}, no recent travel. He received an antibiotic from an urgent "
        "care clinic in December for presumed {c~|sinusitis}."
    )
    book.heading("PAST MEDICAL HISTORY")
    book.items(
        "{c|Type 2 diabetes}, diagnosed 2009, with {c|diabetic neuropathy}",
        "{c|Hypertension}, diagnosed 2004",
        "{c|Hyperlipidemia}",
        "{c|COPD}, moderate",
        "{c|Gout}, last flare 08/2021",
        "{c|Osteoarthritis} of both knees",
        "{c~|Nephrolithiasis}, 1996, passed spontaneously",
    )
    book.heading("PAST SURGICAL HISTORY")
    book.items(
        "{p~|Appendectomy}, 1974",
        "{p~|Inguinal hernia repair}, left, 06/18/2003",
        "{p~|Colonoscopy}, 09/30/2019, two small polyps removed",
    )
    book.new_page()
    book.heading("CURRENT MEDICATIONS")
    tables.medicines(
        book,
        [
            (("metformin", "1000 mg", "PO", "BID"), "{c|type 2 diabetes}"),
            (("glipizide", "5 mg", "PO", "daily"), "{c|type 2 diabetes}"),
            (("lisinopril", "20 mg", "PO", "daily"), "{c|hypertension}"),
            (("amlodipine", "5 mg", "PO", "daily"), "{c|hypertension}"),
            (("atorvastatin", "40 mg", "PO", "at bedtime"), "{c|hyperlipidemia}"),
            (("tiotropium", "18 mcg", "inhaled", "daily"), "{c|COPD}"),
            (("albuterol", "90 mcg", "inhaled", "q4h PRN"), "{s|wheezing}"),
            (("allopurinol", "300 mg", "PO", "daily"), "{c|gout}"),
            (("gabapentin", "300 mg", "PO", "TID"), "{c|diabetic neuropathy}"),
            (("aspirin", "81 mg", "PO", "daily"), "prevention"),
        ],
    )
    book.heading("ALLERGIES")
    book.table(
        ("Allergen", "Reaction", "Severity"),
        [
            ("{a|Penicillin|reaction=hives}", "hives", "moderate"),
            ("{a|Codeine|reaction=vomiting}", "vomiting", "mild"),
        ],
        (0.4, 0.36, 0.24),
    )
    book.heading("IMMUNIZATIONS")
    book.table(
        ("Vaccine", "Date", "Site"),
        [
            ("{i|Influenza vaccine}", "10/02/2023", "left deltoid"),
            ("{i|COVID-19 vaccine}", "10/02/2023", "right deltoid"),
            ("{i|Pneumococcal vaccine}", "04/14/2022", "left deltoid"),
            ("{i|Tdap}", "07/08/2017", "left deltoid"),
        ],
        (0.44, 0.3, 0.26),
    )
    book.heading("FAMILY HISTORY")
    book.para(
        "Father died at 58 of {c^|myocardial infarction}. Mother had {c^|stroke} and "
        "{c^|hypertension}. One sister with {c^|breast cancer}. No family history of "
        "{c-|colon cancer}."
    )
    book.heading("SOCIAL HISTORY")
    book.para(
        "Retired ferry engineer, married, two grown children. Smoked one pack a day for thirty "
        "years and stopped in 2012. Two glasses of wine on weekends. No drug use. He keeps bees "
        "and repairs clocks; he drives and manages his own money and tablets."
    )
    book.new_page()
    book.heading("REVIEW OF SYSTEMS")
    book.para("Constitutional: positive for {s|fatigue}; negative for {s-|weight loss}.")
    book.para("Eyes: denies {s-|blurred vision}.")
    book.para("Cardiovascular: as above. No {s-|chest pain}, no {s-|leg swelling}.")
    book.para("Respiratory: positive for {s|cough}. No {s-|hemoptysis}.")
    book.para("GI: positive for {s|nausea}. Denies {s-|abdominal pain}, {s-|melena}.")
    book.para("GU: {s|nocturia} once a night. No {s-|hematuria}, no {s-|dysuria}.")
    book.para("Musculoskeletal: {s|knee pain}, worse on the right, after long walks.")
    book.para("Neurologic: {s|numbness} of both feet. No {s-|headache}, no {s-|weakness}.")
    book.para("Psychiatric: denies {s-|depression}.")
    book.heading("VITAL SIGNS")
    book.fields(
        ("", "{v|BP;152/86;mmHg}"),
        ("", "{v|Heart rate;88;bpm}"),
        ("", "{v|Resp;18;/min}"),
        ("", "{v|Temp;98.1;°F}"),
        ("", "{v|SpO2;94%}"),
        ("", "{v|Weight;214;lb}"),
        ("", "{v|Height;70;in}"),
        ("", "{v|BMI;30.7;kg/m2}"),
        columns=4,
    )
    book.heading("PHYSICAL EXAM")
    book.para("General: well groomed, speaks in full sentences, no {s-|distress}.")
    book.para("HEENT: moist mucous membranes, no {s-|jaundice}.")
    book.para("Neck: supple. No {s-|lymphadenopathy}. Jugular veins flat at 45 degrees.")
    book.para("Heart: irregular rhythm, rate in the eighties, no {c-|murmur}.")
    book.para("Lungs: distant breath sounds, no {s-|wheezing}, no {s-|crackles}.")
    book.para("Abdomen: soft, non-tender, no {s-|hepatomegaly}.")
    book.para("Extremities: trace {s|edema} at the ankles, pulses intact, no {c-|ulcer}.")
    book.para("Feet: monofilament absent at both great toes; nails thick; skin whole.")
    book.para("Neurologic: alert, oriented, gait steady, strength full in all limbs.")
    book.new_page()
    book.heading("RESULTS REVIEWED (collected 03/04/2024)")
    tables.labs(
        book,
        [
            ("Hemoglobin A1c", "8.4", "H", "%", "4.0-5.6"),
            ("Glucose", "168", "H", "mg/dL", "70-99"),
            ("Creatinine", "1.18", "", "mg/dL", "0.76-1.27"),
            ("eGFR", "68", "", "mL/min/1.73m2", ">59"),
            ("Sodium", "140", "", "mmol/L", "135-145"),
            ("Potassium", "4.6", "", "mmol/L", "3.5-5.1"),
            ("ALT", "34", "", "U/L", "0-44"),
            ("LDL Cholesterol", "104", "H", "mg/dL", "<70"),
            ("HDL Cholesterol", "38", "L", "mg/dL", ">39"),
            ("Triglycerides", "212", "H", "mg/dL", "<150"),
            ("Uric Acid", "5.8", "", "mg/dL", "3.8-8.4"),
            ("Albumin/Creatinine Ratio", "46", "H", "mg/g", "<30"),
            ("Hemoglobin", "14.1", "", "g/dL", "13.0-17.7"),
            ("TSH", "2.11", "", "mIU/L", "0.45-4.50"),
        ],
        "flag-last",
    )
    book.para(
        "{p|Electrocardiogram} today: {c|atrial fibrillation}, "
        "{v|ventricular rate;92;bpm}, no ischemic change. Compared with the "
        "tracing of 05/16/2022, the rhythm is new."
    )
    book.heading("ASSESSMENT AND PLAN")
    book.items(
        "{c|Atrial fibrillation}, new. CHA2DS2-VASc score 3. Start {m|apixaban;5 "
        "mg;PO;BID|status=active} and "
        "{m|metoprolol succinate;25 mg;PO;daily|status=active}. Stop "
        "{m-|aspirin|status=stopped}. {p?|Echocardiogram} ordered. "
        "The risk of {s?|bleeding} and what to do about a missed dose were discussed.",
        "{s|Shortness of breath}, probably from the rhythm; {c?|heart failure} to be excluded. "
        "BNP with the next draw.",
        "{c|Type 2 diabetes}, not at goal. Add {m|empagliflozin;10 mg;PO;every "
        "morning|status=active}; reduce "
        "to {m|glipizide;2.5 mg;PO;daily|status=changed}.",
        "{c|Hypertension}, above goal; recheck on the new tablets before any further change.",
        "{c|Hyperlipidemia}: increase to {m|atorvastatin;80 mg;PO;at bedtime|status=changed}.",
        "{c|COPD}, stable. Continue inhalers. Spirometry in the summer.",
        mark="1.",
    )
    book.new_page()
    book.heading("ORDERS")
    book.table(
        ("Order", "Priority", "To be done"),
        [
            ("{p?|Transthoracic echocardiogram}", "routine", "within two weeks"),
            ("{p?|Holter monitor}, 48 hours", "routine", "after the {p?|echocardiogram}"),
            ("BNP, basic metabolic panel", "routine", "03/18/2024"),
            ("Referral to cardiology", "routine", "Brackenfold Heart Associates"),
            ("Referral to ophthalmology", "routine", "yearly retinal examination"),
        ],
        (0.44, 0.18, 0.38),
    )
    book.heading("PATIENT INSTRUCTIONS")
    book.para(
        "Take the new blood thinner twice a day, with or without food. Do not stop it on your "
        "own. Call us if you notice {s?|bleeding} that does not stop, {s?|black stools} or a "
        "fall with a blow to the head. Go to the emergency department for {s?|chest pain}, "
        "{s?|fainting} or {s?|facial droop}."
    )
    book.para(
        "Weigh yourself in the morning and write the number down. Bring the notebook, the meter "
        "and all of your boxes to the next visit on 04/08/2024 at 09:20."
    )
    book.heading("TIME AND SIGNATURE")
    book.para(
        "I spent forty minutes on the day of the visit, more than half of it in counseling. "
        "Electronically signed: Ines Vandermolen, MD, 03/12/2024 08:02. Copy sent to the patient "
        "portal on 03/12/2024."
    )


def cardiology_consult(book: Book) -> None:
    """Write pages 16–20."""
    book.running = ""
    book.footer = ""
    book.new_page()
    book.begin("consultation", BRACKENFOLD, dt.date(2024, 7, 9), style=SERIF)
    book.letterhead("BRACKENFOLD HEART ASSOCIATES", "6 Weir Street, Suite 300, Brackenfold")
    book.title("CARDIOLOGY CONSULTATION")
    book.fields(
        ("Patient name:", "OKAFOR-LINDQVIST, DESMOND"),
        ("Birth date:", "2 November 1957"),
        ("Chart no.:", "7730416"),
        ("Consulting physician:", "Ragnhild Osei, MD, FACC"),
        ("Visit date:", "July 9, 2024"),
        ("Referred by:", "Ines Vandermolen, MD"),
    )
    book.heading("REASON FOR CONSULTATION")
    book.para(
        "{c|Atrial fibrillation} and {c|heart failure with reduced ejection fraction}, after the "
        "hospital stay of June 17 to June 22, 2024."
    )
    book.heading("HISTORY")
    book.para(
        "Dear Dr. Vandermolen, thank you for sending this pleasant 66-year-old man. As you know, "
        "{c|atrial fibrillation} was found at your office on March 11, 2024. He was seen in the "
        "emergency department on May 2, 2024 with {c~|rapid ventricular response} and was "
        "admitted on June 17, 2024 with {c~|acute decompensated heart failure}. Since he came "
        "home he has kept to a low-salt diet and has weighed himself every morning."
    )
    book.para(
        "He now walks half a mile on the flat before {s|shortness of breath} stops him. He "
        "denies {s-|orthopnea}, {s-|paroxysmal nocturnal dyspnea} and {s-|chest pain}. There has "
        "been no {s-|syncope}. He notes mild {s|lightheadedness} on standing in the first hour "
        "after his morning tablets. He has had one {s|nosebleed}, which stopped with pressure."
    )
    book.para(
        "He has never had {c-|stroke} or {c-|rheumatic fever}. A sleep study in 2018 at another "
        "center was said to show mild {c|sleep apnea}; he returned the mask after two weeks. "
        "His father died of {c^|myocardial infarction} at 58, and a paternal uncle had "
        "{c^|cardiomyopathy}."
    )
    book.heading("PAST HISTORY")
    book.para(
        "{c|Type 2 diabetes}, {c|hypertension}, {c|hyperlipidemia}, {c|COPD}, {c|gout}. He gave "
        "up smoking in 2012."
    )
    book.new_page()
    book.heading("MEDICATIONS AT THIS VISIT")
    tables.medicines(
        book,
        [
            (("apixaban", "5 mg", "oral", "twice daily"), "{c|atrial fibrillation}"),
            (("metoprolol succinate", "50 mg", "oral", "daily"), "rate control"),
            (("furosemide", "40 mg", "oral", "every morning"), "{c|heart failure}"),
            (("sacubitril-valsartan", "24 mg", "oral", "twice daily"), "{c|heart failure}"),
            (("empagliflozin", "10 mg", "oral", "every morning"), "{c|heart failure}"),
            (("atorvastatin", "80 mg", "oral", "at bedtime"), "{c|hyperlipidemia}"),
            (("metformin", "1000 mg", "oral", "twice daily"), "{c|type 2 diabetes}"),
            (("tiotropium", "18 mcg", "inhaled", "daily"), "{c|COPD}"),
            (("allopurinol", "300 mg", "oral", "daily"), "{c|gout}"),
        ],
        ("Drug", "Dose", "Route", "Frequency", "For"),
    )
    book.para(
        "{m~|Lisinopril;20 mg|status=stopped} was replaced on June 21, 2024. No longer takes "
        "{m-|aspirin|status=stopped}."
    )
    book.heading("ALLERGIES")
    book.para(
        "{a|Penicillin|reaction=hives} (hives). {a|Codeine|reaction=upset stomach} (upset stomach)."
    )
    book.heading("EXAMINATION")
    book.para(
        "{v|Blood pressure;108/66;mmHg}, {v|pulse;74;bpm}, {v|respirations;16}, "
        "{v|oxygen saturation;96%}, {v|weight;201;lb}. Standing {v|blood pressure;98/60;mmHg}."
    )
    book.para(
        "He looks well. Jugular venous pressure is not raised. The apex is displaced to the "
        "anterior axillary line. The rhythm is irregular; there is a soft apical systolic "
        "{c|murmur}. The chest is clear, without {s-|wheezing}. No {s-|ascites}. No {s-|edema}. "
        "The feet are warm."
    )
    book.new_page()
    book.heading("DIAGNOSTIC DATA")
    book.para(
        "{p|Electrocardiogram} today: {c|atrial fibrillation}, {c|left bundle branch block}, no "
        "acute change."
    )
    book.para(
        "{p~|Transthoracic echocardiogram} of June 18, 2024: dilated left ventricle, "
        "ejection fraction about one third, {c|mitral regurgitation}, moderate, no "
        "{c-|thrombus} in the left atrial appendage view, no {c-|pericardial effusion}."
    )
    book.para("Laboratory results of July 5, 2024, from Tamarack Ridge Clinical Laboratory:")
    tables.labs(
        book,
        [
            ("Sodium", "137", "", "mmol/L", "135-145"),
            ("Potassium", "4.9", "", "mmol/L", "3.5-5.1"),
            ("Creatinine", "1.36", "H", "mg/dL", "0.76-1.27"),
            ("eGFR", "57", "L", "mL/min/1.73m2", ">59"),
            ("NT-proBNP", "1480", "H", "pg/mL", "<125"),
            ("Hemoglobin", "13.2", "", "g/dL", "13.0-17.7"),
            ("Ferritin", "44", "", "ng/mL", "30-400"),
            ("Transferrin Saturation", "14", "L", "%", "20-50"),
            ("Hemoglobin A1c", "7.3", "H", "%", "4.0-5.6"),
            ("LDL Cholesterol", "61", "", "mg/dL", "<70"),
        ],
        "range-first",
    )
    book.heading("HOME READINGS BROUGHT BY THE PATIENT")
    tables.vitals_grid(
        book,
        [
            ("July 5", "112/70", "78", "16", "97.7", "96"),
            ("July 6", "106/64", "72", "16", "97.9", "95"),
            ("July 7", "110/68", "81", "18", "98.0", "96"),
            ("July 8", "104/62", "70", "16", "97.5", "97"),
        ],
        "Day",
    )
    book.new_page()
    book.heading("IMPRESSION")
    book.items(
        "{c|Heart failure with reduced ejection fraction}, NYHA class II, euvolemic. The cause is "
        "probably {c|tachycardia-induced cardiomyopathy}; {c?|coronary artery disease} has to be "
        "excluded.",
        "{c|Atrial fibrillation}, persistent, rate controlled, on full anticoagulation.",
        "{c|Iron deficiency} without {c-|anemia}.",
        "{c|Sleep apnea}, untreated.",
        "{c|Orthostatic hypotension}, mild and drug related.",
        mark="1.",
    )
    book.heading("RECOMMENDATIONS")
    book.items(
        "{p?|Coronary CT angiography} before the end of the month.",
        "{p?|Cardioversion} after four uninterrupted weeks of anticoagulation; ablation if the "
        "rhythm returns. He understands the choice between the two and wishes to think about it.",
        "Add {m|spironolactone;12.5 mg;oral;daily|status=active}; potassium and creatinine in "
        "one week.",
        "Take the diuretic at noon instead of in the morning for the {s|lightheadedness}; if it "
        "persists, {m?|furosemide;20 mg;oral;daily|status=planned} is enough.",
        "{m?|Ferric carboxymaltose;750 mg;IV;once|status=planned}, to be arranged at the "
        "infusion center.",
        "Repeat sleep study, with a mask fitting.",
        "No {m-|ibuprofen} and no {m-|naproxen} for his knees.",
        mark="1.",
    )
    book.new_page()
    book.heading("COUNSELING")
    book.para(
        "We talked about daily weights and what to do when they rise by three pounds in a day or "
        "five in a week. He knows to seek help at once for {s?|chest pain}, {s?|syncope} or "
        "{s?|slurred speech}. He will carry a card that lists his medicines. His wife was present "
        "and her questions were answered."
    )
    book.heading("FOLLOW-UP")
    book.para(
        "He will be seen here again on August 13, 2024, and by you as planned on July 30, 2024. "
        "Thank you for letting me share in his care."
    )
    book.para("Ragnhild Osei, MD, FACC. Dictated July 9, 2024; typed July 11, 2024; cc: patient.")
