"""Lines of their own at the head of a document: letterheads, titles, addresses, page numbers.

A line is judged by its words and its form. `document_heads` and `discovery` decide whether the line
begins an encounter. The functions are pure.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal

from pipeline.providers.schemas import EncounterType

Kind = EncounterType | Literal["note"]
"""The kind of document that a title names; a `note` fits any visit or stay."""

_FACILITY_WORD = re.compile(
    r"(?i)\b(?:hospitals?|clinics?|clinica|clínica|medical|cent(?:er|re)|laborator(?:y|ies)|labs|"
    r"diagnostics|imaging|radiology|practice|medicine|associates|health(?:care)?|institute|"
    r"physicians|pa?ediatrics|nephrology|cardiology|orthop(?:a?e)dics|oncology|dermatology|"
    r"neurology|gastroenterology|rehabilitation|urgent care|surgery|infirmary|hospice|pharmacy|"
    r"memorial|family care|endoscopy|emergency department|partners|specialists)\b"
)
_NOT_FACILITY = re.compile(
    r"(?i)\b(?:notes?|visit|reports?|records?|summary|list|history|exam(?:ination)?|stud(?:y|ies)|"
    r"tests?|testing|administration|findings|data|results?|values?|panel|consultation|consult|"
    r"evaluation|log|plan|reviewed|reconciliation|instructions|discharge|current|home|"
    r"administered|information|number|copy|phone|tel|fax|referral|past|"
    r"course|maintenance|decision|making|problems?|diagnos[ei]s|orders?|education|director|"
    r"device|insurance|equipment|family history|allergies|medications?|questionnaire|form|consent|"
    r"policy|therapy for)\b"
)
_SUBUNIT = re.compile(
    r"(?i)^(?:department|division|section|office|unit|ward|service)\b|"
    r"\b(?:unit|service|floor),? \d|\b(?:unit|service|ward)\b.*\d"
)
_ADDRESS = re.compile(
    r"(?i)^\d+\s+\w+.*\b(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|court|ct|"
    r"way|terrace|place|square|highway|suite|parkway)\b|\bCLIA\b|\b(?:tel|phone|fax)\b.{0,3}\d|"
    r"\b[A-Z]{2}\s+\d{5}\b"
)
_PAGE = re.compile(
    r"(?i)\bpag[ec]:?\s*[\doil]+(?:\s*(?:[o0]?[ft]|/)\s*[\doil]+)?\W*$|^\W*(?:page\s*)?\d+\s*(?:of\s*\d+)?\W*$"
)

_TITLES: tuple[tuple[Kind, str], ...] = (
    (
        "telehealth",
        (
            r"tele(?:health|medicine)|(?:video|virtual) visit|"
            r"telephone (?:visit|encounter)"
        ),
    ),
    ("pathology", r"(?:pathology|cytology|biopsy|histology) (?:report|consultation)"),
    (
        "laboratory",
        (
            r"lab(?:oratory)? (?:report|test report|results? report)|point of care testing|"
            r"microbiology report|(?:chemistry|hematology) report"
        ),
    ),
    (
        "imaging",
        (
            r"(?:radiology|imaging|x-?ray|radiograph(?:y|ic)?|ct|mri|ultrasound|sonogra\w+|"
            r"mammogra\w+|diagnostic imaging|echocardiogra\w+|nuclear medicine|dexa|scan) "
            r"(?:report|exam(?:ination)? report|stud(?:y|ies))"
        ),
    ),
    (
        "immunization",
        (r"(?:immunization|vaccin\w+) (?:record|visit|clinic|administration record|encounter)"),
    ),
    (
        "inpatient",
        (
            r"discharge summary|inpatient|hospital (?:admission|stay|progress|course record)|"
            r"admission (?:note|history|h&p|summary)|transfer summary|hospital day"
        ),
    ),
    (
        "emergency",
        (
            r"emergency (?:department|room|visit|medicine|note)|"
            r"\bed (?:visit|note|provider|physician|record)|urgent care"
        ),
    ),
    (
        "procedure",
        (
            r"(?:operative|operation|procedure|endoscopy|colonoscopy|surgical) "
            r"(?:report|note|record)"
        ),
    ),
    ("consultation", r"(?<!reason for )\bconsult(?:ation)?\b"),
    (
        "outpatient",
        (
            r"physical therapy|occupational therapy|speech therapy|"
            r"therapy (?:note|visit|evaluation)|rehabilitation (?:note|visit|evaluation)|"
            r"outpatient (?:visit|note|record)|"
            r"dialysis (?:note|treatment|record)|infusion (?:visit|note)"
        ),
    ),
    (
        "office_visit",
        (
            r"office (?:visit|note)|clinic (?:visit|note)|follow[- ]?up (?:visit|note)|"
            r"new patient (?:visit|note)|annual (?:physical|exam|visit)|wellness (?:visit|exam)|"
            r"well[- ]child"
        ),
    ),
    (
        "note",
        (
            r"(?:progress|soap|physician|nursing|intake|chart|clinical|provider|triage"
            r"|reconciliation|"
            r"pharmacy|visit|encounter|social work|nutrition|dietitian|case management)\b.{0,20}"
            r"\b(?:notes?|summary|flowsheet)|history (?:and|&) physical|\bh\s?&\s?p\b"
        ),
    ),
)
_VOCABULARY = re.findall(
    r"\w+",
    "laboratory radiology imaging pathology emergency department discharge summary operative "
    "procedure consultation inpatient outpatient progress visit office report clinic telehealth "
    "immunization surgical",
)
_PLACES = re.findall(
    r"\w+",
    "hospital clinic medical center laboratory diagnostics imaging radiology medicine associates "
    "practice institute physicians memorial rehabilitation",
)
_WHOLE_WORDS = frozenset(["patient", "patients", "images", "vision", "reports", "visits"])
_TITLE = tuple((kind, re.compile(rf"(?i)\b(?:{words})")) for kind, words in _TITLES)


def is_page_line(line: str) -> bool:
    """Return whether a line carries the page's number, as running headers and footers do."""
    return len(line) < 140 and bool(_PAGE.search(line.strip()))


