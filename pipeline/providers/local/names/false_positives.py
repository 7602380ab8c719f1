"""Contexts in which a known word is no entity: names of clinics, plain English, headings.

The tables map each word to the text that must not precede or follow it.
"""

from __future__ import annotations

import re
from functools import cache

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.names.column_headings import is_column_heading
from pipeline.providers.local.names.lexicon import Term, TermMatch

_COMPOUND = re.compile(
    (
        r"(?:'s|’s)?[ ]+(?:clinic|center|centre|institute|foundation|association|unit|ward|hospital"
        r"|program|associates|department|specialists?|group|service|registry|society|medications?"
        r"|pills?|education|educators?|nurses?|coaches?|counselors?|navigators?|classes"
        r"|class(?![ ][IV\d])|camp|conference|walk|charity|research|(?:action[ ]|care[ ])plans?"
        r"|screen(?:ing|er|s)?"
        r"|prevention|awareness|management|risk|precautions|resistance|supplies|brochures?"
        r"|pamphlets?|handouts?|leaflets?|booklets?|support[ ]groups?|hotline|helpline"
        r"|questionnaires?|inventory|checklists?|surveys?|diary|diaries|journal|log|scales?|scores?"
        r"|index|indices|protocols?|pathways?|guidelines?|bundles?|orders?[ ]set|alerts?|panels?"
        r"|antibod(?:y|ies)|antigens?|titers?|tests?|testing|serolog(?:y|ies)|PCR|NAAT|swabs?|assays?"
        r"|(?:surface|core|early)[ ]ant(?:igen|ibod)\w*)\b(?![ ]?-)"
    ),
    re.I,
)
"""Words that make a disease part of another name: a place, a person, a paper, a test."""
_UNLIKE = re.compile(
    r"[-‐‑](?:like|type|mimic\w*)\b|[ ]free\b(?![ ](?:air|fluid|of[ ]charge))", re.I
)
"""Words behind a disease that the patient does not have: `stroke-like`, `cancer free`."""
_PREFIX = re.compile(r"\b(?:anti|pseudo|mock)[-‐‑]$", re.I)
_NON_BEFORE = re.compile(r"\b[Nn]on[-‐‑ ](?:[A-Z]{1,3}(?:-wave)?[ ](?:segment[ ]|elevation[ ])*)?$")
_CODE_BEFORE = re.compile(r"\b(?:code|team)[ ]+$", re.I)
_VACCINE = re.compile(
    r"(?:[ ]*\([^)\n]{1,30}\))?[ ]+(?:vaccin\w*|vax+\b|immuni[sz]\w*|boosters?|shots?|jabs?)\b",
    re.I,
)
_VACCINE_DISEASE = re.compile(
    r"(?:tetanus|diphtheria|pertussis|polio|measles|mumps|rubella|varicella|zoster|shingles"
    r"|rotavirus|rabies|influenza|flu|covid(?:-?19)?|pneumococcal|meningococcal|hpv|rsv"
    r"|hep(?:atitis)?[ ]?[ab])",
    re.I,
)
_DOSE_BEHIND = re.compile(
    r"[ ]*(?:\((?:Tdap|Td|DTaP|IM|SC|SQ)\b|#[ ]?\d|\(?\d[ ]?(?:of|/)[ ]?\d\b|dose\b"
    r"|(?:1st|2nd|3rd|first|second|third)[ ]dose|series\b"
    r"|[:–-]?[ ]*(?:(?:non-?)?immun(?:e|ity)\b|titers?\b|igg\b)"
    r"|(?:was[ ]|last[ ])?(?:given|administered|declined|refused|due)\b)",
    re.I,
)
"""Words that make a dose of a vaccine of the name of a disease: `Hep B #1 given`."""
_ADMITTED = re.compile(r"\badmi(?:t|ts|tted|ssion)\b", re.I)
_SUSCEPTIBILITY = re.compile(
    (
        r"(?:[ ]?[/-][ ]?[a-z]{3,})?[ ]+(?:[<>≤≥=]*[ ]?[\d./]+[ ]+)?(?:susceptible|resistant"
        r"|intermediate|sensitive|[SRI](?=[ ]*$|\n))"
    ),
    re.I | re.M,
)
_ANALYTE = re.compile(
    r"[ ]+(?:closure[ ]times?|clotting[ ]times?|time|assays?|receptors?|antibod(?:y|ies)|titers?"
    r"|clearance|stain(?:s|ed|ing)?|immunostain\w*|(?:stimulation|suppression|tolerance|challenge"
    r"|provocation|release)[ ]tests?|secretion|excretion|synthesis|metabolism)\b",
    re.I,
)
"""Words behind a substance that a laboratory measures or uses (`epinephrine closure time`)."""
_DRUG_COMPOUND = re.compile(
    r"[-‐‑][ ]?(?:induced|associated|related|resistant|sensitive|susceptible|dependent|refractory"
    r"|naive|naïve|exacerbated|free|rich|binding|producing|eluting|allergic|intolerant|mediated)\b"
    r"|[ ]+(?:clinics?|protocols?|levels?|troughs?|peaks?|concentrations?|locks?|receptors?"
    r"|toxicity|overdos\w+|poisoning|intoxication|withdrawal|dependence|abuse|misuse|addiction"
    r"|use[ ]disorder|resistance|washout|brochures?|handouts?|commercials?|deficiency|myopathy"
    r"|enhancement|(?:stress|skin|patch|sensitivity|breath|drug)[ ](?:tests?|testing|echo\w*|MRI)"
    r"|screen(?:s|ing)?|agonists?|antagonists?|tubing|tanks?|concentrators?|saturations?)\b",
    re.I,
)
"""Words that make a drug part of another name: a level, an injury by the drug, a clinic."""
_REPORTED = re.compile(
    r"[ ]*[:=-]?[ ]*(?:negative|positive|neg|pos|not[ ]detected|none[ ]detected|detected"
    r"|non[- ]?reactive|presumptive)\b",
    re.I,
)
"""A finding behind a drug of a drug screen."""
_RESISTS = re.compile(
    r"\b(?:resistan(?:t|ce)|susceptib(?:le|ility)|intermediate)[ ]+(?:to|against)[ ]+"
    r"[^.;\n]{0,80}$",
    re.I,
)
_SENSITIVE = re.compile(r"\bsensitiv(?:e|ity|ities)[ ]+(?:to|:)[ ]*[^.;\n]{0,80}$", re.I)
_MICROBE = re.compile(
    r"\b(?:[A-Z]\.[ ]?[a-z]{4,}|coli|klebsiella|pseudomonas|proteus|enterobacter|serratia"
    r"|staph\w*|strep\w*|enterococc\w*|MRSA|MSSA|VRE|ESBL|isolates?|organisms?|cultures?|cultured"
    r"|grew|growth|growing|bacteri\w+|gram[- ](?:negative|positive)|CFU)\b",
    re.I,
)
_TEAM = re.compile(
    r"[ ]+(?:clinics?|centers?|department|consult\w*|service|team|resident|floor|unit|ward|staff"
    r"|notes?|follow[- ]?up|was[ ]consulted)\b",
    re.I,
)
_PLACE_OF_WORK = re.compile(
    r"[ ]+(?:clinics?|cent(?:er|re)s?|departments?|units?|suites?|labs?|laboratory|associates|staff"
    r"|nurses?|technicians?|coordinator|schedul\w+|screening)\b",
    re.I,
)
_TEAM_BEFORE = re.compile(
    r"\b(?:specialty|service|department|division|consult\w*|referr\w+[ ]to|per|by)[ ]*:?[ ]*$", re.I
)
"""Words around an operation's name that make the name a team: `Specialty: Vascular Surgery`."""
_MEASURED = re.compile(r"[ ]*(?:(?:was|is|of|[:=])[ ]*)?(?:[<>≤≥]=?[ ]?\d|\d+\.\d+(?![\d/]))")
"""A number behind an index (`ABI 0.6`), which is a measurement."""
_TAKEN = re.compile(
    r"\b(?:on|takes?|taking|took|taken|receiv\w+|given|gave|started|starting|prescribed|continu\w+"
    r"|stopp\w+|using|used|uses|tried|(?:treat\w*|therapy|managed)[ ]with"
    r"|(?:doses?|courses?|infusions?|injections?|cycles?|trial)[ ]of|switched[ ]to|allergic[ ]to"
    r"|allergy[ ]to|reaction[ ]to|hold|resume)[ ]+(?:(?:oral|iv|the|a|her|his|daily)[ ]+)*$",
    re.I,
)
"""Words before a drug that a patient takes."""
_AMOUNT = re.compile(
    r"(?:[ ]+(?:XR|SR|ER|XL|CR|LA|HCT|DS|inhaler|patch|cream|drops))*[ ]*\(?\d[\d,.]*[ ]?"
    r"(?:mg|mcg|µg|μg|g|units?|mL|mEq|IU|puffs?|%)(?![\w])",
    re.I,
)
_STATES = frozenset(("al", "ar", "ca", "ct", "de", "la", "ma", "md", "mi", "ms", "pa", "va"))
"""Codes of states that are abbreviations of our lists too."""
_STATE_BEHIND = re.compile(r",?[ ]+(?:\d{5}\b|U\.?S\.?A?\b)")
_STATE_BEFORE = re.compile(
    r"\b(?:(?:lives?|lived|living|born|works?|worked|resid\w+|grew[ ]up|stay\w*"
    r"|vacation\w*)[ ]+in"
    r"|(?:travel\w*|moved|flew|drove|flight|trip)[ ]+(?:to|from)|visiting"
    r"|(?:back|here)[ ]from)[ ]+$",
    re.I,
)
_FIT_FOR = re.compile(r"[-‐‑](?:compatible|safe|conditional)\b", re.I)
_IDENTIFIER_BEHIND = re.compile(r"[-_#/]?\d{3,}")
_IDENTIFIER_BEFORE = re.compile(r"\d{3,}[-_#/]$")
"""Digits that make an abbreviation part of a number: `TR-240415-0009` is an accession number."""
_ADDRESS_BEHIND = re.compile(r"[\w-]*(?:\.(?:org|com|gov|net|edu|info|int)\b|@\w)", re.I)
_ADDRESS_BEFORE = re.compile(r"(?:www\.|://|@)[\w.-]*$", re.I)
"""An address on the web: `www.diabetes.org` names a site."""
_OBJECT_BEHIND = (
    r"[ ]+(?:the|an?|his|her|my|their|your|it|them|up|off|down|apart|out|through|wood|paper"
    r"|calories|himself|herself)\b"
)
"""Words that make a verb of the word before (`tears the paper`)."""
_SUBJECT_BEFORE = r"\b(?:he|she|it|they|we|you|i|who|which|that|never|always|often)[ ]+$"
_PNEUMONIA_BEHIND = re.compile(r"[ ]+(?:pneumonia|infection|prophylaxis|ppx)\b", re.I)
_PNEUMONIA_BEFORE = re.compile(
    r"\b(?:(?:treat\w*|therapy|prophylaxis|ppx|concern|positive|negative|suspicion)[ ]for"
    r"|history[ ]of|h/o|hx[ ]of|diagnos\w+[ ](?:with|of)|recurrent|suspected|possible|probable"
    r"|presumed|r/o|rule[ ]out|due[ ]to|episode[ ]of|HIV[ ]with)[ ]+$",
    re.I,
)
"""Words that make an infection of `PCP`, which mostly means a physician."""
_NOT_BEHIND: dict[str, str] = {
    "ed": r"[ ]+[A-Za-z]",
    "discharge": (
        r"[ ]+(?:to|home|on|from|the|date|planning|plan|summary|instructions?|medications?"
        r"|diagnos\w+|in|today|when|if|once|papers|criteria|with|after|tomorrow|condition"
        r"|disposition)\b|[ ]*[:/]"
    ),
    "frequency": r"[ ]*(?::|of|indication|route|\d)",
    "stress": r"[ ]+(?:test|echo\w*|fracture|incontinence|urinary|imaging|mri|relief|ulcer|dose)\b",
    "contraction": r"[ ]+alkalosis",
    "fall": r"[ ]+(?:of|asleep|in|off|back|risk|precautions|semester|20\d\d)\b",
    "guarding": r"[ ]+against",
    "delivery": r"[ ]+(?:of[ ](?:care|the[ ]medic)|room|date|system)",
    "ct": r"[ ]+surg",
    "pe": r"[ ]*[:?]|[ ]+(?:tube|tubes)\b",
    "ms": r"[ ]*(?:contin|\.|[A-Z][a-z])",
    "as": r"[ ]+(?:needed|tolerated|a|the|per|directed|above|well|far)\b",
    "hot": r"[ ]+(?:pack|water|shower|tub|bath|compress\w*|food|tea)",
    "sick": r"[ ]+(?:contacts?|leave|visit|day|cell|sinus|child|mother|father|family)\b",
    "mole": r"[ ]+(?:fraction|s?/L)",
    "us": r"[ ]+(?:citizen|resident|army|navy|marine|air[ ]force|military|veteran|government|born)",
    "ra": r"[ ]*(?:sats?\b|O2|SpO2|with[ ]sat|\d{2,3}[ ]?%)",
    "ivf": r"[ ]+(?:pregnan|cycle|embryo|clinic|treatment|twins|with[ ]donor)",
    "af": r"[ ]*(?:9[5-9]|10[0-4])(?:[.]\d)?\b|[ ]*,?[ ]*VSS",
    "tear": _OBJECT_BEHIND,
    "burn": _OBJECT_BEHIND,
    "cut": _OBJECT_BEHIND,
    "strain": _OBJECT_BEHIND,
    "sprain": _OBJECT_BEHIND,
    "bruise": _OBJECT_BEHIND,
    "fracture": _OBJECT_BEHIND,
    "scar": _OBJECT_BEHIND,
    "corn": r"[ ]+(?:syrup|starch)",
    "faint": (
        r"[ ]+(?!(?:and|or|but|when|if|with|after|on|while|during|from|at|today|yesterday|this"
        r"|since|for|in|then|as|upon|because|due|again|once|twice|all|most)\b)[a-z]"
    ),
    "weak": r"[ ]+(?:positive|signal)",
    "reflux": r"[ ]+(?:into|of[ ]contrast)",
    "catching": r"[ ]+(?:up|a)\b",
    "worry": r"[ ]+(?:about|that|over)\b",
    "worries": r"[ ]+(?:about|that|over)\b",
    "locking": r"[ ]+(?:plate|screws?)",
    "pale": r"[ ]+yellow",
    "mono": r"[ ]*(?:\d|%)",
    "drainage": r"[ ]+(?:catheter|tube|bag|system)",
    "echo": r"[ ]+(?:time|train)",
    "bypass": r"[ ]+(?:machine|time|the)\b",
    "panic": r"[ ]+(?:value|level)",
    "cold": r"[ ]+(?:pack|compress\w*|water|chain)",
}
_EAR_BEFORE = (
    r"\b(?:hearing|ears?|otitis|otorrh\w+|otalgia|tinnitus|cerumen|tympan\w+|TMs?|mastoid\w*"
    r"|externa|media|audi\w+|hypoacusis|presbycusis|drops?|gtts?|canal|BPPV|SNHL|myringotomy"
    r"|perforation|tubes?)\b[^.;:\n]{0,30}$"
)
"""Words before `AD` (auris dextra) and `AU`, the right ear and both ears."""
_NOT_BEFORE: dict[str, str] = {
    "ad": _EAR_BEFORE,
    "au": _EAR_BEFORE,
    "ed": r"\b(?:the|in|to|from|this|our|at|via|outside)[ ]+$",
    "frequency": r"\b(?:respiratory|heart|dosing|high|low|radio|visit)[ ]+$",
    "discharge": (
        r"\b(?:hospital|for|at|upon|on|after|before|to|the|of|post|until|since|following|patient"
        r"|pending|medical|anticipated|will|can|please"
        r"|(?:agree\w*|comfortable|okay|ok|ready|safe|stable|amenable|proceed\w*)[ ]with)[ ]+$"
        r"|^[ ]*$|[:.][ ]*$"
    ),
    "stress": r"\b(?:exercise|nuclear|dobutamine|cardiac)[ ]+$",
    "as": r"[a-z][ ]+$",
    "ra": r"(?:%|\b(?:on|room|sats?|O2|SpO2)|\d)[ ]*$",
    "tear": _SUBJECT_BEFORE,
    "burn": _SUBJECT_BEFORE,
    "cut": _SUBJECT_BEFORE,
    "strain": _SUBJECT_BEFORE,
    "sprain": _SUBJECT_BEFORE,
    "fracture": _SUBJECT_BEFORE,
    "ca": r"\b(?:serum|ionized)[ ]+$",
    "fall": r"\b(?:the|last|this|in|could|may)[ ]+$",
    "us": r"\b(?:to|with|by|call|contact|tell|let|give|told|see|(?:in|to|from|of)[ ]the)[ ]+$",
    "ivf": r"\b(?:via|by|through|underwent|conceived|failed|undergoing|donor|prior|after)[ ]+$",
    "urgency": r"\b(?:without|of|no[ ]surgical|hypertensive)[ ]+$(?<!without )",
    "hot": r"\bif[ ]+$",
    "surgery": r"\b(?:consult|general)[ ]+$",
    "infusion": r"\b(?:mg|mcg|units)\b.{0,20}$|\b(?:saline|dopamine|insulin|heparin)[ ]+$",
    "disease": r"\b(?:history[ ]of[ ]present|burden[ ]of|(?:history|hx|h/o)[ ]of|had)[ ]+$",
    "illness": r"\b(?:present|of[ ]this|history[ ]of)[ ]+$",
    "delivery": r"\b(?:drug|oxygen|medication|care|home)[ ]+$",
}


