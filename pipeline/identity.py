"""Whether two sets of printed identifiers name the same patient.

Imports nothing of the project. Never wrong about a patient comes first: where two people are as
likely as one, the verdict is DISAGREE. Verdicts and reasons hold no PHI.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import SequenceMatcher
from enum import Enum

_TITLES = frozenset(
    ["mr", "mrs", "ms", "miss", "mx", "dr", "prof", "sir", "md", "phd", "rn", "np", "patient", "pt"]
)
_SUFFIXES = {"jr": "jr", "junior": "jr", "sr": "sr", "senior": "sr", "ii": "2", "iii": "3"}
_SUFFIXES |= {"iv": "4", "2nd": "2", "3rd": "3"}
_NOBODY = frozenset(["unknown", "unidentified", "anonymous", "redacted", "none", "withheld"])
_CONFUSABLE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s", "8": "b"})
_LOOK_ALIKE = str.maketrans({"c": "e", "f": "t", "h": "b", "v": "u", "q": "g", "r": "n"})
_DIGITS = str.maketrans({"O": "0", "Q": "0", "I": "1", "L": "1", "|": "1"})


class Agreement(Enum):
    """The outcome of a comparison."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNKNOWN = "unknown"
    """Too little is stated to tell."""


@dataclass(frozen=True)
class Verdict:
    """An outcome and the words that explain it; free of PHI."""

    agreement: Agreement
    reasons: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether both are the same person."""
        return self.agreement is Agreement.AGREE

    @property
    def disagrees(self) -> bool:
        """Whether they are, or may well be, two people."""
        return self.agreement is Agreement.DISAGREE


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A patient's identifiers as printed in one place; PHI, so it never prints itself."""

    name: str | None = field(default=None, repr=False)
    birth_date: str | None = field(default=None, repr=False)
    """ISO 8601; anything else counts as not stated."""
    identifier: str | None = field(default=None, repr=False)
    """Medical record number; each hospital has its own."""

    @property
    def stated(self) -> int:
        """How many of the three can be compared (0–3)."""
        known = (_parse_name(self.name), _date(self.birth_date), _number(self.identifier))
        return sum(part is not None for part in known)


class _Name(Enum):
    SAME = 1
    SLIP = 2
    """But for what a scanner does to a letter inside a word."""
    INITIAL = 3
    """Same family name; one side prints only an initial of the given name."""
    FAMILY_CHANGED = 4
    CLOSE = 5
    """One letter apart in a way that a scanner does not explain: twins, or a slip."""
    DIFFERENT = 6
    UNKNOWN = 7


class _Part(Enum):
    SAME = 1
    SLIP = 2
    CLOSE = 3
    DIFFERENT = 4
    UNKNOWN = 5


@dataclass(frozen=True)
class _Parsed:
    given: tuple[str, ...]
    family: tuple[str, ...]
    suffix: str
    ordered: bool
    """A comma said which part is the family name."""


def compare(a: Identity, b: Identity) -> Verdict:
    """Judge whether `a` and `b` name one person; symmetric."""
    return _decide(
        _names(_parse_name(a.name), _parse_name(b.name)),
        _birth_dates(_date(a.birth_date), _date(b.birth_date)),
        _identifiers(_number(a.identifier), _number(b.identifier)),
    )


def digests(identity: Identity, key: bytes) -> dict[str, str]:
    """Return keyed HMAC-SHA256 digests (`name`, `dob`, `mrn`) of what is stated.

    They let a pseudonymous patient be compared with later records without holding PHI. A name of
    which only an initial is printed has no digest.
    """
    parts: dict[str, str] = {}
    name = _parse_name(identity.name)
    if name is not None and name.given and len(name.given[0]) > 1:
        ends = sorted((_fold(name.given[0]), _fold("".join(name.family))))
        parts["name"] = " ".join([*ends, name.suffix]).strip()
    born = _date(identity.birth_date)
    if born is not None:
        parts["dob"] = born.isoformat()
    number = _number(identity.identifier)
    if number is not None:
        parts["mrn"] = number
    return {
        kind: hmac.new(key, f"{kind}:{text}".encode(), hashlib.sha256).hexdigest()
        for kind, text in parts.items()
    }


