"""Sentences of progress notes, nursing notes and visits, in the markup of `markup`.

All sentences are invented; every measure in them is marked.
"""

from __future__ import annotations

SUBJECTIVE = (
    (
        "She slept poorly because of {s|cough} but says that breathing is a little easier than "
        "yesterday. She denies {s-|chest pain} and {s-|abdominal pain}. Appetite is returning; "
        "she finished half of her breakfast and asked for tea."
    ),
    (
        "Overnight she was restless and pulled at her lines. {s|Confusion} comes and goes, worse "
        "after sunset; her daughter finds her clearer in the mornings. No {s-|vomiting} and no "
        "{s-|diarrhea} were reported by the night nurse."
    ),
    (
        "She reports {s|fatigue} and {s|shortness of breath} after walking to the door and back "
        "with the therapist. No {s-|fever} or {s-|chills} since yesterday evening. {s|Cough} "
        "brings up less sputum, which is now white."
    ),
    (
        "She feels well enough to ask about going home. {s|Back pain} from the bed is her main "
        "complaint. She has no {s-|headache}, no {s-|dizziness} and no {s-|palpitations}."
    ),
    (
        "Seen with the interpreter of her choice, her daughter. She complains of {s|nausea} after "
        "the morning tablets and of {s|dry mouth}. There was one loose stool; she denies "
        "{s-|abdominal pain}. She has used the spirometer every hour."
    ),
    (
        "Quiet night on low-flow oxygen. {s|Insomnia} is less of a trouble since the room was "
        "changed. {s|Leg swelling} has appeared at the ankles. She denies {s-|orthopnea} and "
        "{s-|chest pain}."
    ),
    (
        "Her voice is stronger. She says that the mask frightened her at night and slept better "
        "without it. {s|Shortness of breath} returns when she lies flat. No {s-|chest pain}, no "
        "{s-|hemoptysis}, no {s-|nausea}."
    ),
    (
        "She refused the evening tablets because of {s|heartburn}, took them after an "
        "explanation, and had no further complaint. Bowels opened yesterday. She denies "
        "{s-|fever}, {s-|chills} and {s-|headache}."
    ),
    (
        "Worked with therapy twice. {s|Weakness} of the legs is the main obstacle; she used the "
        "commode with one helper. {s-|Dizziness} was not reported on standing. Her daughter "
        "brought soup and photographs."
    ),
)

EXAM = (
    (
        "Sitting up, comfortable, speaking in sentences. Heart regular, no {c-|murmur}. Coarse "
        "{s|crackles} at the right base. Abdomen soft, no {s-|tenderness}. Ankles with mild "
        "{s|edema}. Oriented to person and place."
    ),
    (
        "Drowsy but rousable. Heart sounds regular. Breath sounds reduced on the right, no "
        "{s-|wheezing}. Abdomen soft. No {s-|rash}. Skin over the sacrum intact."
    ),
    (
        "Alert, conversant, thin. No {s-|jaundice}. Lungs with fewer {s|crackles} than yesterday. "
        "Heart regular. Calves soft, no {s-|edema}. Line site clean."
    ),
    (
        "In the chair with a blanket. Moist mucous membranes. Lungs clear on the left, "
        "{s|crackles} on the right. No {s-|confusion} this morning. Strength equal on both sides."
    ),
)

NURSING = (
    (
        "Turned every two hours, skin intact, heels floated. Ate part of supper with help. Call "
        "light within reach. Denies {s-|pain}. Daughter at the bedside until eight."
    ),
    (
        "Patient {s|agitated} at change of shift and reoriented with good effect. Bed alarm on. "
        "Oxygen by nasal cannula. No {s-|nausea} after evening tablets."
    ),
    (
        "Walked to the nurses' station with walker and one assist, rested twice. {s|Shortness of "
        "breath} settled within minutes. Lines flushed without resistance, dressing dry."
    ),
    (
        "Slept in stretches of two hours. {s|Cough} productive of white sputum. Incentive "
        "spirometer taught again. Family asked about rehabilitation; social worker told."
    ),
    (
        "Complained of {s|back pain}, repositioned with relief. Intake and output recorded. No "
        "{s-|bleeding} at the line site. Safety round done hourly."
    ),
    (
        "Refused supper, took half of a supplement. {s|Constipation} since three days, order "
        "obtained. Oxygen tubing extended so that she can reach the window."
    ),
    (
        "Awake from three o'clock, talked about her garden, no {s-|confusion}. Arms bruised at "
        "old puncture sites. Hearing aid battery changed."
    ),
    (
        "Moved to the room near the station. Walked fifty steps with therapy. Denies "
        "{s-|shortness of breath} and {s-|chest pain}. Rails down, alarm on."
    ),
)