def is_ruled_out(reading: DocumentState, match: TermMatch, term: Term) -> bool:
    """Return whether the words around a match show that the match is no entity."""
    text = reading.text
    word = text[match.start : match.end].lower()
    if term.category == "medication" and _is_no_drug(reading, match, term):
        return True
    if term.category == "procedure" and _is_no_procedure(text, match):
        return True
    if term.category in ("condition", "symptom") and (
        _COMPOUND.match(text, match.end)
        or _CODE_BEFORE.search(text[max(0, match.start - 8) : match.start])
        or _is_other_disease(text, match)
    ):
        return True
    if term.category != "medication" and _heads_column(reading, match):
        return True
    behind, before = _patterns(word) if word.isascii() else (None, None)
    if behind is not None and behind.match(text, match.end):
        return True
    line = text.rfind("\n", 0, match.start) + 1
    if before is not None and before.search(text[max(line, match.start - 40) : match.start]):
        return True
    if word == "discharge" and _is_stay(text, match):
        return True
    if term.category in ("condition", "symptom") and _VACCINE.match(text, match.end):
        return True
    if (
        term.category == "condition"
        and _VACCINE_DISEASE.fullmatch(word)
        and _DOSE_BEHIND.match(text, match.end)
    ):
        return True
    if word == "pcp" and not (
        _PNEUMONIA_BEHIND.match(text, match.end)
        or _PNEUMONIA_BEFORE.search(text[max(line, match.start - 40) : match.start])
    ):
        return True
    if word == "mom" and text[match.start : match.end] != "MOM":
        return True
    if word in ("cta", "ctab") and reading.zones.type_at(match.start) == "physical_exam":
        return True
    if word in _STATES and _is_state(text, match):
        return True
    if term.kind == "abbreviation" and (
        (len(word) <= 3 and _is_label(text, match)) or _is_in_identifier(text, match)
    ):
        return True
    if _is_in_address(text, match):
        return True
    return term.category == "symptom" and word == "ha" and not text[match.start].isupper()


