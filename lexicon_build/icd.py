"""Derive the terms that people write from the titles of ICD-10-CM.

A title is made for coding: `Fracture of unspecified part of neck of right femur, initial encounter
for closed fracture`. People write `femur fracture`. The rules drop the words for coding, cut long
titles and turn `X of Y` into `Y X`. They drop a title without such a core.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from lexicon_build.wheels import Diagnosis

_MOST_WORDS = 5
_NO_PATIENT = re.compile(r"[V-Z]|T(?:3[6-9]|4\d|50|51|5[2-9]|6[0-5])|U(?!07)|O(?:0[89]|Z)|P0[0-4]")
"""Codes of circumstances, external causes, poisonings by a named substance, and the mother."""
_BY_DRUG = re.compile(r"F1|T")
"""Codes that name a drug because the drug does harm."""
_PARENS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_CODING = re.compile(
    r"(?:.*\b(?:unspecified|not specified|encounter|sequelae?|nec|nos|elsewhere|so stated"
    r"|episode|trimester|fetus \d|classified|undetermined|stage|site|sites|initial|subsequent"
    r"|part|parts|level|degree|type|uncomplicated|healing|nonunion|malunion|not applicable"
    r"|intractable|status)\b.*"
    r"|(?:right|left|bilateral)\b.*|without .*|with .*|other|others|any|open|closed|acquired)"
)
_OPENING = re.compile(
    r"(?:unspecified|certain|nonspecific|single|multiple|simple|(?:late )?effects? of"
    r"|(?:initial|subsequent) encounter for)\s+"
)
_LEFTOVER = re.compile(r"\b(?:unspecified (?:parts? of (?:the )?)?)(?=[a-z])|\s+(?:nos|nec)$")
"""Words of a title that name no part and no kind of the disease."""
_SIDE = re.compile(r"\b(?:right|left|bilateral|unilateral) ")
"""Sides, which a mention takes from the text before the term."""
_USELESS = re.compile(
    r"(?:other|encounter|person|problems? related|family history|presence of|absence of|carrier"
    r"|contact with|exposure|underdosing|adverse effect|poisoning|toxic effect|findings? of|need"
    r"|abnormal (?:findings?|levels?|results?)|elevated levels?|acquired absence|counseling"
    r"|complications?|late effects?|observation|screening|conditions?|diseases? of|disorders? of"
    r"|symptoms?|injury of|injuries|mental and|personal|code|use additional|finding|sequelae?"
    r"|external|mechanical|breakdown|displacement|leakage|superficial|newborn affected"
    r"|maternal care|supervision|any|specified|presence|level|newborn|outcome|place|retained"
    r"|abnormality|abnormalities|change|changes|deficiency of other|nonspecific|misadventure)\b"
)
_CUT = re.compile(
    r"\s+(?:with|without|due to|following|during|complicating|affecting|associated with|as the"
    r"|in (?:diseases?|conditions?|other|remission|the|pregnancy|newborn|childbirth)|for|by|from"
    r"|resulting|caused by|secondary to|requiring|at|involving|not|after|specific to|related to"
    r"|includ\w+|except|between|other than|that|which|on|into|through|under|predominantly)\b.*"
)
_VAGUE = re.compile(
    r"\b(?:unspecified|specified|other|others|certain|any|elsewhere|classified|same|multiple sites"
    r"|part|parts|nec|nos|various|similar|related|etc|eg|ie|site|sites|code|type of)\b"
)
_BOTH = re.compile(r"([a-z-]+) (?:and|or) ([a-z-]+)")
_OF = re.compile(r"([a-z-]+(?: [a-z-]+)?) of (?:the )?([a-z-]+(?: [a-z-]+)?)")
_MALIGNANT = re.compile(r"malignant neoplasms? of (?:the )?([a-z-]+(?: [a-z-]+)?)")
_ADJECTIVE = re.compile(r"[a-z-]+(?:al|ic|ar|ous|ed|ive|ary|ory|ute|ile|oid)")
_SITE = re.compile(
    r"(?:(?:malignant|benign) neoplasm|carcinoma in situ|laceration|contusion|fracture|abscess"
    r"|cellulitis|carbuncle|blister|abrasion|sprain|dislocation|burn|frostbite|atherosclerosis"
    r"|unspecified injury|superficial foreign body|crushing injury|congenital malformation|embolism"
    r"|disorder|disease|malformation|anomaly|deformity|absence|necrosis|rupture|occlusion|neoplasm)"
    r" of (?:[a-z]+ )*?([a-z]+)"
)
_COMPLAINTS = frozenset(
    ("pain", "stiffness", "tenderness", "swelling", "cramp", "cramps", "difficulty", "inability")
)
"""Heads of terms that name a complaint, although a chapter of diseases holds the term."""
_BEHIND_HEAD = re.compile(r" (?:of|in|on|to) ")
_GRADE = re.compile(r"(?: (?:[a-z]|[ivx]{1,4}|\d{1,2}))+$")
_TERM = re.compile(r"[a-z][a-z'’-]*(?: (?:[a-z][a-z'’-]*|\d{1,2}))*(?:-19)?")


def terms(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """Yield category and term for each name of a code."""
    if _NO_PATIENT.match(diagnosis.code):
        return
    category = "symptom" if diagnosis.code.startswith("R") else "condition"
    for name in diagnosis.names:
        for term in _of_title(name):
            if _TERM.fullmatch(term) and len(term.split()) <= _MOST_WORDS and len(term) > 3:
                yield "symptom" if head_of(term) in _COMPLAINTS else category, term


def words(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the words of a disease's titles; the body makes the substances among these words."""
    if not _NO_PATIENT.match(diagnosis.code) and not _BY_DRUG.match(diagnosis.code):
        for name in diagnosis.names:
            yield from re.findall(r"[a-z-]+", name.lower())


