"""Whether a text prints the name that a reply gives: its words, or a normal form of its words.

This module is pure. Two normal forms are allowed: the abbreviations of measurements listed here,
and the name that the lexicon gives to words of the text (`HTN` is hypertension, `Tylenol` is
acetaminophen). The other direction is no normal form: several diseases share one name.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.text.tokens import normal, tokenize

PLAIN = frozenset(
    {"of", "the", "and", "or", "with", "in", "to", "a", "an", "for", "due", "by", "on"}
)
"""Words that change no name."""

MEASUREMENTS: dict[str, tuple[str, ...]] = {
    # Usual abbreviations of vital signs and laboratory tests; each means nothing else in a row.
    "blood pressure": ("bp", "abp", "nibp"),
    "heart rate": ("hr", "pulse", "pulse rate", "p"),
    "respiratory rate": ("rr", "resp", "respirations", "respiration", "resp rate", "r"),
    "temperature": ("temp", "t", "tmax"),
    "oxygen saturation": ("spo2", "sao2", "o2 sat", "o2 saturation", "o2 sats", "sats", "sat",
                          "pulse ox", "pulse oximetry", "oxygen sat"),
    "weight": ("wt",),
    "height": ("ht",),
    "body mass index": ("bmi",),
    "pain": ("pain score", "pain level"),
    "hemoglobin": ("hgb", "hb", "haemoglobin"),
    "hemoglobin a1c": ("hba1c", "a1c", "hgb a1c", "hb a1c", "glycated hemoglobin",
                       "glycohemoglobin"),
    "hematocrit": ("hct", "haematocrit"),
    "white blood cell": ("wbc", "leukocyte", "white cell", "white blood count"),
    "red blood cell": ("rbc", "erythrocyte", "red cell"),
    "platelet": ("plt", "thrombocyte"),
    "sodium": ("na", "na+"),
    "potassium": ("k", "k+"),
    "chloride": ("cl", "cl-"),
    "bicarbonate": ("hco3", "co2", "carbon dioxide", "tco2"),
    "blood urea nitrogen": ("bun", "urea nitrogen"),
    "creatinine": ("cr", "creat", "crea"),
    "calcium": ("ca",),
    "magnesium": ("mg",),
    "phosphorus": ("phos", "phosphate", "po4"),
    "glucose": ("glu", "gluc"),
    "alanine aminotransferase": ("alt", "sgpt"),
    "aspartate aminotransferase": ("ast", "sgot"),
    "alkaline phosphatase": ("alp", "alk phos"),
    "thyroid stimulating hormone": ("tsh", "thyrotropin"),
    "international normalized ratio": ("inr",),
    "prothrombin time": ("pt",),
    "partial thromboplastin time": ("ptt", "aptt"),
    "low density lipoprotein": ("ldl",),
    "high density lipoprotein": ("hdl",),
    "triglyceride": ("tg", "trig"),
    "c reactive protein": ("crp",),
    "erythrocyte sedimentation rate": ("esr", "sed rate"),
    "estimated glomerular filtration rate": ("egfr", "gfr"),
    "brain natriuretic peptide": ("bnp",),
    "mean corpuscular volume": ("mcv",),
    "mean arterial pressure": ("map",),
}  # fmt: skip
"""Full name → its abbreviations, in normal form."""

_SPECIMEN = frozenset(
    {"serum", "plasma", "blood", "count", "level", "total", "rate", "score", "cell"}
)
"""Words that a row leaves out of a measurement's name without changing the measurement; a reply may
add them only beside a listed form."""


@lru_cache(maxsize=4_096)
def is_named(name: str, text: str, category: str) -> bool:
    """Return whether `text` prints `name`, or words of which `name` is the normal form."""
    wanted = _words(name) - PLAIN
    shown = _words(text)
    if wanted <= shown:
        return bool(wanted) or name.strip().lower() in text.lower()
    if category in ("vital", "lab"):
        return _is_measurement(name, text)
    return wanted <= shown | _expanded(text, category)


@lru_cache(maxsize=4_096)
def is_same_measurement(one: str, other: str) -> bool:
    """Return whether two names mean the same vital sign or laboratory test."""
    first, second = _phrase(one), _phrase(other)
    if _core(first) == _core(second):
        return True
    return any(
        any(_core(first) == _core(form) for form in forms)
        and any(_core(second) == _core(form) for form in forms)
        for forms in _FORMS
    )


@lru_cache(maxsize=4_096)
def _core(phrase: str) -> frozenset[str]:
    """Return the words of a phrase without specimens and plain words."""
    words = frozenset(phrase.split())
    return words - _SPECIMEN - PLAIN or words


def _is_measurement(name: str, text: str) -> bool:
    """Return whether `name` and a phrase of `text` are forms of the same measurement."""
    wanted = _phrase(name)
    shown = f" {_phrase(text)} "
    return any(
        any(_core(wanted) == _core(form) for form in forms)
        and any(f" {form} " in shown for form in forms)
        for forms in _FORMS
    )


_FORMS = tuple((full, *others) for full, others in MEASUREMENTS.items())


def _phrase(text: str) -> str:
    return " ".join(normal(m) for m in re.findall(r"[^\W_]+[+]?", text))


_SALTS = {"succ": "succinate", "tart": "tartrate", "hcl": "hydrochloride"}
"""A drug's salt is printed in full or in its usual short form."""
_SALT = re.compile(rf"\b(?:{'|'.join(_SALTS)})\b", re.I)


def _words(text: str) -> frozenset[str]:
    """Return the words of a text; a word divided at a line's end also counts whole."""
    text = _SALT.sub(lambda m: _SALTS[m.group().casefold()], text)
    whole = re.sub(r"(?<=\w)[-‐]\s*\n\s*(?=\w)", "", text)
    both = text if whole == text else f"{text} {whole}"
    return frozenset(normal(m) for m in re.findall(r"[^\W_]+(?:['’]s)?", both))


_KINDS = (frozenset({"condition", "symptom"}), frozenset({"medication", "allergy"}))


@lru_cache(maxsize=4_096)
def _expanded(text: str, category: str) -> frozenset[str]:
    """Return the words that abbreviations and other names of drugs in a text stand for.

    The lexicon groups other terms by relation, not by meaning, so their groups prove nothing.
    """
    kinds = next((kind for kind in _KINDS if category in kind), frozenset({category}))
    return frozenset(
        word
        for match in lexicon().find(tokenize(text))
        for term in match.terms
        if term.category in kinds and (term.kind == "abbreviation" or "medication" in kinds)
        for word in _words(term.name)
    )