def _heads_column(reading: DocumentState, match: TermMatch) -> bool:
    raw = reading.document.raw
    begins = raw.rfind("\n", 0, match.start) + 1
    ends = raw.find("\n", match.end)
    line = raw[begins : ends if ends >= 0 else len(raw)]
    return is_column_heading(line, match.start - begins, match.end - begins)


def _is_stay(text: str, match: TermMatch) -> bool:
    """Return whether `Discharge` is the end of a stay: a heading beside `Admit`."""
    begins = text.rfind("\n", 0, match.start) + 1
    ends = text.find("\n", match.end)
    line = text[begins : ends if ends >= 0 else len(text)]
    return _ADMITTED.search(line) is not None


def _is_no_drug(reading: DocumentState, match: TermMatch, term: Term) -> bool:
    text = reading.text
    if any(
        pattern.match(text, match.end)
        for pattern in (_SUSCEPTIBILITY, _ANALYTE, _DRUG_COMPOUND, _REPORTED)
    ):
        return True
    return not is_drug_beyond_doubt(reading, match, term)


def names_resistance(reading: DocumentState, match: TermMatch) -> bool:
    """Return whether a drug is named because a germ resists the drug or is sensitive to the drug.

    A patient can be sensitive to a drug too, so that word needs a germ in the same sentence.
    """
    sentence = reading.assertions.sentence_at(match.start)
    before = reading.text[sentence.start : match.start].replace("\n", " ")
    if _RESISTS.search(before):
        return True
    return _SENSITIVE.search(before) is not None and _MICROBE.search(before) is not None