def compare_digests(known: Mapping[str, str], seen: Mapping[str, str]) -> Verdict:
    """Judge as `compare` does, from digests of the same key; slips cannot be seen in them."""

    def same(kind: str) -> bool | None:
        if not known.get(kind) or not seen.get(kind):
            return None
        return hmac.compare_digest(known[kind], seen[kind])

    name = {True: _Name.SAME, False: _Name.DIFFERENT, None: _Name.UNKNOWN}[same("name")]
    part = {True: _Part.SAME, False: _Part.DIFFERENT, None: _Part.UNKNOWN}
    return _decide(name, part[same("dob")], part[same("mrn")])


def dominant(weighted: Iterable[tuple[Identity, float]]) -> Identity | None:
    """Return the identity that most of a record's text carries; None where no one holds most.

    Weights are amounts of text. What fits several people is left out of the count, so that a page
    with only a common name never decides between them.
    """
    stated = [(identity, weight) for identity, weight in weighted if identity.stated]
    stated.sort(key=lambda pair: (-pair[0].stated, -pair[1], _sort_key(pair[0])))
    people: list[list[tuple[Identity, float]]] = []
    total = 0.0
    for identity, weight in stated:
        total += weight
        fits = [p for p in people if _belongs(identity, p)]
        if len(fits) == 1:
            fits[0].append((identity, weight))
        elif not fits:
            people.append([(identity, weight)])
    if not people:
        return None
    largest = max(people, key=lambda person: sum(weight for _, weight in person))
    if sum(weight for _, weight in largest) * 2 <= total:
        return None
    return combine(largest)


def combine(weighted: Iterable[tuple[Identity, float]]) -> Identity:
    """Join what several places state of one person: the heaviest fullest name, date and number."""
    pairs = list(weighted)

    def heaviest(values: Iterable[tuple[str | None, float]], bonus: bool) -> str | None:
        counts: Counter[str] = Counter()
        for value, weight in values:
            if value:
                counts[value] += int(weight * 1000) + 1
        if not counts:
            return None
        if bonus:
            return min(counts, key=lambda v: (-_fullness(v), -counts[v], v))
        return min(counts, key=lambda v: (-counts[v], v))

    return Identity(
        name=heaviest(((i.name if _parse_name(i.name) else None, w) for i, w in pairs), True),
        birth_date=heaviest(
            ((i.birth_date if _date(i.birth_date) else None, w) for i, w in pairs), False
        ),
        identifier=heaviest(
            ((i.identifier if _number(i.identifier) else None, w) for i, w in pairs), False
        ),
    )


def _belongs(identity: Identity, person: list[tuple[Identity, float]]) -> bool:
    verdicts = [compare(identity, other) for other, _ in person]
    return any(v.agrees for v in verdicts) and not any(v.disagrees for v in verdicts)


def _sort_key(identity: Identity) -> tuple[str, str, str]:
    return (identity.name or "", identity.birth_date or "", identity.identifier or "")


def _fullness(name: str) -> int:
    parsed = _parse_name(name)
    return 0 if parsed is None else sum(len(t) > 1 for t in parsed.given[:1]) + len(parsed.given)


def _decide(name: _Name, born: _Part, number: _Part) -> Verdict:
    reasons = tuple(
        f"{what}_{part.name.lower()}"
        for what, part in (("name", name), ("birth_date", born), ("identifier", number))
        if part.name != "UNKNOWN"
    )
    return Verdict(_outcome(name, born, number), reasons or ("nothing_stated",))