PLAN = (
    (
        "{c|Community-acquired pneumonia}: clinical response continues. Blood cultures without "
        "growth to date. Switch to oral treatment when she takes food reliably."
    ),
    (
        "{c|Sepsis}: lactate has cleared; pressure holds without support. Remove the central line "
        "when it is no longer needed."
    ),
    (
        "{c|Acute kidney injury} on {c|chronic kidney disease}: recovering with fluids. Avoid "
        "contrast and {m-|ibuprofen|status=not_started}. Urine output is recorded every shift."
    ),
    (
        "{c|Delirium}: glasses and hearing aid on, lights out at ten, no restraints. Avoid "
        "{m-|lorazepam|status=not_started}."
    ),
    (
        "{c|Atrial fibrillation}: rate controlled. No {c-|stroke} symptoms. Continue "
        "anticoagulation."
    ),
    ("{c|Type 2 diabetes}: sliding scale with meals; adjust the long-acting dose to intake."),
    ("{c|Hypertension}: home tablets are held while pressure is soft, to be resumed one by one."),
    ("{c|Malnutrition}: dietitian follows, supplements between meals, weekly weight."),
    ("{c|Anemia}: stable, no {s-|melena}. Transfuse only if symptomatic."),
)

VISIT = (
    (
        "She comes with her daughter. Since the last visit she has managed most of her housework "
        "but rests in the afternoon. {s|Fatigue} is her main concern. She denies {s-|chest pain}, "
        "{s-|syncope} and {s-|weight loss}."
    ),
    (
        "{c|Hypertension} has been treated for many years; her readings at home vary with the "
        "time of day. {c|Type 2 diabetes} is managed with tablets and diet. She checks her feet "
        "with a mirror and has seen no {c-|ulcer}."
    ),
    (
        "{s|Knee pain} limits her to two blocks. It is worse on stairs and better with rest and "
        "heat. There has been no {s-|joint swelling} and no {s-|fever}. She tried a cane and "
        "leaves it in the car."
    ),
    (
        "She sleeps six hours, wakes once with {s|nocturia}, and falls asleep again. Mood is "
        "fair; she denies {s-|depression}. Her sister's illness has been on her mind."
    ),
    (
        "Her {c|chronic kidney disease} has been followed here since 2016. She avoids salt as far "
        "as her cooking allows. No {s-|hematuria}, no {s-|dysuria}. {c|Atrial fibrillation} gives "
        "her little trouble apart from rare {s|palpitations}."
    ),
    (
        "{c|Osteoporosis} was found on a scan in 2020. She has had no {c-|hip fracture}. Her "
        "mother had {c^|osteoporosis} and an aunt had {c^|ovarian cancer}; her brother is "
        "healthy."
    ),
    (
        "She keeps a small garden, does not smoke and drinks a glass of port at New Year. Her "
        "stairs have a rail on both sides. She gave up driving after a near miss in the fog."
    ),
    (
        "We went through the list of tablets together. She takes them from a weekly box that her "
        "daughter fills on Sundays, and rarely misses one. {s|Constipation} is occasional and "
        "answers to prunes. No {s-|black stools}."
    ),
    (
        "Since the winter she has had two colds. The second left her with a dry {s|cough} for "
        "three weeks, now gone. She did not need an antibiotic and had no {s-|fever}. Her inhaler "
        "from years ago is out of date and was thrown away."
    ),
    (
        "She has {s|numbness} of the toes, worse in bed. She does not smoke. She walks indoors in "
        "felt slippers and was asked to wear shoes. There is no {s-|foot pain} on walking and no "
        "{s-|claudication}."
    ),
    (
        "Her left eye was operated on in 2021 for {c~|cataract}. Distance vision is good; she "
        "reads with glasses from the chemist. No {s-|eye pain}, no {s-|double vision}."
    ),
    (
        "She had a fall in the kitchen in the spring, without {s-|loss of consciousness} and "
        "without {c-|fracture}. A neighbor helped her up. Since then a mat has been removed and a "
        "lamp put on the landing."
    ),
    (
        "{c|Hyperlipidemia} was treated with a tablet that gave her {s~|muscle pain}; the present "
        "one suits her. She eats fish on Fridays and seldom butter. An uncle had {c^|myocardial "
        "infarction} at 44."
    ),
    (
        "Dental work is planned. She asks whether the blood thinner has to be stopped; for a "
        "single extraction it does not. She has never had {c-|endocarditis} and has no artificial "
        "valve."
    ),
    (
        "Her daughter worries about memory. Names come late, but bills are paid and the stove is "
        "off. She draws a clock without error. There is no family history of {c-|dementia}."
    ),
    (
        "She lost her appetite during the stay and has found it again. Weight is back to what it "
        "was in the autumn. She denies {s-|dysphagia}, {s-|abdominal pain} and {s-|diarrhea}."
    ),
)

THERAPY = (
    (
        "Gait training with front-wheeled walker, supervised; three bouts with seated rest "
        "between. {s|Knee pain} did not increase. Cues for step length and for looking up."
    ),
    (
        "Sit to stand from a standard chair, two sets of eight, without use of the arms in the "
        "second set. Balance in tandem stance held for a few seconds only. No {s-|dizziness}."
    ),
    (
        "Stairs: up and down one flight with the rail, one step at a time. {s|Shortness of "
        "breath} at the top settled quickly. She was taught to pause on the landing."
    ),
    (
        "Home exercise sheet reviewed and two exercises changed because of {s|back pain} on "
        "bending. Patient showed each of them correctly and named the signs that should make her "
        "stop."
    ),
)

