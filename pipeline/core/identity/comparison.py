"""The verdict on two identities, in plain text or by digests.

The verdict is DISAGREE if two people are as likely as one. Verdicts and reasons contain no PHI. The
functions are pure.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pipeline.core.identity.parsing import Identity, fold
from pipeline.core.identity.similarity import (
    NameMatch,
    PartMatch,
    birth_dates,
    identifiers,
    names,
)


class Agreement(Enum):
    """The outcome of a comparison."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNKNOWN = "unknown"
    """The identities state too little for a decision."""


@dataclass(frozen=True)
class ComparisonResult:
    """An outcome and the words that explain it, free of PHI."""

    agreement: Agreement
    reasons: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Return whether both identities name the same person."""
        return self.agreement is Agreement.AGREE

    @property
    def disagrees(self) -> bool:
        """Return whether the identities name, or may well name, two people."""
        return self.agreement is Agreement.DISAGREE


def compare(a: Identity, b: Identity) -> ComparisonResult:
    """Judge whether `a` and `b` name one person; symmetric."""
    (name, born, number), (other_name, other_born, other_number) = a.reading, b.reading
    return _decide(
        names(name, other_name), birth_dates(born, other_born), identifiers(number, other_number)
    )


def digests(identity: Identity, key: bytes) -> dict[str, str]:
    """Return keyed HMAC-SHA256 digests (`name`, `dob`, `mrn`) of the stated parts.

    The digests allow the comparison of a pseudonymous patient with later records without PHI. A
    name with only an initial for the given name has no digest.
    """
    parts: dict[str, str] = {}
    name, born, number = identity.reading
    if name is not None and name.given and len(name.given[0]) > 1:
        ends = sorted((fold(name.given[0]), fold("".join(name.family))))
        parts["name"] = " ".join([*ends, name.suffix]).strip()
    if born is not None:
        parts["dob"] = born.isoformat()
    if number is not None:
        parts["mrn"] = number
    return {
        kind: hmac.new(key, f"{kind}:{text}".encode(), hashlib.sha256).hexdigest()
        for kind, text in parts.items()
    }


def compare_digests(known: Mapping[str, str], seen: Mapping[str, str]) -> ComparisonResult:
    """Judge like `compare`, from digests of the same key. Digests do not show scanner errors."""

    def same(kind: str) -> bool | None:
        if not known.get(kind) or not seen.get(kind):
            return None
        return hmac.compare_digest(known[kind], seen[kind])

    name = {True: NameMatch.SAME, False: NameMatch.DIFFERENT, None: NameMatch.UNKNOWN}[same("name")]
    part = {True: PartMatch.SAME, False: PartMatch.DIFFERENT, None: PartMatch.UNKNOWN}
    return _decide(name, part[same("dob")], part[same("mrn")])


def _decide(name: NameMatch, born: PartMatch, number: PartMatch) -> ComparisonResult:
    reasons = tuple(
        f"{what}_{part.name.lower()}"
        for what, part in (("name", name), ("birth_date", born), ("identifier", number))
        if part.name != "UNKNOWN"
    )
    return ComparisonResult(outcome(name, born, number), reasons or ("nothing_stated",))


def outcome(name: NameMatch, born: PartMatch, number: PartMatch) -> Agreement:
    """Return the outcome of the three single comparisons."""
    yes, no, open_ = Agreement.AGREE, Agreement.DISAGREE, Agreement.UNKNOWN
    same_number, same_born = number is PartMatch.SAME, born is PartMatch.SAME
    if name is NameMatch.DIFFERENT or born is PartMatch.DIFFERENT:
        return no
    if name is NameMatch.UNKNOWN:
        return open_ if born is PartMatch.CLOSE or not same_number else yes
    if born is PartMatch.CLOSE:
        return yes if name in (NameMatch.SAME, NameMatch.SLIP) and same_number else no
    if name in (NameMatch.CLOSE, NameMatch.FAMILY_CHANGED):
        return yes if same_born and same_number else no
    if same_number:
        return yes
    if number is PartMatch.DIFFERENT:
        if same_born:
            return {NameMatch.SAME: yes, NameMatch.INITIAL: open_}.get(name, no)
        return no
    if same_born:
        return yes
    if number is PartMatch.CLOSE:
        return open_ if name is NameMatch.SAME else no
    return yes if name is NameMatch.SAME else open_