def sites(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the words for a part of the body that the titles of a code name."""
    if not _NO_PATIENT.match(diagnosis.code):
        for name in diagnosis.names:
            head = _PARENS.sub(" ", name.lower()).split(",")[0]
            found = _SITE.fullmatch(" ".join(_CUT.sub("", head).split()))
            if found:
                yield found[1]


def head_of(term: str) -> str:
    """Return the word that says what a term names: `fracture` in `fracture of femur`."""
    return _GRADE.sub("", _BEHIND_HEAD.split(term, maxsplit=1)[0]).rpartition(" ")[2]


def _of_title(title: str) -> Iterator[str]:
    letters = unicodedata.normalize("NFD", title.lower()).replace("’", "'")
    plain = "".join(c for c in letters if not unicodedata.combining(c))
    plain = " ".join(_PARENS.sub(" ", plain).split())
    head, *rest = (part.strip() for part in plain.split(","))
    kept = [part for part in rest if part and not _CODING.fullmatch(part)]
    core = _core(head)
    if not core:
        return
    yield from _spellings(core)
    if len(kept) == 1 and len(rest) == 1 and _ADJECTIVE.fullmatch(kept[0]):
        yield f"{kept[0]} {core}"


def _core(head: str) -> str:
    """Return the disease that a title names, or "" for a class of leftovers."""
    core = head
    while (shorter := _OPENING.sub("", core, count=1)) != core and _OPENING.match(core):
        core = shorter
    core = _CUT.sub("", _LEFTOVER.sub("", core)).strip(" .;:-")
    core = _SIDE.sub("", core)
    return "" if _USELESS.match(core) or _VAGUE.search(core) else core


def _spellings(core: str) -> Iterator[str]:
    """Yield a term with the other orders in which people write the term."""
    malignant = _MALIGNANT.fullmatch(core)
    if malignant:
        place = malignant[1]
        yield from (f"{place} cancer", f"cancer of {place}", f"{place} carcinoma")
        yield f"carcinoma of {place}"
        return
    both = _BOTH.fullmatch(core)
    if both:
        yield from (both[1], both[2])
        return
    if " and " in core or " or " in core or "/" in core:
        return
    yield core
    of = _OF.fullmatch(core)
    if of and " of " not in of[2]:
        yield f"{of[2]} {of[1]}"