def _outcome(name: _Name, born: _Part, number: _Part) -> Agreement:
    yes, no, open_ = Agreement.AGREE, Agreement.DISAGREE, Agreement.UNKNOWN
    same_number, same_born = number is _Part.SAME, born is _Part.SAME
    if name is _Name.DIFFERENT or born is _Part.DIFFERENT:
        return no
    if name is _Name.UNKNOWN:
        return open_ if born is _Part.CLOSE or not same_number else yes
    if born is _Part.CLOSE:
        return yes if name in (_Name.SAME, _Name.SLIP) and same_number else no
    if name in (_Name.CLOSE, _Name.FAMILY_CHANGED):
        return yes if same_born and same_number else no
    if same_number:
        return yes
    if number is _Part.DIFFERENT:
        if same_born:
            return {_Name.SAME: yes, _Name.INITIAL: open_}.get(name, no)
        return no
    if same_born:
        return yes
    if number is _Part.CLOSE:
        return open_ if name is _Name.SAME else no
    return yes if name is _Name.SAME else open_


def _parse_name(name: str | None) -> _Parsed | None:
    if not name:
        return None
    plain = re.sub(r"(?<=[^\W\d_]{2})[._|](?=[^\W\d_])", "", name)
    plain = unicodedata.normalize("NFKD", plain)
    plain = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    plain = re.sub(r"[’'`.]", lambda m: " " if m[0] == "." else "", plain)
    head, comma, tail = plain.partition(",")
    suffix = ""

    def tokens(text: str) -> list[str]:
        nonlocal suffix
        kept = []
        for token in re.findall(r"[^\W_]+", text):
            if token in _SUFFIXES:
                suffix = _SUFFIXES[token]
            elif token not in _TITLES:
                kept.append(token)
        return kept

    first, second = tokens(head), tokens(tail)
    if any(token in _NOBODY for token in first + second) or not any(
        len(token) > 1 for token in first + second
    ):
        return None
    if comma and second:
        return _Parsed(tuple(second), tuple(first), suffix, ordered=True)
    if not first:
        return None
    if len(first) == 1:
        return _Parsed((), (first[0],), suffix, ordered=False)
    return _Parsed(tuple(first[:-1]), (first[-1],), suffix, ordered=False)


def _names(a: _Parsed | None, b: _Parsed | None) -> _Name:
    if a is None or b is None:
        return _Name.UNKNOWN
    if a.suffix and b.suffix and a.suffix != b.suffix:
        return _Name.DIFFERENT
    as_printed = _reading(a, b)
    if as_printed.value > _Name.SLIP.value and _same_words(a, b):
        as_printed = _Name.SLIP
    if a.ordered and b.ordered:
        return as_printed
    best = min((_reading(x, y) for x in _orders(a) for y in _orders(b)), key=lambda n: n.value)
    if not a.ordered and not b.ordered and best.value < as_printed.value:
        best = max(best, _Name.INITIAL, key=lambda n: n.value)
    return min(best, as_printed, key=lambda n: n.value)


def _same_words(a: _Parsed, b: _Parsed) -> bool:
    """Whether both have three or more words and the same: a speck became a comma."""
    one, other = (sorted(_fold(w) for w in (*n.given, *n.family)) for n in (a, b))
    return len(one) > 2 and one == other


def _orders(name: _Parsed) -> list[_Parsed]:
    """Return the ways in which a name without a comma can be split."""
    if name.ordered:
        return [name]
    tokens = [*name.given, *name.family]
    return [
        _Parsed(tuple(tokens[:at]), tuple(tokens[at:]), name.suffix, ordered=True)
        for at in range(1, len(tokens))
    ] + [
        _Parsed(tuple(tokens[at:]), tuple(tokens[:at]), name.suffix, ordered=True)
        for at in range(1, len(tokens))
    ] or [name]