def is_address(line: str) -> bool:
    """Return whether a line belongs to a letterhead below its name."""
    line = line.strip()
    return len(line) < 90 and bool(_ADDRESS.search(line) or _SUBUNIT.search(line))


def names_place(text: str) -> bool:
    """Return whether a name is a facility's name, not a person's."""
    return bool(_FACILITY_WORD.search(text))


def facility_of(line: str) -> str | None:
    """Return the facility that a letterhead line names."""
    line = _bare(line)
    name, dash, rest = line, "", ""
    if (m := re.search(r"\s[-–—|]\s", line)) is not None:
        name, dash, rest = line[: m.start()], m[0], line[m.end() :]
    if dash and title_of(rest) and not re.search(r"(?i)department$", rest):
        line = name
    if not 4 < len(line) <= 80 or ":" in line or line.endswith((".", ",", ";")):
        return None
    if sum(c.isdigit() for c in line) > 2 or len(line.split()) < 2:
        return None
    words = [w for w in re.findall(r"[^\W\d_][\w'’.]*", line) if len(w) > 3]
    if not words or any(w[0].islower() for w in words):
        return None
    if _NOT_FACILITY.search(line) or _SUBUNIT.search(line) or not _names_facility(line):
        return None
    return line


def _names_facility(line: str) -> bool:
    if _FACILITY_WORD.search(line):
        return True
    words = re.findall(r"[^\W\d_]{5,}", _repaired(line))
    return len(line) <= 60 and any(_is_place(word.casefold()) for word in words)


@lru_cache(maxsize=4096)
def _is_place(word: str) -> bool:
    return bool(get_close_matches(word, _PLACES, 1, 0.8))


def running_facility(line: str) -> str | None:
    """Return the facility at the beginning of a running header, before the patient's name."""
    head = re.split(r"\s+(?:MRN|Page|DOB)\b|:", line.strip(), maxsplit=1)[0]
    words = [m for m in _FACILITY_WORD.finditer(head) if m.start() > 0]
    if not words or len(head) == len(line.strip()):
        return None
    return facility_of(head[: words[-1].end()])


def title_of(line: str) -> Kind | None:
    """Return the kind of document that a title line names."""
    line = _repaired(_bare(line))
    if not 4 < len(line) <= 80 or line.endswith((".", ",")):
        return None
    if re.match(r"(?i)(?:reason|indication|referral|plan|see|history of)\b", line):
        return None
    words = [w for w in re.findall(r"[^\W\d_][\w'’&]*", line) if len(w) > 3]
    if not words or any(w[0].islower() for w in words):
        return None
    for kind, pattern in _TITLE:
        if pattern.search(line):
            return kind
    if len(words) <= 5 and len(line) <= 50 and ":" not in line:
        mended = re.sub(r"[^\W\d_]{5,}", lambda m: _nearest(m[0]), line)
        return title_of(mended) if mended != line else None
    return None


@lru_cache(maxsize=4096)
def _nearest(word: str) -> str:
    """Return the title word that a scanner may have misread as `word`."""
    if word.casefold() in _WHOLE_WORDS:
        return word
    close = get_close_matches(word.casefold(), _VOCABULARY, n=1, cutoff=0.75)
    return close[0].title() if close else word


def _bare(line: str) -> str:
    """Remove rules, specks and stars around a line."""
    line = re.sub(r"(?:\s+[^\w\s)]{1,3})+\s*$", "", line.strip())
    return line.lstrip("*_=|~.,;:'`-–—•· ").rstrip("*_=|~ ")


def _repaired(line: str) -> str:
    """Replace a scanner's digits inside words, for the comparison only."""

    def word(m: re.Match[str]) -> str:
        text = m[0]
        if sum(c.isalpha() for c in text) < 3:
            return text
        upper = sum(c.isupper() for c in text) > 1
        swap = {"0": "O" if upper else "o", "1": "I" if upper else "l", "|": "I", "5": "S"}
        return "".join(swap.get(c, c) for c in text)

    return re.sub(r"[\w|]+", word, re.sub(r"(?<=[A-Za-z])[.|_,](?=[A-Za-z])", "", line))
