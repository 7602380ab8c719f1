"""What the words of a fragment tell about the layout: a value, a heading, a list item, a label.

The judgements need no medical knowledge beyond the usual headings of records and of tables.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NUMBER = r"[<>≤≥=~±+-]*[ ]?(?:\d[\d.,/:x×^-]*|\d*\.\d+)%?[¹²³⁰-⁹]*"
_UNIT = (
    r"(?:%|[°º]?[CF]|[A-Za-zµμ]{1,6}[²³]?(?:/[A-Za-z0-9.,²³⁶⁹µμ]+)+|10[³⁶⁹]/\S+|x?10[\^*E]\S+|/\S+"
    r"|mmol|mEq|mg|mcg|kg|lbs?|bpm|mmHg|mm|cm|in|IU|U|fL|pg|sec(?:onds)?|min|ratio|index|FEU|units?)"
)
_WORD_VALUE = (
    r"(?:neg(?:ative)?|pos(?:itive)?|(?:non-?[ ]?|not[ ])?(?:reactive|detected)|normal|abnormal"
    r"|trace|pending|none|n/?a|yes|no|high|low|critical|h|l|hh|ll|a|n|c|s|r|i|\*+|[↑↓]+|final"
    r"|see note)"
)
_DATE = (
    r"(?:\d{1,2}[-/. ][A-Za-z\d]{1,3}[-/. ]\d{2,4}|\d{4}-\d\d-\d\d"
    r"|[A-Z][a-z]{2,8}\.?[ ]\d{1,2},[ ]\d{4})"
)
_VALUE = re.compile(
    rf"\(?(?:{_DATE}|{_NUMBER}(?:[ ](?:-|to|–)[ ]{_NUMBER})?(?:[ ]?\(?{_UNIT}\)?){{0,2}}"
    rf"(?:[ ]\(?(?:{_WORD_VALUE})\)?)?|{_UNIT}(?:[ ]{_UNIT})?|{_WORD_VALUE})\)?[*†‡¹²³⁰-⁹]*|[-–—]+",
    re.I,
)
#: List markers: bullets, `1.`, `a)`, and check boxes.
MARKER = re.compile(r"(?:[•▪◦‣●○■□*·»¢–—-]|\(?(?:\d{1,2}|[a-zA-Z])[.)]|\[[x ]\])")
_NUMBERED = re.compile(r"(\d{1,2})[.)] ")
_AMOUNT = re.compile(r"\d[\d.,/-]*[ ]?(?:mg|mcg|µg|g|mL|units?|mEq|IU|tablets?|puffs?)(?!\w)", re.I)
_BULLET = re.compile(rf"{MARKER.pattern}(?: |$)")
_LABEL = re.compile(r"[A-Z][\w /#&.()'’-]{0,38}:")
_SECTION = re.compile(
    r"(?:(?:current|active|home|discharge|admission|outpatient|inpatient|chronic|resolved|inactive"
    r"|past|known|drug|food|environmental|other|recent|discontinued|stopped|held|new|continued?"
    r"|prior|previous|scheduled|prn|medications?|patient['’]?s?|your|all|relevant|personal|ongoing"
    r"|changed|start(?:ed)?|stop|documented|reported|prescribed|over-the-counter|otc|admitting"
    r"|primary|secondary|final)[ ]){0,3}"
    r"(?:allerg(?:y|ies)(?:[ ](?:list|and[ ](?:intolerances|reactions|adverse[ ]reactions)))?"
    r"|intolerances|adverse[ ]reactions|medications?(?:[ ]list)|medications|medicines|meds"
    r"|prescriptions|drugs|supplements|vitamins|problems?[ ]list|problems|diagnoses|conditions"
    r"|comorbidities|(?:(?:past|family|social|surgical|medical|obstetric|psychiatric|medication)[ ]"
    r"){1,3}(?:history|hx)|(?:[a-z]+[ ]){0,2}history|pmh|psh|fh|sh|hpi|ros"
    r"|history[ ]of[ ]present[ ]illness"
    r"|review[ ]of[ ]systems|physical[ ]exam(?:ination)?|vital[ ]signs|vitals|labs|lab(?:oratory)?"
    r"[ ](?:results|data|tests)|immuni[sz]ations|vaccin(?:es|ations)|procedures|surgeries"
    r"|operations|hospitali[sz]ations|chief[ ]complaint|hospital[ ]course|care[ ]team|insurance"
    r"|demographics|emergency[ ]contacts?|appointments|symptoms|complaints|risk[ ]factors|habits"
    r"|implants|devices|imaging|studies|subjective|objective|assessment(?:[ ]and[ ]plan)?"
    r"|(?:[a-z]+[ ]){1,2}(?:information|details)|alergias|medicamentos|medicación|medicacion"
    r"|antecedentes(?:[ ]\w+)?|diagnósticos|diagnosticos|vacunas|tratamiento"
    r"|allergien|medikamente|medikation|diagnosen|allergies[ ]connues|médicaments|antécédents)"
    r"(?:[ ]\([^)]*\))?[ ]*:?",
    re.I,
)
_ORDER = re.compile(
    r"(?:please[ ])?(?:continu\w+|keep|start\w*|stop\w*|begin\w*|avoid\w*|hold\w*|chang\w+|new"
    r"|resum\w+|tak\w+|held|discontinu\w+|do[ ]not|don['’]?t|no[ ]longer|not)"
    r"(?:[ ](?:to|tak\w+|using|use|these|this|the|your|any|all|of|for|now|when|at|home))*"
    r"(?:[ ](?:medi\w+|drugs?|pills?|tablets?|prescriptions?|list))?[ ]*:?"
    r"|(?:medi\w+|drugs?)[ ](?:to|you|not|that)[ ][\w ]{1,30}:?",
    re.I,
)
#: The words that head columns, and the words that may join two of them.
_COLUMN_WORDS = """
test tests analyte component result results value values unit units flag flags ref ref.
reference range ranges normal interval limit limits date dates time status dose dosage
strength route frequency freq freq. sig instruction instructions direction directions
reaction reactions severity allergen substance drug medication medications medicine name
code icd onset comment comments change changes note notes provider prescriber quantity qty
refills indication reason type description site lot manufacturer maker vaccine specimen
method collected reported performed given relation relationship relative family member
illness age condition problem problems diagnosis procedure start started end stop stopped
last next previous prior current lab mnemonic observation measurement exam finding findings
yes no no. day visit am pm morning noon evening bedtime high low abnormal specialty phone
location address id number # antibiotic organism mic interpretation parameter plan series
due
"""
_HEADS = frozenset(_COLUMN_WORDS.split())
_BETWEEN_WORDS = "of and the & / - by for ordered ordering taken level your"
_JOINING = frozenset(_BETWEEN_WORDS.split())


@lru_cache(maxsize=20_000)
def is_value(text: str) -> bool:
    """Return whether a cell contains only a result, unit, flag, range or date."""
    return _VALUE.fullmatch(text) is not None


@lru_cache(maxsize=20_000)
def is_section(text: str) -> bool:
    """Return whether the whole text is the heading of a section of a record."""
    return _SECTION.fullmatch(text.strip(" ~*_-–—|")) is not None


@lru_cache(maxsize=20_000)
def is_order(text: str) -> bool:
    """Return whether the whole text tells what to do with the items below (`STOP TAKING`)."""
    return _ORDER.fullmatch(text.strip(" ~*_-–—|")) is not None


@lru_cache(maxsize=20_000)
def is_column_head(text: str) -> bool:
    """Return whether a text consists of the usual words of the heading of a column."""
    words = re.sub(r"\([^)]*\)|[:*~]", " ", text.lower()).replace("/", " / ").split()
    return (
        0 < len(words) <= 5
        and any(word in _HEADS for word in words)
        and all(word in _HEADS or word in _JOINING for word in words)
    )


def is_marker(text: str) -> bool:
    """Return whether the text is only a list marker."""
    return MARKER.fullmatch(text) is not None


def has_bullet(text: str) -> bool:
    """Return whether the text begins with a list marker."""
    return _BULLET.match(text) is not None


def number_of(text: str) -> int | None:
    """Return the number of a numbered item (`2. Gout`), or None."""
    match = _NUMBERED.match(text)
    return int(match[1]) if match else None


def is_amount(text: str) -> bool:
    """Return whether the text begins with an amount of a drug, as the rest of a sentence does."""
    return _AMOUNT.match(text) is not None


def has_label(text: str) -> bool:
    """Return whether the text begins with a label and a colon."""
    return _LABEL.match(text) is not None


def is_styled(text: str) -> bool:
    """Return whether the letters alone make a heading: all capitals, or a colon at the end."""
    if text.endswith(":"):
        return len(text) > 3
    letters = [char for char in text if char.isalpha()]
    return len(letters) > 3 and text.isupper() and not any(char.isdigit() for char in text)


def continues(text: str) -> bool:
    """Return whether the text can only be the rest of a sentence or name."""
    return bool(text) and (text[0].islower() or text[0] in "(,;&/") and not has_bullet(text)