def is_drug_beyond_doubt(reading: DocumentState, match: TermMatch, term: Term) -> bool:
    """Return whether a word is a drug, and not a surname, a foreign word or an analyte.

    A listed substance is a drug. A brand of a source (`Camila`) and a word with the ending of a
    drug (`colesterol`) are drugs in a list of drugs, beside an amount, or behind a verb of taking.
    """
    if term.kind not in ("brand", "ending"):
        return True
    text = reading.text
    if reading.zones.type_at(match.start) in ("medications", "allergies"):
        return True
    if _AMOUNT.match(text, match.end):
        return True
    sentence = reading.assertions.sentence_at(match.start)
    before = text[max(sentence.start, match.start - 40) : match.start].replace("\n", " ")
    is_cased = term.kind == "ending" or text[match.start].isupper()
    return is_cased and _TAKEN.search(before) is not None


def _is_no_procedure(text: str, match: TermMatch) -> bool:
    """Return whether a name is a team, a measurement, or letters of another meaning (`aVR`)."""
    printed = text[match.start : match.end]
    if printed[0].islower() and printed.isalpha() and any(c.isupper() for c in printed):
        return True
    if _FIT_FOR.match(text, match.end):
        return True
    if _MEASURED.match(text, match.end) or _PLACE_OF_WORK.match(text, match.end):
        return True
    if not printed.lower().endswith("surgery"):
        return False
    line = text.rfind("\n", 0, match.start) + 1
    before = text[max(line, match.start - 30) : match.start]
    return bool(_TEAM.match(text, match.end) or _TEAM_BEFORE.search(before))


