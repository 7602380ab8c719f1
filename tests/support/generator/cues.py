"""Generated assertion cues in short forms: marks, answers, family lists, precautions, doubts."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made
from tests.support.generator.sentences import CONDITIONS

ANSWERED_NO = (
    "{X}: no", "{X}: denied", "{X} - none", "{X} (-)", "{X}: negative", "{X} absent.",
    "(-) {x}", "{X}: not present", "{X} not seen.", "{X}? No.", "{X}: N", "{X} is absent.",
    "{X} was not found.", "No signs of {x}.", "Negative {x}.", "{X} unlikely.",
    "{X} has been ruled out.", "Not {x}.", "Free of {x}.", "Never had {x}.",
    "No acute {x}.", "Without evidence of {x}.", "{X} is not suspected.", "No recurrent {x}.",
    "There was no {x} on imaging.", "{X} could be ruled out.", "We found no {x}.",
    "She does not have {x}.", "He did not develop {x}.", "Imaging does not show {x}.",
    "Not suggestive of {x}.", "Tests argue against {x}.", "{X} not identified.",
)  # fmt: skip
ANSWERED_YES = (
    "{X}: yes", "{X} (+)", "(+) {x}", "{X}: present", "{X}: positive", "Positive for {x}.",
    "+ {x}", "{X}: Y", "{X} seen on imaging.", "{X} noted.",
    "Admitted with {x}.", "{X} confirmed on biopsy.", "Active {x}.", "Recurrent {x}.",
    "Worsening {x}.", "Acute {x}.", "{X}, stable.", "Being treated for {x}.",
    "Complains of {x}.", "New diagnosis of {x}.", "Ongoing {x}.", "Presents with {x}.",
)  # fmt: skip
ONLY_NAMED = (
    "{X} precautions were reviewed.",
    "{X} prophylaxis with heparin.",
    "{X} screening is up to date.",
    "Referred to the {x} clinic.",
    "Rule out {x} vs. anemia of other cause.",
    "Risk of {x} was explained.",
    "Watch for {x}.",
    "Evaluate for {x}.",
    "Return if {x} occurs.",
    "To prevent {x}, walk daily.",
    "Test for {x} is pending.",
    "Work-up for {x} under way.",
    "Unclear whether this is {x}.",
    "Consistent with {x}.",
    "Cannot rule out {x}.",
    "Low suspicion for {x}.",
    "In case of {x}, call.",
    "Fear of {x}.",
    "Her mother worries about {x}.",
)
RELATIVES = ("Mother", "Father", "Sister", "Brother", "Maternal aunt", "Paternal grandmother")
PEOPLE = (
    "Her boss has {x}.",
    "His partner was treated for {x}.",
    "A schoolmate has {x}.",
    "Her ex-husband had {x}.",
    "The index patient had {x}.",
    "The baby's father has {x}.",
    "His girlfriend tested positive for {x}.",
    "A household contact has {x}.",
    "Her pet sitter has {x}.",
    "The organ donor died of {x}.",
    "His tenant was diagnosed with {x}.",
    "A cruise passenger had {x}.",
)


MORE_NO = (
    "Serology was negative for {x}.", "Not felt to have {x}.", "{X} is no longer a concern.",
    "No personal history of {x}.", "{X} was never confirmed.", "Evaluation excluded {x}.",
    "There is nothing to suggest {x}.", "No features of {x}.", "Lacks any sign of {x}.",
    "{X} seems very unlikely.", "The patient reports no {x}.", "Doubt {x}.",
    "No {x} was appreciated.", "Absence of {x}.", "{X} has not been demonstrated.",
    "This is not {x}.", "Biopsy failed to reveal {x}.", "No radiographic {x}.",
    "Denied having {x}.", "{X}: ruled out", "Screening for {x} was negative.",
    "Testing came back negative for {x}.",
    "MRI without {x}.", "Symptoms are not due to {x}.",
)  # fmt: skip
MORE_YES = (
    "Found to have {x}.", "Known to have {x}.", "{X} was diagnosed today.", "Suffers from {x}.",
    "Hospitalized for {x}.", "The patient's {x} is getting worse.", "Currently has {x}.",
    "Labs and imaging confirm {x}.", "{X} remains poorly controlled.", "Living with {x}.",
    "Continues to struggle with {x}.", "{X} with good response to treatment.",
    "Came in because of {x}.", "Impression: {x}.", "1. {X}", "Dx: {x}", "Primary diagnosis: {x}",
    "Patient with {x}, here for follow-up.", "{X} is well controlled.", "Has had {x} since May.",
)  # fmt: skip
MORE_ASIDE = (
    "{X} remains in the differential.", "Query {x}.", "Consider {x}.", "Could be {x}.",
    "Awaiting results to exclude {x}.", "Unable to exclude {x}.", "Suspicion of {x}.",
    "Presumed {x}.", "Treat as {x} until proven otherwise.", "Worrisome for {x}.",
    "He asked about {x}.", "Counselled on the symptoms of {x}.",
    "High risk for {x}.", "Prone to {x}.", "Would treat if {x} develops.",
    "Her employer has {x}.", "A relative of his wife has {x}.", "The caregiver reports own {x}.",
    "Patient's cousin had {x}.", "Grandmother died from {x}.", "Twin brother with {x}.",
    "{X} in 1998, fully recovered.", "Remote {x}.", "Previously had {x}.", "Former {x}.",
    "Status post {x} in childhood.", "Last episode of {x} was in 2015.",
)  # fmt: skip


def more(rng: random.Random) -> Made:
    """Return a condition that is denied, stated or set aside by a further cue."""
    frames, kind = rng.choice(
        [
            (MORE_NO, FactKind.ABSENT),
            (MORE_YES, FactKind.CURRENT),
            (MORE_ASIDE, FactKind.ABSENT),
        ]
    )
    name, text = _sentence(rng, frames)
    return "ASSESSMENT", text, (Expected(category="condition", name=name, kind=kind),)


def answered_no(rng: random.Random) -> Made:
    """Return a denial in a short form."""
    name, text = _sentence(rng, ANSWERED_NO)
    return "REVIEW", text, (Expected(category="condition", name=name, kind=FactKind.ABSENT),)


def answered_yes(rng: random.Random) -> Made:
    """Return a statement in a short form."""
    name, text = _sentence(rng, ANSWERED_YES)
    return "REVIEW", text, (Expected(category="condition", name=name),)


def only_named(rng: random.Random) -> Made:
    """Return a condition that the text names without stating."""
    name, text = _sentence(rng, ONLY_NAMED)
    return "PLAN", text, (Expected(category="condition", name=name, kind=FactKind.ABSENT),)


def people(rng: random.Random) -> Made:
    """Return a condition of another person."""
    name, text = _sentence(rng, PEOPLE)
    return "HISTORY", text, (Expected(category="condition", name=name, kind=FactKind.ABSENT),)


def mixed_marks(rng: random.Random) -> Made:
    """Return a list of plus and minus signs, or of yes and no."""
    names = rng.sample(CONDITIONS, k=rng.randint(3, 5))
    stated = [rng.random() < 0.5 for _ in names]
    yes, no = rng.choice([("(+) {x}", "(-) {x}"), ("{X}: yes", "{X}: no"), ("{X}: Y", "{X}: N")])
    gap = rng.choice([", ", "\n", "; ", "\t"])
    text = gap.join(
        (yes if is_stated else no).format(x=name, X=name.capitalize())
        for name, is_stated in zip(names, stated, strict=True)
    )
    facts = [
        Expected(
            category="condition",
            name=name,
            kind=FactKind.CURRENT if is_stated else FactKind.ABSENT,
        )
        for name, is_stated in zip(names, stated, strict=True)
    ]
    return "REVIEW", text, tuple(facts)


def family_list(rng: random.Random) -> Made:
    """Return a list of relatives with their conditions, before a list of the patient's."""
    names = rng.sample(CONDITIONS, k=4)
    people = rng.sample(RELATIVES, k=2)
    gap = rng.choice([": ", " - ", " with ", "\t"])
    rows = [f"{who}{gap}{name}" for who, name in zip(people, names[:2], strict=True)]
    text = "\n".join([*rows, "", "ASSESSMENT", *(f"{n.capitalize()}" for n in names[2:])])
    facts = [
        Expected(
            category="condition",
            name=name,
            kind=FactKind.ABSENT if number < 2 else FactKind.CURRENT,
        )
        for number, name in enumerate(names)
    ]
    return "FAMILY HISTORY", text, tuple(facts)


def _sentence(rng: random.Random, frames: tuple[str, ...]) -> tuple[str, str]:
    name = rng.choice(CONDITIONS)
    return name, rng.choice(frames).format(x=name, X=name.capitalize())
