"""The URIs and code systems of the bundle, and the small values that resources share.

RecordSource of systems and value sets: FHIR R4 (4.0.1), http://hl7.org/fhir/R4/, licence CC0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pipeline.clinical.attributes import Quantity
from pipeline.models.codes import SystemKey

Json = dict[str, Any]
"""A JSON object. A `Decimal` in it is written as a number with all its digits."""

NAMESPACE = "https://medproc.example/fhir"
"""Prefix of medproc's own extensions and codes. The domain `example` is reserved (RFC 2606)."""
TERMINOLOGY = "http://terminology.hl7.org/CodeSystem"
UCUM = "http://unitsofmeasure.org"

CODE_SYSTEMS: dict[str, str] = {
    SystemKey.ICD10CM: "http://hl7.org/fhir/sid/icd-10-cm",
    SystemKey.UNII: "http://fdasis.nlm.nih.gov",
    SystemKey.LOINC: "http://loinc.org",
    SystemKey.RXNORM: "http://www.nlm.nih.gov/research/umls/rxnorm",
    SystemKey.SNOMEDCT: "http://snomed.info/sct",
    SystemKey.CVX: "http://hl7.org/fhir/sid/cvx",
}
"""Our key → FHIR's URI of the system (http://hl7.org/fhir/R4/terminologies-systems.html)."""

TAGS: dict[str, str] = {
    "record-incomplete": "Record incomplete",
    "not-reviewed": "Not reviewed by a person",
    "flagged": "Flagged for a review",
    "held": "Held back until a person has reviewed it",
    "rejected": "Rejected by a reviewer",
    "contradicted": "Contradicted by another statement of the record",
}
"""Codes of `meta.tag`, in the system `NAMESPACE/CodeSystem/review`."""
REVIEW_SYSTEM = f"{NAMESPACE}/CodeSystem/review"
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""What a FHIR string forbids, and what XML 1.0 forbids, in which narratives are written."""


def text_of(text: str) -> str:
    """Return a text as a FHIR string: characters that FHIR or XML forbids become U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text)


def urn(of: UUID) -> str:
    """Return the full URL of a resource, which is also the reference to the resource."""
    return f"urn:uuid:{of}"


def reference(of: UUID) -> Json:
    """Return a reference to a resource of the bundle."""
    return {"reference": urn(of)}


def derived_id(of: UUID, what: str) -> UUID:
    """Return the id of a resource that a row causes beside its own; equal in every export."""
    return uuid5(NAMESPACE_URL, f"{NAMESPACE}/{what}/{of}")


def present(**values: Any) -> Json:
    """Return the values that are stated; a trailing `_` of a name is dropped."""
    return {
        name.removesuffix("_"): value
        for name, value in values.items()
        if value is not None and value != [] and value != {} and value != ""
    }


def coding(system: str, code: str, display: str | None = None) -> Json:
    """Return a Coding."""
    return present(system=system, code=code, display=display)


def concept(system: str, code: str, text: str | None = None) -> Json:
    """Return a CodeableConcept with one code."""
    return present(coding=[coding(system, code)], text=text)


def own(kind: str, code: str, display: str | None = None) -> Json:
    """Return a Coding of medproc's own code system `kind`."""
    return coding(f"{NAMESPACE}/CodeSystem/{kind}", code, display)


def named(
    text: str | None, *, system: str | None = None, code: str | None = None, display: str | None
) -> Json:
    """Return a CodeableConcept of a text, with its code if one was chosen."""
    codes = []
    if code is not None and system is not None:
        url = CODE_SYSTEMS.get(system, f"{NAMESPACE}/CodeSystem/{system}")
        codes.append(coding(url, code, display))
    return present(coding=codes, text=text and text_of(text))


def in_words(text: str | None) -> Json | None:
    """Return a CodeableConcept of a text alone; None for no text."""
    return {"text": text_of(text)} if text else None


def tagged(*tags: str) -> Json:
    """Return `meta` with these tags; {} without a tag."""
    return present(tag=[coding(REVIEW_SYSTEM, tag, TAGS[tag]) for tag in tags])


def extension(name: str, **value: Any) -> Json:
    """Return an extension of medproc with one value, such as `valueString`."""
    return {"url": f"{NAMESPACE}/StructureDefinition/{name}", **value}


def parts(name: str, of: Mapping[str, Any]) -> list[Json]:
    """Return a complex extension with one part for each stated value; [] without values."""
    inner = [_part(key, value) for key, each in of.items() for value in _each(each)]
    return [{"url": f"{NAMESPACE}/StructureDefinition/{name}", "extension": inner}] if inner else []


def quantity(of: Quantity) -> Json:
    """Return a Quantity: the number with its digits, the unit as printed and its UCUM code."""
    return present(
        value=of.number,
        comparator=of.comparator,
        unit=of.printed_unit,
        system=UCUM if of.unit else None,
        code=of.unit,
    )


def measured(of: Quantity | None) -> Json | None:
    """Return a Quantity, or a Range for two ends, with the words of the page as extension."""
    if of is None:
        return None
    printed = [extension("printed", valueString=text_of(of.printed))]
    if of.high is None:
        return {"extension": printed, **quantity(of)}
    low, high = of.model_copy(update={"high": None}), of.model_copy(update={"number": of.high})
    return {"extension": printed, "low": quantity(low), "high": quantity(high)}


def _each(value: Any) -> Sequence[Any]:
    if value is None or value == "":
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _part(url: str, value: Any) -> Json:
    if isinstance(value, bool):
        return {"url": url, "valueBoolean": value}
    if isinstance(value, int):
        return {"url": url, "valueInteger": value}
    if isinstance(value, float):
        return {"url": url, "valueDecimal": Decimal(repr(value))}
    if isinstance(value, Decimal):
        return {"url": url, "valueDecimal": value}
    if isinstance(value, date):
        return {"url": url, "valueDate": value.isoformat()}
    if isinstance(value, dict):
        return {"url": url, "valueRange" if "low" in value else "valueQuantity": value}
    return {"url": url, "valueString": text_of(str(value))}
