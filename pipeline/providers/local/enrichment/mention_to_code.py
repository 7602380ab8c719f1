"""A mention with its evidence, as the choice of a code reads the mention.

A code is judged against the same words as every other code of the shortlist, so the words are read
once for each mention.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pipeline.clinical.condition_reading import read_condition
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.text.tokens import normal, tokenize

PLAIN = frozenset({
    "of", "and", "the", "a", "an", "in", "with", "to", "by", "due", "for", "on", "at", "from",
    "as", "or", "nos", "its", "this", "that",
})  # fmt: skip
SOFT = frozenset({"disease", "disorder", "mellitus"})
"""Words that a note leaves out without changing the condition."""
_SAME = {
    # Adjective and noun, or two usual words, for the same organ or the same thing.
    "renal": "kidney", "hepatic": "liver", "cardiac": "heart", "gastric": "stomach",
    "tumour": "tumor", "anaemia": "anemia", "oedema": "edema", "haemorrhage": "hemorrhage",
    "diarrhoea": "diarrhea", "oesophageal": "esophageal", "esophagu": "esophageal",
    "aching": "ache", "painful": "pain", "ii": "2", "iii": "3", "iv": "4",
    "abdomen": "abdominal", "calculu": "stone", "calculi": "stone",
    "diabetic": "diabete", "bilaterally": "bilateral", "both": "bilateral", "lt": "left",
    "rt": "right", "strep": "streptococcal", "staph": "staphylococcal",
}  # fmt: skip
_JOINED = re.compile(
    r"\b(gastro|cardio|cerebro|non|pre|post|hypo|hyper|intra|extra|peri|sub|micro|macro|thrombo"
    r"|osteo|neuro|hemo|broncho)-(?=[a-z])",
    re.I,
)
_TYPED = re.compile(r"\b(?:T(?P<a>[12])DM|DM ?(?:type ?)?(?P<b>[12]|II?)|DMT(?P<c>[12]))\b")
_LINK = re.compile(
    r"[ ,]*\b(?:with|due[ ]to|secondary[ ]to|complicated[ ]by|associated[ ]with|from|caused[ ]by"
    r"|in|without|w/)[ ]*(?:(?:an?|the|his|her|known|associated|acute|chronic)[ ]*)*$",
    re.I,
)
_CUT = re.compile(
    r"[.;:\n]|\b(?:and|but|which|who|on|s/p|treated|started|since|for|was|is|has|had|will|no|not"
    r"|denies|vs|versus|or|if|status|until|after|before)\b",
    re.I,
)
DENIED = re.compile(r"\b(?:without|w/o|no|not|denies|negative for)\b[^,;.]*", re.I)
"""What a text denies of the mention."""
_CLAUSE_END = re.compile(r"[.;:\n\t]|\b(?:and|but|which|who|s/p|treated|started|since|on|for)\b|,")


@dataclass(frozen=True)
class MentionToCode:
    """One entity with its evidence; each reading of the words is made once."""

    facts: EntityFacts
    evidence: Evidence

    @cached_property
    def quoted(self) -> frozenset[str]:
        """The words of the quote."""
        return words_of(self.evidence.quote)

    @cached_property
    def supported(self) -> frozenset[str]:
        """The words that the mention and the words that belong to the mention state."""
        stated = f"{' '.join(self.ahead)} {self._named} {DENIED.sub(' ', self.behind)}"
        found = set(words_of(stated))
        found |= {self._read[name] for name in ("laterality", "severity") if name in self._read}
        for limb, names in (("lower", {"leg", "calf"}), ("upper", {"arm"})):
            if names & found:
                found |= {limb, "extremity"}
        if "cancer" in found or "carcinoma" in found:
            found |= {"malignant", "neoplasm"}
        if self.facts.temporality == "historical":
            found |= {"personal", "history"}
        if self.facts.experiencer == "family":
            found |= {"family", "history"}
        return frozenset(found)

    @cached_property
    def needed(self) -> frozenset[str]:
        """The words that a display has to repeat."""
        quote = self.evidence.quote
        names = expanded(quote)
        # The words of the expansion replace the abbreviation.
        words = words_of(names) | _typed(quote) if names else self.quoted
        rest = _unmatched(quote) if names else frozenset()
        sides = {self._read["laterality"]} if "laterality" in self._read else set()
        return (words | rest | frozenset(sides)) - PLAIN - SOFT

    @cached_property
    def denied(self) -> frozenset[str]:
        """The words of the sentence that the text denies."""
        return words_of(" ".join(DENIED.findall(self._sentence)))

    @cached_property
    def not_denied(self) -> frozenset[str]:
        """The words of the sentence that the text does not deny."""
        return words_of(DENIED.sub(" ", self._sentence))

    @cached_property
    def around(self) -> frozenset[str]:
        """The words of the passage that the text does not deny, and those of its abbreviations."""
        passage = self.evidence.passage
        return words_of(DENIED.sub(" ", passage)) | words_of(expanded(passage))

    @cached_property
    def ahead(self) -> tuple[str, ...]:
        """The last words in front of the mention that no sign and no conjunction parts."""
        parts = re.split(r"[,;:.()\n\t#]|\band\b|\bwith\b|\d[.)]", self.evidence.before)
        return tuple(parts[-1].split()[-4:])

    @cached_property
    def behind(self) -> str:
        """The words behind the mention that belong to the mention."""
        after, following = self.evidence.after, self.evidence.entity_after
        cut = _CUT.search(after)
        behind = after[: cut.start() if cut else 80][:80]
        if following and _LINK.search(after) and not cut:
            behind = f"{behind} {following} {expanded(following)}"
        return behind

    @cached_property
    def tail(self) -> str:
        """The words behind the mention, other entities included, to the end of the clause."""
        if self.at < 0:
            return self.behind
        rest = self.evidence.sentence[self.at + len(self.evidence.quote) :]
        cut = _CLAUSE_END.search(rest)
        return rest[: cut.start() if cut else 120][:120]

    @cached_property
    def at(self) -> int:
        """Where the mention begins in its sentence; -1 if the place is not known."""
        quote = self.evidence.quote.replace("\n", " ")
        at = self.evidence.sentence.find(f"{self.evidence.before}{quote}")
        return at + len(self.evidence.before) if at >= 0 else -1

    @property
    def _sentence(self) -> str:
        return self.evidence.sentence or self.evidence.quote

    @property
    def _named(self) -> str:
        quote = self.evidence.quote
        return f"{quote} {self.facts.name} {expanded(quote)} {' '.join(_typed(quote))}"

    @cached_property
    def _read(self) -> dict[str, str]:
        return read_condition(self.facts, self.evidence)


@lru_cache(maxsize=16_384)
def words_of(text: str) -> frozenset[str]:
    """Return the normal forms of the words of a text, without plain words."""
    joined = _JOINED.sub(r"\1", text)
    found = (normal(word) for word in re.findall(r"[^\W_]+(?:['’]s)?", joined))
    return frozenset(_SAME.get(word, word) for word in found) - PLAIN


@lru_cache(maxsize=4_096)
def expanded(text: str) -> str:
    """Return the names that the abbreviations of a text stand for."""
    return " ".join(
        match.terms[0].name
        for match in lexicon().find(tokenize(text))
        if match.terms[0].category in ("condition", "symptom", "procedure")
        and _is_abbreviation(
            match.terms[0].kind, text[match.start : match.end], match.terms[0].name
        )
    )


def _is_abbreviation(kind: str, printed: str, name: str) -> bool:
    """Return whether a word abbreviates a name: by the list, or by the initials of the name.

    A list of names groups terms by relation, so only initials prove the same meaning.
    """
    if kind == "abbreviation":
        return True
    initials = "".join(word[0] for word in name.split())
    if not printed.isupper() or len(initials) < 2:
        return False
    return _is_spread(initials, printed.lower()) and _is_spread(printed.lower(), name.lower())


def _is_spread(letters: str, text: str) -> bool:
    """Return whether `text` has these letters in their order."""
    rest = iter(text)
    return all(letter in rest for letter in letters.lower())


@lru_cache(maxsize=4_096)
def _unmatched(text: str) -> frozenset[str]:
    """Return the words of a text that are no abbreviation."""
    spans = [
        (match.start, match.end)
        for match in lexicon().find(tokenize(text))
        if _is_abbreviation(match.terms[0].kind, text[match.start : match.end], match.terms[0].name)
    ]
    for start, end in reversed(spans):
        text = f"{text[:start]} {text[end:]}"
    return words_of(text)


def _typed(quote: str) -> frozenset[str]:
    """Return the type of a diabetes that an abbreviation states (`T2DM`)."""
    m = _TYPED.search(quote)
    number = m and (m["a"] or m["b"] or m["c"])
    if not number:
        return frozenset()
    return frozenset({"type", {"I": "1", "II": "2"}.get(number, number)})
