"""Notes without verbs: a cue reaches only the subject of which the cue is told."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pipeline.core.types import PageSlice
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import FoundEntity


@dataclass(frozen=True)
class ReadMention:
    """What the engine read about one name."""

    entity: FoundEntity

    @property
    def is_flagged(self) -> bool:
        """Whether a person must read the row."""
        return "not-understood" in (self.entity.rule or "")


def read(text: str, name: str) -> ReadMention:
    page = PageSlice(page=1, start=0, text=f"OFFICE VISIT\n\n{text}\n")
    question = Question(kind="entities", item_token="a" * 32, include_zones=False, slices=(page,))
    (entity,) = [e for e in detect(question).entities if e.name.lower() == name.lower()]
    return ReadMention(entity)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Migraine: MRI brain negative.", "Migraine"),
        ("Stroke - CT head negative", "Stroke"),
        ("Abdominal pain: lipase negative, improved", "abdominal pain"),
        ("Pruritus: skin scraping stain negative", "Pruritus"),
        ("Wheezing at night, allergy panel negative", "Wheezing"),
        ("Pneumonia, pleural effusion ruled out", "Pneumonia"),
        ("No nausea, headache x 2 weeks.", "headache"),
        ("No fever, chills, palpitations every evening since May", "palpitations"),
        ("Denies vomiting, diarrhea started yesterday", "diarrhea"),
        ("psoriasis (brother and patient)", "psoriasis"),
        ("Not febrile, tachycardia", "tachycardia"),
        ("Insurance denied MRI for back pain", "back pain"),
    ],
)
def test_a_cue_with_an_open_subject_flags_the_mention_and_denies_nothing(
    text: str, name: str
) -> None:
    found = read(text, name)

    assert found.is_flagged
    assert found.entity.negated is not True


@pytest.mark.parametrize(
    ("text", "name", "negated"),
    [
        ("Fever, chills: none", "chills", True),
        ("Fever, chills: none", "Fever", True),
        ("Dysuria and hematuria were absent.", "Dysuria", True),
        ("Pneumonia and empyema ruled out", "Pneumonia", True),
        ("Denies fever, cough, chest pain at rest", "chest pain", True),
        ("Headache -ve, vomiting +ve", "Headache", True),
        ("Headache -ve, vomiting +ve", "vomiting", False),
        ("neg headache, pos vomiting", "headache", True),
        ("neg headache, pos vomiting", "vomiting", False),
        ("Asthma Y / Epilepsy N / Gout N", "Asthma", False),
        ("Asthma Y / Epilepsy N / Gout N", "Epilepsy", True),
        ("Asthma Y / Epilepsy N / Gout N", "Gout", True),
        ("Unlikely appendicitis", "appendicitis", True),
        ("dizziness (yes), syncope (no)", "dizziness", False),
        ("dizziness (yes), syncope (no)", "syncope", True),
        ("ROS negative except dysuria", "dysuria", None),
        ("Improving, not yet jaundiced", "jaundiced", True),
        ("No vomiting after appendectomy", "appendectomy", None),
        ("Prior authorization for Humira for psoriasis denied", "psoriasis", None),
        ("Endoscopy negative", "Endoscopy", None),
        ("Negative endoscopy in June", "endoscopy", None),
        ("Endoscopy: none", "Endoscopy", True),
    ],
)
def test_a_bare_answer_belongs_to_its_own_subject(
    text: str, name: str, negated: bool | None
) -> None:
    found = read(text, name)

    assert not found.is_flagged
    assert found.entity.negated is negated


def test_the_detail_of_an_item_ends_the_list_before_the_next_answer() -> None:
    relative = read("FH: Aunt - ovarian cancer (61), Uncle - none", "ovarian cancer").entity
    done = read("s/p tonsillectomy 2003, septoplasty planned", "tonsillectomy").entity

    assert (relative.experiencer, relative.negated) == ("family", None)
    assert done.temporality == "historical"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Return precautions: syncope, vomiting", "vomiting"),
        ("Side effects discussed: dizziness, syncope", "syncope"),
        ("Exposure: measles at school", "measles"),
    ],
)
def test_a_warning_with_a_colon_reaches_its_list(text: str, name: str) -> None:
    assert read(text, name).entity.certainty == "hypothetical"


def test_a_denied_family_history_is_of_the_family() -> None:
    found = read("No FH of melanoma", "melanoma").entity

    assert (found.experiencer, found.negated) == ("family", True)


@pytest.mark.parametrize(
    "text", ["? appendicitis", "Plan: ? appendicitis", "Appendicitis not excluded"]
)
def test_a_question_mark_and_a_missing_exclusion_leave_a_disease_possible(text: str) -> None:
    found = read(text, "appendicitis").entity

    assert (found.certainty, found.negated) in {("possible", None), ("possible", False)}


def test_the_present_illness_is_not_history() -> None:
    assert read("History of present illness: vertigo", "vertigo").entity.temporality is None


@pytest.mark.parametrize("heading", ["Previously on:", "Was on:", "Used to take:"])
def test_a_heading_of_former_drugs_ends_them(heading: str) -> None:
    assert read(f"{heading}\natenolol 50 mg daily", "atenolol").entity.status == "stopped"


@pytest.mark.parametrize(
    "heading", ["Took these until spring, now off them:", "Ask the cardiologist if he wants:"]
)
def test_a_heading_that_no_rule_reads_flags_the_drugs_below(heading: str) -> None:
    assert read(f"{heading}\natenolol 50 mg daily", "atenolol").is_flagged


@pytest.mark.parametrize("text", ["Digoxin 0.25", "Lithium 450", "Iron 65"])
def test_a_bare_number_behind_a_prescribed_substance_is_neither_level_nor_dose(text: str) -> None:
    found = read(text, text.split()[0])

    assert found.is_flagged
    assert (found.entity.value, found.entity.dose) == (None, None)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("Lithium level 0.7", "Lithium level", "0.7"),
        ("Na 139, K 4.4, Mg 1.9", "Mg", "1.9"),
        ("Labs: digoxin 1.1", "digoxin", "1.1"),
        ("HCV Ab neg", "HCV Ab", "neg"),
    ],
)
def test_a_named_level_and_a_row_of_results_stay_results(text: str, name: str, value: str) -> None:
    found = read(text, name)

    assert not found.is_flagged
    assert found.entity.value == value


def test_the_days_of_a_dose_are_no_list_of_findings() -> None:
    page = PageSlice(page=1, start=0, text="Warfarin 4 mg M/W/F, 3 mg T/Th/S/S\n")
    question = Question(kind="entities", item_token="a" * 32, include_zones=False, slices=(page,))

    assert {e.category for e in detect(question).entities} == {"medication"}


def test_an_intolerance_is_no_medication() -> None:
    found = read("Intolerance: lisinopril (cough)", "lisinopril").entity

    assert (found.category, found.reaction) == ("allergy", "cough")


def table(*rows: str) -> str:
    """Return a table; `|` is the border between two cells."""
    return "\n".join(row.replace("|", "\t") for row in rows)


def test_the_columns_of_a_table_of_drugs_are_no_heading_of_stopped_drugs() -> None:
    text = table(
        "Drug|Start|Stop",
        "Atenolol 25 mg daily|01/14/2024|",
        "Cephalexin 500 mg BID|01/15/2024|01/22/2024",
    )

    assert read(text, "atenolol").entity.status == "active"
    assert read(text, "cephalexin").entity.status == "stopped"


def test_a_table_that_heads_allergens_or_vaccines_is_a_section() -> None:
    allergens = table("Allergen|Reaction|Severity", "Cefazolin|Urticaria|Mild")
    vaccines = table("Vaccine|Date|Status", "Measles|09/14/2023|Refused")

    found = read(allergens, "cefazolin").entity
    refused = read(vaccines, "measles").entity

    assert (found.category, found.reaction) == ("allergy", "Urticaria")
    assert (refused.category, refused.negated) == ("immunization", True)


def test_the_section_goes_on_below_a_table_of_allergens() -> None:
    rows = table("Allergen|Reaction", "Cefazolin|Urticaria")
    text = f"Medications:\n{rows}\n\nAtenolol 25 mg daily"

    assert read(text, "atenolol").entity.category == "medication"


def test_a_resolved_problem_of_a_table_is_history() -> None:
    text = table("Problem|Status|Onset", "Psoriasis|Resolved|2004", "Gout|Active|2019")

    assert read(text, "psoriasis").entity.temporality == "historical"
    assert read(text, "gout").entity.temporality is None


@pytest.mark.parametrize(
    "text",
    [
        "K 6.4 (hemolyzed), Cr 1.0",
        "Critical K 6.4 called to the ward; sample clotted, result cancelled",
    ],
)
def test_a_result_of_a_bad_specimen_has_no_value(text: str) -> None:
    found = read(text, "K")

    assert found.is_flagged
    assert found.entity.value is None


def test_a_change_behind_a_colon_has_an_old_and_a_new_dose() -> None:
    found = read("Change: carvedilol 6.25 mg to 12.5 mg BID", "carvedilol").entity

    assert (found.previous_dose, found.dose) == ("6.25 mg", "12.5 mg")


def test_the_end_of_a_stay_is_no_symptom() -> None:
    text = f"OFFICE VISIT\n\n{table('|Admit|Discharge', 'Weight|80 kg|76 kg')}\n"
    page = PageSlice(page=1, start=0, text=text)
    question = Question(kind="entities", item_token="a" * 32, include_zones=False, slices=(page,))

    assert {e.category for e in detect(question).entities} == {"vital"}


def test_a_drug_that_the_patient_takes_from_another_person_is_flagged() -> None:
    assert read("She uses her sister's alprazolam 0.5 mg at night.", "alprazolam").is_flagged


def test_a_fetus_is_not_the_patient() -> None:
    found = read("The fetus has hydronephrosis.", "hydronephrosis").entity

    assert found.experiencer == "family"


def test_the_end_of_a_drug_does_not_end_an_operation() -> None:
    found = read("Stop clopidogrel 5 days before hysterectomy.", "hysterectomy").entity

    assert found.temporality != "historical"


@pytest.mark.parametrize(
    ("text", "name", "negated", "is_flagged"),
    [
        ("No hydronephrosis, one simple renal cyst.", "simple renal cyst", None, False),
        ("No fever, two episodes of vomiting.", "vomiting", None, False),
        ("No pneumothorax, small pleural effusion.", "small pleural effusion", None, False),
        ("No fever, new cough.", "new cough", False, True),
        ("No fever, chills or cough.", "cough", True, False),
        ("No nausea, vomiting, or two episodes of diarrhea.", "diarrhea", True, False),
        ("Denies a fever, a cough.", "cough", True, False),
    ],
)
def test_a_counted_finding_behind_a_denial_is_no_member_of_the_denied_list(
    text: str, name: str, negated: bool | None, is_flagged: bool
) -> None:
    found = read(text, name)

    assert (found.entity.negated, found.is_flagged) == (negated, is_flagged)


@pytest.mark.parametrize(
    ("text", "temporality"),
    [
        ("HCTZ stopped in 2022 for hyponatremia.", "historical"),
        ("HCTZ was stopped on 08/19/2022 for hyponatremia.", "historical"),
        ("HCTZ was discontinued last year because of hyponatremia.", "historical"),
        ("Visit of 08/19/2022. HCTZ was stopped on 08/19/2022 for hyponatremia.", None),
    ],
)
def test_the_reason_of_a_stop_at_a_past_time_is_past(text: str, temporality: str | None) -> None:
    assert read(text, "hyponatremia").entity.temporality == temporality