EMERGENCY = (
    (
        "Brought by her daughter because of {s|dizziness} since breakfast. She got up from the "
        "table, felt {s|lightheadedness} and sat down again. There was no {s-|loss of "
        "consciousness}, no {s-|chest pain} and no {s-|headache}."
    ),
    (
        "She has eaten little for two days because of {s|diarrhea}, five stools yesterday, "
        "watery, without {s-|blood in stool}. Her grandson had the same. No {s-|vomiting}, no "
        "{s-|fever}."
    ),
    (
        "Past history of {c|hypertension}, {c|type 2 diabetes}, {c|atrial fibrillation} and "
        "{c|chronic kidney disease}. She takes a blood thinner; no {s-|bleeding}, no recent fall."
    ),
    (
        "Monitor shows {c|atrial fibrillation} at a controlled rate. {p|Electrocardiogram} "
        "without acute change. {p|Bladder scan} shows little urine."
    ),
    (
        "After a liter of crystalloid over two hours she feels better, stands without "
        "{s-|dizziness} and drinks tea. Second set of readings below."
    ),
    (
        "{c|Dehydration} from {c|gastroenteritis} is the most likely explanation. {c-|Stroke} is "
        "unlikely with a normal neurologic examination; {c-|acute coronary syndrome} was "
        "considered and excluded."
    ),
    (
        "She wishes to go home and her daughter will stay the night. The water tablet and the "
        "blood pressure tablet are to be left out for two days. Return for {s?|syncope}, "
        "{s?|black stools} or {s?|chest pain}."
    ),
)

KIDNEY = (
    (
        "Thank you for referring this 72-year-old woman with {c|chronic kidney disease} for an "
        "opinion after an episode of {c~|acute kidney injury} in February 2024. Records since "
        "2016 were reviewed."
    ),
    (
        "There is no {s-|hematuria} and no {s-|foamy urine}. She passes water five times by day "
        "and once at night. She never had {c-|kidney stones}. As a child she had one {c~|urinary "
        "tract infection}."
    ),
    (
        "She has taken anti-inflammatory tablets for {s|knee pain} on and off for years, bought "
        "without prescription, the last in January 2024. She now understands why they should be "
        "avoided."
    ),
    (
        "An ultrasound of March 2022 showed kidneys of slightly reduced length with thin cortex, "
        "no {c-|hydronephrosis}, one simple {c|renal cyst}. {p?|Renal ultrasound} is to be "
        "repeated."
    ),
    (
        "Blood pressure at home has been near the goal. {c|Hypertension} began in her forties. "
        "{c|Diabetic retinopathy} was noted once by her optician; a formal report is awaited."
    ),
    (
        "I explained the meaning of the filtration rate and the expected slow course. The cause "
        "is most likely {c|diabetic kidney disease} together with {c|hypertension}. "
        "{c?|Glomerulonephritis} is unlikely."
    ),
    (
        "There is no {s-|itching}, no {s-|metallic taste} and no {s-|muscle cramps}. {c|Anemia} "
        "is mild. {c-|Hyperkalemia} has not recurred since the stay."
    ),
)

OFFICE_EXAM = (
    (
        "Well dressed, walks in with a short step. Heart irregular, rate controlled, soft "
        "systolic {c|murmur}. Lungs clear, no {s-|wheezing}, no {s-|crackles}. Abdomen soft, no "
        "{s-|tenderness}. Ankles without {s-|edema}."
    ),
    (
        "Alert, oriented, good humor. No {s-|jaundice}, no {s-|rash}. Lungs clear. Heart "
        "irregular. Trace {s|edema} at the ankles. Right knee with crepitus and full extension. "
        "Feet: skin whole, no {c-|ulcer}."
    ),
    (
        "Comfortable at rest. Moist mucous membranes. Chest clear on both sides. Heart sounds "
        "irregular without {c-|gallop}. Gait slow but steady, no {s-|tremor}. Strength equal on "
        "both sides."
    ),
)

OFFICE_PLAN = (
    (
        "{c|Type 2 diabetes}: near goal for her age. Same tablets, repeat the long-term value in "
        "three months, yearly eye examination."
    ),
    (
        "{c|Hypertension}: controlled on the present tablets. Home readings twice a week, seated, "
        "after five minutes of rest."
    ),
    (
        "{c|Atrial fibrillation}: rate controlled, no {s-|bleeding}. Continue the blood thinner; "
        "dose is right for age and kidneys."
    ),
    ("{c|Chronic kidney disease}: stable. No {m-|ibuprofen}. Recheck before any contrast study."),
    (
        "{c|Osteoporosis}: weekly tablet with a full glass of water, upright for half an hour. "
        "Bone density next year."
    ),
    ("{c|Hyperlipidemia}: tolerates the tablet without {s-|muscle pain}. No change."),
    (
        "{c|Osteoarthritis}: heat, exercises, a cane for long walks. Injection if the {s|knee "
        "pain} gets worse."
    ),
    (
        "{c|Anemia}: mild and unchanged, no {s-|melena}. Iron stores to be looked at with the "
        "next draw."
    ),
)