def _reading(a: _Parsed, b: _Parsed) -> _Name:
    family = _words("".join(a.family), "".join(b.family))
    if family is _Part.DIFFERENT and _married(a.family, b.family):
        family = _Part.SAME
    if not a.given or not b.given:
        return _Name.INITIAL if family in (_Part.SAME, _Part.SLIP) else _Name.DIFFERENT
    given = _words(a.given[0], b.given[0])
    if family is _Part.CLOSE and given is _Part.SAME and len(a.given[0]) > 3:
        family = _family_slip("".join(a.family), "".join(b.family))
    if len(a.given[0]) == 1 or len(b.given[0]) == 1:
        initial = _fold(a.given[0][0]) == _fold(b.given[0][0])
        near = family in (_Part.SAME, _Part.SLIP)
        return _Name.INITIAL if initial and near else _Name.DIFFERENT
    if _Part.DIFFERENT in (family, given):
        return _Name.FAMILY_CHANGED if given in (_Part.SAME, _Part.SLIP) else _Name.DIFFERENT
    if _Part.CLOSE in (family, given) or _middles_conflict(a.given[1:], b.given[1:]):
        return _Name.CLOSE
    return _Name.SLIP if _Part.SLIP in (family, given) else _Name.SAME


def _family_slip(a: str, b: str) -> _Part:
    """Judge a family name beside an equal given name: its last letter may be misread as well."""
    near = len(a) == len(b) > 5 and a[:-1] == b[:-1]
    return _Part.SLIP if near else _Part.CLOSE


def _married(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether one family name is a part of the other's double name."""
    shorter, longer = sorted((set(a), set(b)), key=len)
    return bool(shorter) and len(longer) > len(shorter) and shorter < longer


def _middles_conflict(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    if not a or not b:
        return False
    return _fold(a[0][0]) != _fold(b[0][0])


def _words(a: str, b: str) -> _Part:
    if _fold(a) == _fold(b):
        return _Part.SAME
    if _slip(a, b):
        return _Part.SLIP
    if min(len(a), len(b)) >= 4 and SequenceMatcher(None, a, b, autojunk=False).ratio() >= 0.8:
        return _Part.CLOSE
    return _Part.DIFFERENT


def _slip(a: str, b: str) -> bool:
    """Whether two words differ in one letter inside, or in look-alikes only.

    The first and the last letter count: they tell Jayden from Kayden and Daniel from Daniela.
    """
    if _fold(a).translate(_LOOK_ALIKE) == _fold(b).translate(_LOOK_ALIKE):
        return a[:1] == b[:1]
    short, long = sorted((a, b), key=len)
    if len(long) < 5 or len(long) - len(short) > 1 or a[0] != b[0] or a[-1] != b[-1]:
        return False
    if len(short) < len(long):
        return any(long[:at] + long[at + 1 :] == short for at in range(1, len(long) - 1))
    return len(long) >= 7 and sum(x != y for x, y in zip(a, b, strict=True)) == 1


def _fold(word: str) -> str:
    """Write letters that a scanner mistakes for each other alike."""
    return word.casefold().translate(_CONFUSABLE).replace("rn", "m").replace("vv", "w")


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _birth_dates(a: date | None, b: date | None) -> _Part:
    if a is None or b is None:
        return _Part.UNKNOWN
    if a == b:
        return _Part.SAME
    one, other = a.isoformat(), b.isoformat()
    if sum(x != y for x, y in zip(one, other, strict=True)) == 1:
        return _Part.CLOSE
    swapped = a.year == b.year and (a.month, a.day) == (b.day, b.month)
    return _Part.CLOSE if swapped else _Part.DIFFERENT


def _number(text: str | None) -> str | None:
    if not text:
        return None
    bare = re.sub(r"(?i)^\s*(mrn|mr|id|no|pid)\b[\s.:#]*", "", text)
    bare = re.sub(r"[^0-9A-Za-z|]", "", bare).upper()
    if not any(c.isdigit() for c in bare):
        return None
    bare = bare.translate(_DIGITS).lstrip("0")
    return bare if len(bare) >= 3 else None


def _identifiers(a: str | None, b: str | None) -> _Part:
    if a is None or b is None:
        return _Part.UNKNOWN
    if a == b:
        return _Part.SAME
    short, long = sorted((a, b), key=len)
    if len(long) >= 5 and len(long) - len(short) <= 1:
        lost = any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
        wrong = len(long) == len(short) and sum(map(str.__ne__, a, b)) == 1
        return _Part.CLOSE if lost or wrong else _Part.DIFFERENT
    return _Part.DIFFERENT
