"""Labelled fields of a record's lines: `MRN: …`, `Date of Service: …`, `Name …`.

Labels are recognized despite a scanner's errors. The label of a cited date (the last visit, a
printing date) decides nothing. The functions are pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from enum import IntEnum
from functools import lru_cache
from itertools import chain

from pipeline.clinical.date_forms import DateOrder, date_at


class Weight(IntEnum):
    """How strongly a label shows that its date is the encounter's own date."""

    BARE = 1
    """`Date:` in a head."""
    SPECIMEN = 2
    """Collected, examined: the date of a report's encounter; in a note, a cited date."""
    EVENT = 3
    """An arrival, an operation: in a head the encounter's own date, elsewhere a cited date."""
    SERVICE = 4
    """The date of service; decides wherever it opens a line."""
    ENCOUNTER = 5
    """The label of the encounter itself: two documents with the same date and time belong
    together."""


def _labels(text: str) -> list[str]:
    return [label.strip() for label in text.split(",")]


_SERVICE: dict[str, Weight] = {
    **dict.fromkeys(
        _labels(
            "encounter, encounter date, encounter time, encounter date/time, date of encounter"
        ),
        Weight.ENCOUNTER,
    ),
    **dict.fromkeys(
        _labels(
            "date of service, dos, service date, service date/time, date/time of service,"
            "visit date, date of visit, visit date/time, date/time of visit, date seen"
        ),
        Weight.SERVICE,
    ),
    **dict.fromkeys(
        _labels(
            "session date, appointment date, arrival, arrival date, arrived, ed arrival,"
            "arrival date/time, date of arrival, procedure date, date of procedure,"
            "date of operation, operation date, surgery date, date of surgery,"
            "date of consultation, consultation date, consult date, date of evaluation,"
            "evaluation date, date of contact, date administered"
        ),
        Weight.EVENT,
    ),
    **dict.fromkeys(
        _labels(
            "collected, date collected, collection date, collected on, collected date,"
            "collection date/time, date/time collected, specimen collected, collection time, drawn,"
            "date drawn, draw date, exam date, date of exam, examination date, exam date/time,"
            "date of examination, study date, date of study, date performed, performed on,"
            "scan date, biopsy date"
        ),
        Weight.SPECIMEN,
    ),
    **dict.fromkeys(_labels("date, visit, date/time"), Weight.BARE),
}
_ROLES: dict[str, list[str]] = {
    "admitted": _labels(
        "admission date, date of admission, admit date, admitted, admitted on,"
        "admission date/time, admission"
    ),
    "discharged": _labels(
        "discharge date, date of discharge, discharged, discharged on, disch date,"
        "discharge date/time"
    ),
    "born": _labels("dob, date of birth, birth date, birthdate, d.o.b., d.o.b, born"),
    "number": _labels(
        "mrn, medical record number, medical record no., medical record no, medical record #,"
        "med rec no, patient id, chart no., chart no, chart number, patient number, patient no.,"
        "hospital number, unit number, clinic number, pid, mr #, mrn #"
    ),
    "name": _labels("patient, patient name, name, name of patient, patient's name"),
    "facility": _labels(
        "facility, facility name, hospital, clinic name, service location,"
        "location of service, performing facility, performing laboratory, performing lab"
    ),
    "clinician": _labels(
        "provider, attending, attending physician, attending provider, physician, clinician,"
        "seen by, author, surgeon, radiologist, pathologist, therapist, consultant,"
        "consulting physician, endoscopist, rendering provider, read by, primary provider,"
        "examiner, ordering provider, ordering physician, ordered by, requested by, performed by"
    ),
    "other": _labels(
        "sex, gender, age, accession, acuity, allergies, referring, referred by,"
        "referring physician, client, specimen, specimen id, account, room, phone, tel, fax,"
        "insurance, pcp, status, race, reported, date reported, report date, received,"
        "date received, printed, print date, dictated, transcribed, signed, date of last visit,"
        "last visit, next visit, next appointment, follow-up date, records requested, sent,"
        "ordered, date ordered, order date, date of injury, date of onset, onset date,"
        "date of death, template, setting, code, unit, bed, payer, language, arrival time,"
        "discharge time, status date, date given, effective date, date of last dose, lmp, edd,"
        "title, department, service, csn, visit number, encounter number, account number"
    ),
}
_FOLD = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "5": "s", "8": "b"})


def _fold(text: str) -> str:
    return text.casefold().translate(_FOLD) if text.isascii() else _fold_wide(text)


def _fold_wide(text: str) -> str:
    """Fold character by character, so that offsets stay valid in the line."""
    return "".join((c.casefold() if len(c.casefold()) == 1 else c).translate(_FOLD) for c in text)


_ROLE: dict[str, str] = {
    **{_fold(label): "date" for label in _SERVICE},
    **{_fold(label): role for role, labels in _ROLES.items() for label in labels},
}
_OTHERS = frozenset(
    _fold(word)
    for word in _labels(
        "last, next, previous, prev, prior, former, earlier, initial, first, mother, mother's,"
        "father, father's, spouse, infant, baby, child, newborn, contact, insured, guarantor,"
        "subscriber, guardian, maiden, middle, nurse, drug, medication, test, vaccine, product,"
        "file, user, physician, doctor"
    )
)
"""After one of these words, a label belongs to another visit, person or thing."""
_PLAIN = {_fold(label): label for label in [*_SERVICE, *chain(*_ROLES.values())]}
_LABEL = re.compile(
    r"(?<![a-z0-9'-])(?P<label>"
    + "|".join(re.escape(label) for label in sorted(_ROLE, key=len, reverse=True))
    + r")(?![a-z0-9])(?P<mark>\s*[:;]|\s*#:?|\.?\s+)"
)
_COLON = re.compile(r"(?:^|(?<=\s))(?P<label>[A-Za-z0-9][A-Za-z0-9 ./'|-]{2,28}?)\s?[:;](?=\s|$)")
_GAP = re.compile(r"\s{3,}|\t|\s\|\s")
_PARTICLES = frozenset(_labels("de, la, del, da, di, van, von, der, den, bin, al, y"))
_PERSON = re.compile(r"[A-Z][\w'’-]+,\s?[A-Z][\w'’-]*")
_NUMBER = re.compile(r"[#:\s]*([A-Za-z]{0,4}-?\d[\w/-]*)")


