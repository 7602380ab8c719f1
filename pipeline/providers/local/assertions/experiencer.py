"""Decide whether a statement is about the patient or about another person.

Any person beside the patient counts: relatives, partners, donors, contacts. A person who only
reports, brings or helps does not change the subject. The subject lasts until the patient is named.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pipeline.providers.local.names.word_lists import words
from pipeline.providers.schemas import Experiencer

_OWNER = (
    r"(?:his|her|their|my|our|the (?:patient|pt|child|boy|girl|infant)['’]s|patient['’]s|pt['’]s)"
)
_DETERMINER = (
    rf"(?:{_OWNER}|the|an?|this|that|one|two|three|both|another|several|other|some|many|all)"
)
_FEMALE = (
    r"(?:(?:great[- ])?grand(?:mother|ma)|(?:step|foster[- ]|god)?mother|mom|mum|mommy|mama"
    r"|(?:half[- ]|step-?|twin )?sister|aunt|niece|wife|girlfriend"
    r"|(?:step-?|grand)?daughter|fiancée)"
    r"(?:s|[- ]in[- ]law)?"
)
_MALE = (
    r"(?:(?:great[- ])?grand(?:father|pa)|(?:step|foster[- ]|god)?father|dad|daddy|papa"
    r"|(?:half[- ]|step-?|twin )?brother|uncle|nephew|husband|boyfriend|(?:step-?|grand)?son)"
    r"(?:s|[- ]in[- ]law)?"
)
_OTHERS = (
    r"(?:no one in (?:the|his|her|their) (?:immediate )?family"
    r"|(?:great[- ])?(?:step|grand)?parents?|siblings?|cousins?|relatives?|family members?"
    r"|in-laws"
    r"|spouses?|partners?|significant other|fianc[eé]e?"
    r"|roommates?|flatmates?|housemates?|bunkmates?"
    r"|cellmates?|room-mates?|coworkers?|co-workers?|colleagues?|classmates?|schoolmates?"
    r"|tenants?|lodgers?|supervisors?|managers?|coach(?:es)?|clients?|landlady|penpals?"
    r"|teammates?|playmates?|neighbou?rs?|friends?|acquaintances?|donors?(?! (?:site|skin|area"
    r"|lymph))"
    r"|caregivers?|caretakers?|carers?|babysitters?|baby-sitters?|nann(?:y|ies)|teachers?"
    r"|landlords?"
    r"|boss|employer|employees?|housekeepers?|surrogate|guardians?|bystanders?|passengers?"
    r"|strangers?"
    r"|(?:the|this|single|live|intrauterine|male|female) f(?:o?e)tus"
    r"|f(?:o?e)tus(?= (?:with|has|had|is|was)\b)"
    r"|household members?|someone|somebody|another (?:person|patient|child|student|resident)"
    r"|other (?:people|patients|persons|children|students|residents|passengers|family)"
    r"|(?:close|household|sick|sexual|known|family|school|work|casual) contacts?"
    r"|(?:the|a|his|her|their|source) contact(?= (?:has|had|is|was|tested|with|who))"
    r"|source (?:patient|person|individual)|index (?:case|patient)|co-?habitants?|lovers?"
    r"|(?:sexual|domestic|life|romantic) partners?|ex[- ](?:wife|husband|partner))"
)
_OWNED = (
    r"(?:child(?:ren)?|kids?|bab(?:y|ies)|infants?|newborns?|toddlers?|twins?|teenagers?|fetus"
    r"|dogs?|cats?|pets?|pupp(?:y|ies)|kittens?|family|team)"
)
"""Persons and animals that differ from the patient only beside a possessive (`her child`)."""
_KIND = (
    r"(?:(?:maternal|paternal|older|younger|elder|eldest|oldest|youngest|twin|half|late|deceased"
    r"|biological|adoptive|adopted|foster|living|deceased-donor|ex|former|current|new|new-born"
    r"|identical|full|first|second|estranged|elderly|only|kidney|liver|organ|heart|lung|blood|bone"
    r"|marrow|stem|cell|egg|sperm|male|female|close|teenage|pregnant|unvaccinated|little|big)[- ])*"
)
_UNNAMED = (
    rf"{_OWNER} (?:[a-z-]+ )?(?!(?:mother|father|doctor|physician|provider|pcp|nurse)\b)[a-z-]+"
    r"(?= (?:(?:has|have|had|was|is|were|been|recently|also|just|later) )*"
    r"(?:diagnosed with|died (?:of|from)|passed away|contracted|caught|came down with)\b)"
)
"""Any noun whose owner is the patient and that falls ill: `his tenant was diagnosed with`."""
_PERSON = re.compile(
    rf"(?<![\w-])(?:(?P<unnamed>{_UNNAMED})"
    rf"|(?P<owner>{_OWNER})(?: (?!{_OTHERS}\b)[a-z-]+){{0,2}}? (?P<owned>{_OWNED})"
    rf"|(?:{_DETERMINER} (?:(?!{_OWNER}\b|who\b|in\b|of\b|to\b|with\b|for\b|from\b|by\b|and\b"
    rf"|has\b|is\b)"
    rf"[a-z-]+ )?)?{_KIND}"
    rf"(?:(?P<female>{_FEMALE})|(?P<male>{_MALE})|(?P<others>{_OTHERS})|(?P<side>maternal"
    rf"|paternal)))"
    r"(?![\w-])",
    re.I,
)
_PATIENT = re.compile(
    r"\b(?:patient|pt)\b(?!['’]s|[ ]is[ ]adopted)|\b(?P<pronoun>he|she|I)\b"
    r"|\b(?P<own>(?:his|her|their)[ ]own)\b"
    r"|(?:[,;]|\band|\bbut|\bwho)[ ]+(?:(?:now|also|he|she|today)[ ]+)*"
    r"(?P<verb>presents?|presented|presenting|complains?|complained|c/o|denies|denied|reports"
    r"|reported|endorses|endorsed|admits|himself|herself|admitted|here|brought|brings|states|stated"
    r"|says|said|noticed|gave|called|accompanied|is concerned|is worried)\b",
    re.I,
)
_ADVERB = (
    r"(?:also|both|all|now|just|then|first|later|never|who|(?!family)[a-z]+ly|and|each|either)"
)
_ACTS = (
    r"(?:reports?|reported|reporting|states?|stated|stating|says?|said|saying|notes?|noted|noting"
    r"|notic(?:e|es|ed|ing)|describ(?:e|es|ed|ing)|den(?:y|ies|ied|ying)|tells?|told|telling"
    r"|thinks?"
    r"|thought|thinking|feels?|felt|believ(?:e|es|ed|ing)|brings?|brought|bringing|calls?|called"
    r"|calling|gives?|gave|giving|administer(?:s|ed|ing)?|tried|tries|trying|helps?|helped|helping"
    r"|assist(?:s|ed|ing)?|provid(?:e|es|ed|ing)|confirm(?:s|ed|ing)?|endors(?:e|es|ed|ing)"
    r"|complain(?:s|ed|ing)?|indicat(?:e|es|ed|ing)|observ(?:e|es|ed|ing)|witness(?:es|ed|ing)?"
    r"|saw|sees|seen|found|finds|heard|hears|ask(?:s|ed|ing)?|request(?:s|ed|ing)?|want(?:s|ed"
    r"|ing)?"
    r"|wish(?:es|ed|ing)?|worr(?:y|ies|ied|ying)|concern(?:ed)?|concerns|mention(?:s|ed|ing)?"
    r"|recall(?:s|ed|ing)?|explain(?:s|ed|ing)?|claim(?:s|ed|ing)?|translat(?:es|ed|ing|or)"
    r"|interpret(?:s|ed|ing|er)|accompan(?:ies|ied|ying)|present(?!s? with)|here"
    r"|at (?:the )?bedside"
    r"|in (?:the )?room|on the phone|agree[sd]?|declin(?:es|ed)|refus(?:es|ed)|consent(?:s|ed)"
    r"|express(?:es|ed)|understands?|verbaliz(?:es|ed)|updated|informed|notified|contacted|advised"
    r"|instructed|educated|counsel(?:l?ed)?|aware|unsure|uncertain|manag(?:es|ed|ing)|monitor(?:s"
    r"|ed|ing)"
    r"|check(?:s|ed|ing)|picks?|picked|drove|drives|cares?|caring|feeds?|feeding|appl(?:ies|ied"
    r"|ying)"
    r"|suspect(?:s|ed)|prefer(?:s|red)|provides|supervis(?:es|ed)|suggest(?:s|ed)|describes"
    r"|(?:took|takes|rushed|lifted|woke) (?:him|her\b(?! [a-z]+ (?:daily|for|mg))|the (?:patient"
    r"|child))"
    r"|reportedly (?:stated|said))"
)
_ACTING = re.compile(
    r"(?:,? (?:\([^)]*\)|and (?:the )?(?:patient|pt)))?"
    rf"(?:,? {_ADVERB})*(?: (?:has|have|had|is|was|are|were|did|does|do|will|would|can|could)"
    rf"(?:n['’]t)?(?: not)?(?: been)?)?(?: {_ADVERB})*(?: (?:very|quite|also|been))* {_ACTS}\b",
    re.I,
)
_ACTING_APART = re.compile(rf",[^.;:]{{0,30}}?,? (?:who (?:is |was )?)?{_ACTS}\b", re.I)
_WHO_HAS = re.compile(
    r",? (?:who|whose|with)\b(?! (?:has |had |have |is |was |are |were |also |\w+ly )*"
    + _ACTS
    + ")",
    re.I,
)
_SAYING = re.compile(
    r"['’]s? (?:own )?(?:report|account|request|concerns?|home|house|name|phone|opinion|words?"
    r"|observation|understanding|wish(?:es)?|preference|number|description|day|advice|statement"
    r"|side)",
    re.I,
)
_OBJECT = re.compile(
    r"\b(?:with|by|from|to|per|for|of|about|via|through|at|like|than|and|or|both|is|was|as|became"
    r"|being|using"
    r"|sees?|saw|visit\w*|called|inform\w*|see|told|tell|has|have|had|lost|support\w*|help\w*|in"
    r"|on)"
    r"[ ]+(?:(?:an?|the)[ ]+)?$",
    re.I,
)
_IS_PATIENT = re.compile(
    r"(?:\b(?:patient|pt|man|woman|gentleman|lady|male|female)|^(?:he|she))[ ]?,[ ]*$"
    r"|(?:\byears?[ -]old|\by/?\.?o\.?|\byr[ -]old)[ ]+(?:[\w/-]+[ ]+){0,3}$",
    re.I,
)
"""Words that make the noun behind a description of the patient (`a 40-year-old teacher`)."""
_BEGINNING = re.compile(
    r"(?:^|[,;:.(\[/\n•*-]|\b(?:and|but|while|whereas|because|since|that|when|if|though"
    r"|although|also"
    r"|where|as|reports?|states?|says?|notes?|since|after|reported|stated|said))[ ]*$",
    re.I,
)
_RELATION = re.compile(
    r"(?:, (?:an?|the) (?:[a-z-]+ ){1,3}?(?=with\b|who\b|w/))?"
    rf",?(?: \([^)]*\))?(?:,? {_ADVERB})*[ ]?(?<=[ ])(?:with|w/|having|positive|infected"
    rf"|diagnosed|suffer(?:s"
    rf"|ing)"
    r"(?: from)?|sick|ill|hospitalized|being treated|recently|known to have"
    r"|(?:who|whose|that|which)\b)",
    re.I,
)
_FINITE = re.compile(
    rf"(?: (?:{_ADVERB}|\([^)]*\)))* (?:has|have|had|is|was|are|were|does|did|do|takes?|took"
    rf"|taking|tests?"
    r"|tested|died|dies|developed|develops|got|gets|contracted|caught|uses?|used|received|suffer"
    r"|suffers|suffered|underwent|came down|passed|carries|carried|started|stopped|passing"
    r"|lives with|became|recovered|deceased|d\.|on)\b",
    re.I,
)
_AFTER = re.compile(
    r"(?P<gap>[^.;:]{0,40}?)(?:\b(?:in|of|for|among|affecting|by)|(?P<sign>[-–:(]))[ ]*$", re.I
)
_CARE = re.compile(
    r"\b(?:death|loss|passing|care|caring|help|support|presence|request|birth)\b", re.I
)
_REACH = 60
_FALLS_ILL = re.compile(r"diagnosed with|died |passed away|contracted|caught|came down with")
_HAS_SIDE = re.compile(r"['’]s? side(?: of the family)? (?:has|had|have|with|is|was)\b", re.I)
_STAFF = re.compile(
    r"\b(?:the|an?|another|other|one|this|his|her|their|my|previous|former)[ ](?:[a-z-]+[ ])?"
    r"(?:nurse|aide|doctor|physician|surgeon|dentist|pharmacist|therapist|technician|provider"
    r"|sitter|student|pupil|resident|inmate|prisoner|driver|worker|employee|staff(?:[ ]member)?"
    r"|customer|visitor|volunteer|player|soldier)"
    r"(?:[ ](?:in|at|on|from|of)[ ](?:[\w-]+[ ]?){1,4}?)?"
    r"[ ](?:(?:who[ ])?(?:has|had)(?![ ](?:(?:also|just|already|now|since|been|not|no|any|[a-z]+ly)"
    r"[ ])*(?:[a-z]+(?:ed|en)|given|put|set|cut|made|told|found|sent|left|held|done|begun|seen"
    r"|concerns?|questions?|not|no|an?[ ](?:plan|concern|question|discussion|suspicion))\b)"
    r"|tested[ ]positive[ ]for|(?:was|were|is)[ ](?:diagnosed[ ]with|positive[ ]for"
    r"|(?:sick|ill)[ ]with)|died[ ](?:of|from)|came[ ]down[ ]with|contracted|caught)\b",
    re.I,
)
"""A person who works with the patient or is near, and who is ill. The patient can be a nurse too,
so that a person must read the words."""
_PARTS = tuple(words("person_parts.txt"))
"""Parts of all words for persons. A text without these parts spares the large pattern."""
_RELATIVE = re.compile(
    r"\b(?:grand|great|mother|mom|mum|mama|father|dad|papa|parents?|sister|brother|siblings?|twin"
    r"|aunt|uncle|niece|nephew|cousins?|daughter|son|child|kid|bab(?:y|ies)|infant|newborn|toddler"
    r"|teenager|fetus|family|relatives?|maternal|paternal)",
    re.I,
)
_NO_BLOOD = re.compile(
    r"in-laws?\b|\b(?:step|foster|god|adopti)"
    r"|\b(?:wife|husband|spouse|partner|fianc|girlfriend|boyfriend|friend|donor|room-?mate"
    r"|flat-?mate|house-?mate)",
    re.I,
)


def person_kind(words: str) -> Experiencer:
    """Return `family` for a blood relative, `other` for any other person or an animal."""
    return "family" if _RELATIVE.search(words) and not _NO_BLOOD.search(words) else "other"


class _Event(NamedTuple):
    """A place in a sentence from which the statements are about a certain person."""

    start: int
    end: int
    person: Experiencer
    subject: bool
    """Whether the person is the subject of the words behind."""
    is_doubtful: bool = False
    """A pronoun can mean this person or the patient."""


def names_person(text: str) -> bool:
    """Return whether a text names another person, such as a relative."""
    low = text.lower()
    return any(part in low for part in _PARTS) and _PERSON.search(text) is not None


@lru_cache(maxsize=256)
def _events(text: str) -> tuple[_Event, ...]:
    found: list[_Event] = []
    low = text.lower()
    if not any(part in low for part in _PARTS) and not _FALLS_ILL.search(low):
        return ()
    persons = [(m, _is_subject(text, m)) for m in _PERSON.finditer(text)]
    spans = [(m.start(), m.end()) for m, _ in persons]
    current: re.Match[str] | None = None
    marks = [m for m in _PATIENT.finditer(text) if not any(a <= m.start() < b for a, b in spans)]
    for m in _STAFF.finditer(text):
        if not any(a < m.end() and m.start() < b for a, b in spans):
            found.append(_Event(m.start(), m.end(), "other", subject=True, is_doubtful=True))
    for m in sorted([*(p for p, _ in persons), *marks], key=lambda x: x.start()):
        role = next((role for p, role in persons if p is m), None)
        if m.re is _PERSON:
            person = "patient" if role is False else person_kind(m.group())
            found.append(_Event(m.start(), m.end(), person, subject=role is not None))
            if role is not None:
                current = m if role else None
        elif m["own"]:
            # `her dad's gout and her own asthma`: `her own` can mean either person.
            if found and found[-1].person != "patient":
                found.append(
                    _Event(m.start(), m.end(), found[-1].person, subject=True, is_doubtful=True)
                )
        elif _is_either(m, current):
            found.append(
                _Event(m.start(), m.end(), found[-1].person, subject=True, is_doubtful=True)
            )
        elif _returns(text, m, current):
            found.append(_Event(m.start(), m.end(), "patient", subject=True))
            current = None
    return tuple(sorted(found, key=lambda event: event.start))


def _is_either(pronoun: re.Match[str], current: re.Match[str] | None) -> bool:
    """Return whether a pronoun can mean the person `current` as well as the patient.

    `his mother … she` is the mother. `her mother … she` can be both.
    """
    if current is None or not pronoun["pronoun"] or pronoun["pronoun"] == "I":
        return False
    if _NEW_SUBJECT.match(pronoun.string, pronoun.end()) or current["owned"]:
        return False
    is_she = pronoun["pronoun"].lower() == "she"
    if current["female"] if is_she else current["male"]:
        owner = (current["owner"] or current.group().split()[0]).lower()
        return owner not in (("his", "my") if is_she else ("her", "my"))
    return bool(current["others"] or current["side"])


_ALONE = re.compile(r"\w[ ]*[(\[][ ]*(?:[\w ]+(?:,|/|&| and| or)[ ]*){0,3}$", re.I)
_NAMED_PATIENT = re.compile(
    r"[ ]*(?:[(\[][ ]*(?:the[ ])?(?:patient|pt|self|himself|herself)[ ]*[)\]]"
    r"|[–:-][ ]*(?:patient|pt|self)(?:[ ]only)?(?=[ ]*(?:[,;.]|$)))",
    re.I,
)
_ANIMAL = re.compile(r"\b(?:dog|cat|pet|pupp|kitten)", re.I)
_NEW_SUBJECT = re.compile(
    r"[ ]+(?:himself|herself|denies|reports|presents?|complains|endorses|states)\b"
)


def _is_subject(text: str, m: re.Match[str]) -> bool | None:
    """Return True for another person, False for a reporter, None if the words decide nothing."""
    head, tail = text[: m.start()], text[m.end() :]
    if _ALONE.search(head) and tail.startswith((")", "]")):
        # `diabetes (father), asthma`: the remark is about the words before it only.
        return None
    if re.match(r"['’]s?(?![\w])", tail):
        if _HAS_SIDE.match(tail):
            return True
        if _SAYING.match(tail):
            return None
        tail_at = re.match(r"['’]s? *", tail)
        return None if tail_at is None or _PERSON.match(tail, tail_at.end()) else True
    if re.search(r"\b(?:patient|pt|he|she|I) and[ ]*$", head, re.I):
        return None
    if _IS_PATIENT.search(head) or re.match(
        r" of (?:\d|one|two|three|four|five|six)\b", tail, re.I
    ):
        return None
    listed = re.match(r"(?:,| and| or|/|, and) *", tail)
    if listed is not None and (follow := _PERSON.match(tail, listed.end())) is not None:
        tail = tail[follow.end() :]
    if (
        re.search(r"\b(?:is|was|as|became|being|am)[ ]*$", head, re.I)
        and not m["owner"]
        and (not re.match(_OWNER, m.group(), re.I))
    ):
        return None
    if re.match(r" (?:reports?|reported|describes?|described) (?:(?:his|her|their) )?own\b", tail):
        return True
    if _ACTING.match(tail) or (_ACTING_APART.match(tail) and not _WHO_HAS.match(tail)):
        return False
    if _RELATION.match(tail):
        return True
    if _OBJECT.search(head) and not re.search(r"\b(?:and|or)[ ]+(?:(?:an?|the)[ ]+)?$", head, re.I):
        return None
    if _FINITE.match(tail):
        return True
    return True if _BEGINNING.search(head) else None


def _returns(text: str, m: re.Match[str], current: re.Match[str] | None) -> bool:
    """Return whether the words at `m` make the patient the subject again."""
    if current is None:
        return False
    if m["pronoun"]:
        if m["pronoun"] == "I":
            return True
        if _NEW_SUBJECT.match(text, m.end()) or _ANIMAL.search(current.group()):
            return True
        is_she = m["pronoun"].lower() == "she"
        return bool(current["male"]) if is_she else bool(current["female"])
    if m["verb"]:
        return True
    return not re.search(
        r"\b(?:of|to|with|like|than|for|by|from|another|other|source|index)[ ]+(?:(?:the|this|our"
        r"|an?)[ ]+)?$",
        text[: m.start()],
        re.I,
    )


def is_named_patient(text: str, last: int) -> bool:
    """Return whether a remark behind a mention gives the mention to the patient (`(self)`)."""
    return _NAMED_PATIENT.match(text, last) is not None


def is_person_doubtful(text: str, first: int) -> bool:
    """Return whether a pronoun leaves open whose the mention at `text[first:]` is."""
    doubtful = False
    for event in _events(text):
        if event.end <= first and event.subject:
            doubtful = event.is_doubtful
    return doubtful


def experiencer_at(text: str, first: int, last: int) -> Experiencer | None:
    """Return the person of the mention at `text[first:last]`; None if no person is named.

    `patient` means that the sentence names another person and returns to the patient.
    """
    events = _events(text)
    if not events:
        return None
    said: Experiencer | None = None
    for event in events:
        if event.end <= first and event.subject:
            said = event.person
        elif event.start >= last and event.person != "patient":
            if event.start - last > _REACH:
                break
            m = _AFTER.fullmatch(text[last : event.start])
            if m is None or _CARE.search(m["gap"]) or re.search(r"\b(?:is|was|has)\b", m["gap"]):
                continue
            if m["sign"] and (m["gap"].strip(" ,") or _ACTING.match(text[event.end :])):
                continue
            return event.person
    return said