@cache
def _patterns(word: str) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    key = word if word in _NOT_BEHIND or word in _NOT_BEFORE else word.rstrip("s")
    behind, before = _NOT_BEHIND.get(key), _NOT_BEFORE.get(key)
    return (
        re.compile(behind, re.I) if behind else None,
        re.compile(before, re.I) if before else None,
    )


def _is_other_disease(text: str, match: TermMatch) -> bool:
    """Return whether a disease is only a part of the name of another or unknown disease.

    `Non-diabetic` denies a disease, but `non-ST elevation MI` names another one.
    """
    before = text[max(0, match.start - 40) : match.start]
    if _UNLIKE.match(text, match.end) or _PREFIX.search(before):
        return True
    denied = _NON_BEFORE.search(before)
    return denied is not None and (
        " " in before[denied.start() :].strip() or " " in text[match.start : match.end]
    )


def _is_state(text: str, match: TermMatch) -> bool:
    before = text[max(0, match.start - 30) : match.start]
    return bool(_STATE_BEHIND.match(text, match.end) or _STATE_BEFORE.search(before))


def _is_in_identifier(text: str, match: TermMatch) -> bool:
    before = text[max(0, match.start - 8) : match.start]
    behind = _IDENTIFIER_BEHIND.match(text, match.end)
    return behind is not None or _IDENTIFIER_BEFORE.search(before) is not None


def _is_in_address(text: str, match: TermMatch) -> bool:
    before = text[max(0, match.start - 40) : match.start]
    behind = _ADDRESS_BEHIND.match(text, match.end)
    return behind is not None or _ADDRESS_BEFORE.search(before) is not None


def _is_label(text: str, match: TermMatch) -> bool:
    """Return whether a match is a label (`PE:` at the beginning of a line), not a mention."""
    line = text.rfind("\n", 0, match.start) + 1
    return not text[line : match.start].strip() and text[match.end : match.end + 1] == ":"