@dataclass(frozen=True)
class Field:
    """A labelled value of a head."""

    role: str
    label: str
    text: str = field(repr=False)
    day: date | None = None
    time: str = ""
    weight: Weight = Weight.BARE
    opens: bool = False
    """The label is the first word of the line."""


def fields_of(line: str, order: DateOrder | None = None) -> list[Field]:
    """Return the labelled values of a line, in order; `order` is the order of day and month."""
    folded = _fold(line)
    marks: list[tuple[int, int, str, str, bool]] = []
    for m in _LABEL.finditer(folded):
        colon = m["mark"].strip(" .\t") != ""
        if not colon and not _colonless(line, m):
            continue
        role = "other" if _of_another(folded[: m.start()]) else _ROLE[m["label"]]
        marks.append((m.start(), m.end(), m["label"], role, colon))
    for m in _COLON.finditer(line):
        label, words = _mended(_fold(m["label"].strip()))
        begin = [w.start() for w in re.finditer(r"\S+", m["label"])][-words] + m.start()
        over = [mark for mark in marks if mark[0] < m.end() and begin < mark[1]]
        if over and (label not in _ROLE or any(mark[3] != "other" for mark in over)):
            continue
        marks = [mark for mark in marks if mark not in over]
        marks.append((begin, m.end(), label, _ROLE.get(label, "other"), True))
    marks.sort()
    found = []
    for index, (start, end, label, role, _) in enumerate(marks):
        stop = marks[index + 1][0] if index + 1 < len(marks) else len(line)
        begin = end + len(line[end:stop]) - len(line[end:stop].lstrip())
        gap = _GAP.search(line, begin, stop)
        value = line[begin : gap.start() if gap else stop]
        made = _field(role, _PLAIN.get(label, label), value, order)
        if made is not None:
            found.append(replace(made, opens=not line[:start].strip()))
    return found


@lru_cache(maxsize=4096)
def _mended(words: str) -> tuple[str, int]:
    """Return the known label that a scanner may have printed as the last of `words`.

    The number counts the words of the label. Text without a known label is returned unchanged, with
    its number of words.
    """
    tail = words.split()[-4:]
    for at in range(len(tail)):
        part = " ".join(tail[at:])
        close = get_close_matches(part, _ROLE, n=1, cutoff=0.86) if len(part) > 4 else []
        if close:
            cited = at > 0 and tail[at - 1] in _OTHERS
            return ("" if cited else close[0]), len(tail) - at
    return words, len(words.split())


def _of_another(before: str) -> bool:
    """Return whether the word before a label assigns the label to another visit or person."""
    words = before.split()
    return bool(words) and words[-1].rstrip(".,:") in _OTHERS


def _field(role: str, label: str, value: str, order: DateOrder | None) -> Field | None:
    text = " ".join(value.split()).strip(" ,;|")
    if role in ("date", "admitted", "discharged", "born"):
        printed = date_at(value, past=role == "born", order=order)
        if printed is None:
            return Field("other", label, text)
        weight = _SERVICE.get(label, Weight.BARE)
        return Field(role, label, text, printed.day, printed.time, weight)
    if role == "number":
        m = _NUMBER.match(value)
        return Field(role, label, m[1]) if m else None
    if role == "name":
        text = re.split(r"\s\(|\s\d|\s(?:age|sex|client|page)\b", text, flags=re.I)[0].strip(" ,")
        whole = not text.endswith(".") or re.search(r"\b[A-Z]\.$", text) is not None
        return Field(role, label, text) if whole and _is_person(text) else None
    if role in ("facility", "clinician"):
        return Field(role, label, text) if 2 < len(text) <= 90 and text[0].isalpha() else None
    return Field("other", label, text)


def _is_person(text: str) -> bool:
    """Return whether a value looks like a person's name: two to six capitalized words."""
    words = re.findall(r"[^\W\d_][\w'’.-]*", text)
    if not 2 <= len(words) <= 6 or len(text) > 60 or re.search(r"\d", text[:1]):
        return False
    return all(word[0].isupper() or word.casefold() in _PARTICLES for word in words)


def _colonless(line: str, m: re.Match[str]) -> bool:
    """Return whether a label without a colon counts: its value must follow in the right form."""
    label, role = m["label"], _ROLE[m["label"]]
    if role in ("date", "admitted", "discharged", "born"):
        if role in ("admitted", "discharged") and "date" not in label:
            return False
        plain = " " in label or label in (_fold("dob"), _fold("dos"), _fold("d.o.b."))
        return plain and date_at(line, m.end()) is not None
    if role == "number":
        return bool(_NUMBER.match(line, m.end())) and line[m.start()].isupper()
    if role == "name":
        return m.start() == len(line) - len(line.lstrip()) and bool(_PERSON.match(line, m.end()))
    if role in ("clinician", "other"):
        return line[m.start()].isupper() and (" " in label or label == _fold("client"))
    return False
