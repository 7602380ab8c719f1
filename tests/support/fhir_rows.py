"""Read a bundle back into rows: the entities with their attributes, the sentences, the lists.

The reader knows FHIR R4 and the documented extensions, and imports nothing of the exports. A value
that FHIR has an element for is read from that element.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

Json = dict[str, Any]

PREFIX = "https://medproc.example/fhir/StructureDefinition/"
SYSTEMS = {
    "http://hl7.org/fhir/sid/icd-10-cm": "ICD10CM",
    "http://fdasis.nlm.nih.gov": "UNII",
    "http://loinc.org": "LOINC",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RXNORM",
    "http://snomed.info/sct": "SNOMEDCT",
    "http://hl7.org/fhir/sid/cvx": "CVX",
}
SOURCE_TEXT = {
    "page": "page_number", "page-end": "page_end", "start": "char_start", "end": "char_end",
    "quote": "quote", "alignment": "alignment", "zone": "zone_type", "rule": "rule",
    "confidence": "confidence", "engine-confidence": "engine_confidence",
    "ocr-confidence": "ocr_confidence", "entity-index": "entity_index", "category": "category",
}  # fmt: skip
CODED = {
    "Condition": "code", "Observation": "code", "MedicationStatement": "medicationCodeableConcept",
    "AllergyIntolerance": "code", "Immunization": "vaccineCode", "Procedure": "code",
}  # fmt: skip
"""Resource → the element with the code of an entity."""
XHTML = "{http://www.w3.org/1999/xhtml}"


def resources(bundle: Json, *kinds: str) -> Iterator[Json]:
    """Yield the resources of these kinds."""
    for entry in bundle["entry"]:
        if entry["resource"]["resourceType"] in kinds:
            yield entry["resource"]


def entities(bundle: Json) -> dict[str, Json]:
    """Return the entities by id: columns of Pass 1, `attributes`, and the code."""
    found = {}
    for provenance in resources(bundle, "Provenance"):
        (target,) = provenance["target"]
        resource = by_url(bundle)[target["reference"]]
        if resource["resourceType"] != "Encounter":
            found[resource["id"]] = _entity(bundle, resource, provenance)
    return found


def by_url(bundle: Json) -> dict[str, Json]:
    """Return the resources by full URL."""
    index = bundle.get("_by_url")
    if index is None:
        index = {entry["fullUrl"]: entry["resource"] for entry in bundle["entry"]}
        bundle["_by_url"] = index
    found: dict[str, Json] = index
    return found


def sentences(bundle: Json) -> list[tuple[str, str, list[str]]]:
    """Return id, text and cited entities of each sentence of the narratives, in order."""
    (composition,) = resources(bundle, "Composition")
    found = []
    for section in composition["section"]:
        if not section["title"].startswith("Narrative: "):
            continue
        for paragraph in ElementTree.fromstring(section["text"]["div"]):  # noqa: S314 - our own
            cited = [link.attrib["href"].removeprefix("urn:uuid:") for link in paragraph]
            text = (paragraph.text or "").removesuffix(" " if cited else "")
            found.append((paragraph.attrib["id"][1:], text, cited))
    return found


def contradictions(bundle: Json) -> list[tuple[str, str, list[str]]]:
    """Return kind, message and entities of each contradiction."""
    return [
        (
            issue["code"]["coding"][0]["code"],
            issue["detail"],
            [each["reference"].removeprefix("urn:uuid:") for each in issue["implicated"]],
        )
        for issue in resources(bundle, "DetectedIssue")
    ]


def tags(resource: Json) -> set[str]:
    """Return the review tags of a resource."""
    return {tag["code"] for tag in resource.get("meta", {}).get("tag", ())}


def _entity(bundle: Json, resource: Json, provenance: Json) -> Json:
    (source,) = provenance["entity"]
    row: Json = {}
    where = _parts(source, "source-text")
    row |= {column: where.get(part) for part, column in SOURCE_TEXT.items()}
    for part, column in (
        ("second-reading", "second_reading"),
        ("enrichment-second-reading", "enrichment_second_reading"),
    ):
        row[column] = json.loads(where[part]) if part in where else None
    row |= _parts(resource, "as-printed") | _parts(resource, "assertion")
    row["flags"] = [each["valueCode"] for each in _own(resource, "review-flag")]
    row["accepted"] = not {"held", "rejected"} & tags(resource)
    row["encounter_id"] = _encounter(resource)
    row |= _engines(bundle, provenance)
    row |= _code(resource)
    row["attributes"] = _attributes(resource, row["category"])
    return row


def _engines(bundle: Json, provenance: Json) -> Json:
    roles = {"found the entity": "engine", "structured the attributes": "enrichment_engine"}
    return {
        roles[agent["type"]["text"]]: by_url(bundle)[agent["who"]["reference"]]["deviceName"][0][
            "name"
        ]
        for agent in provenance["agent"]
        if "reference" in agent["who"]
    }


def _encounter(resource: Json) -> str | None:
    named = resource.get("encounter") or resource.get("context")
    if named is None:
        named = next((each["valueReference"] for each in _own(resource, "encounter")), None)
    return named and named["reference"].removeprefix("urn:uuid:")


def _code(resource: Json) -> Json:
    if resource["resourceType"] == "Basic":
        codings = [each["valueCoding"] for each in _own(resource, "code")]
    elif resource["resourceType"] == "FamilyMemberHistory":
        codings = resource["condition"][0]["code"].get("coding", [])
    else:
        codings = resource[CODED[resource["resourceType"]]].get("coding", [])
    if not codings:
        return {"code_system": None, "code": None, "code_display": None}
    (one,) = codings
    return {
        "code_system": SYSTEMS[one["system"]],
        "code": one["code"],
        "code_display": one.get("display"),
    }


def _attributes(resource: Json, category: str) -> Json:
    """Return the stated attributes, as `clinical.attributes` names them."""
    if resource["resourceType"] == "Basic":
        stored = [json.loads(each["valueString"]) for each in _own(resource, "attributes")]
        return stated(stored[0]) if stored else {}
    structured = _parts(resource, "structured", lists=("strength", "components"))
    read = _READERS.get(resource["resourceType"], lambda _: {})(resource) | structured
    if "converted" in read and read.get("value"):
        # The words of the page are those of the value.
        read["converted"]["printed_unit"] = read["value"]["printed_unit"]
    found: Json = stated(read)
    return found


def stated(of: Any) -> Any:
    """Return attributes without empty values; numbers are text."""
    if isinstance(of, Mapping):
        values = {key: stated(value) for key, value in of.items()}
        return {key: value for key, value in values.items() if value not in (None, [], {}, False)}
    if isinstance(of, list | tuple):
        return [stated(each) for each in of]
    return of if isinstance(of, bool | int) or of is None else str(of)


def _condition(resource: Json) -> Json:
    return {
        "clinical_status": _stated_code(resource.get("clinicalStatus")),
        "verification_status": _stated_code(resource.get("verificationStatus")),
        "severity": resource.get("severity", {}).get("text"),
        "onset": resource.get("onsetDateTime"),
        "printed_onset": resource.get("onsetString"),
        "abatement": resource.get("abatementDateTime"),
        **_place(resource),
    }


def _observation(resource: Json) -> Json:
    found: Json = {"effective": resource.get("effectiveDateTime")}
    if "component" in resource:
        found["components"] = [_quantity(_value(each)) for each in resource["component"]]
    elif "valueString" in resource and not _parts(resource, "structured").get("value"):
        found["value_text"] = resource["valueString"]
    elif _value(resource):
        found["value"] = _quantity(_value(resource))
    for each in resource.get("interpretation", ()):
        if "coding" in each:
            found["computed_flag"] = each["coding"][0]["code"]
        else:
            found["printed_flag"] = each["text"]
    for of in resource.get("referenceRange", ()):
        found["reference_range"] = _range(of)
    return found


def _range(of: Json) -> Json:
    exclusive = _parts(of, "exclusive-bound")
    return {
        "printed": of["text"],
        "low": str(exclusive["low"]) if "low" in exclusive else _number(of.get("low", {})),
        "high": str(exclusive["high"]) if "high" in exclusive else _number(of.get("high", {})),
        "low_is_exclusive": "low" in exclusive,
        "high_is_exclusive": "high" in exclusive,
        "text": exclusive.get("text"),
    }


def _medication(resource: Json) -> Json:
    period = resource.get("effectivePeriod", {})
    found: Json = {"start": period.get("start"), "stop": period.get("end")}
    for reason in resource.get("reasonCode", ()):
        found["indication"] = reason["text"]
    for dosage in resource.get("dosage", ()):
        found["step"] = dosage.get("sequence")
        if "route" in dosage:
            normal = [each["valueString"] for each in _own(dosage["route"], "normal-route")]
            normal += [each["display"] for each in dosage["route"].get("coding", ())]
            found["route"] = normal[0] if normal else None
            found["printed_route"] = dosage["route"].get("text")
        for rate in dosage.get("doseAndRate", ()):
            found["dose"] = _quantity(rate.get("doseQuantity") or rate["doseRange"])
        if "timing" in dosage:
            found["timing"] = _timing(dosage["timing"], dosage.get("asNeededBoolean", False))
    return found


def _timing(of: Json, as_needed: bool) -> Json:
    repeat = {
        re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", key): value
        for key, value in of.get("repeat", {}).items()
    }
    # What the integers and pairs of FHIR cannot hold is in the extension.
    found = {**repeat, **_parts(of, "timing")}
    counted = ("frequency", "frequency_max", "period", "period_max")
    numbers = {key: str(found[key]) for key in counted if key in found}
    return {"printed": of["code"]["text"], **found, **numbers, "as_needed": as_needed}


def _allergy(resource: Json) -> Json:
    found = {
        "clinical_status": _stated_code(resource.get("clinicalStatus")),
        "verification_status": _stated_code(resource.get("verificationStatus")),
    }
    for reaction in resource.get("reaction", ()):
        found["reaction"] = reaction["manifestation"][0]["text"]
        found["severity"] = reaction.get("severity")
    return found


def _immunization(resource: Json) -> Json:
    applied = resource.get("protocolApplied", [{}])[0]
    return {
        "occurrence": resource.get("occurrenceDateTime"),
        "dose_number": applied.get("doseNumberPositiveInt"),
    }


def _procedure(resource: Json) -> Json:
    return {"performed": resource.get("performedDateTime"), **_place(resource)}


_READERS = {
    "Condition": _condition,
    "Observation": _observation,
    "MedicationStatement": _medication,
    "AllergyIntolerance": _allergy,
    "Immunization": _immunization,
    "Procedure": _procedure,
}


def _stated_code(concept: Json | None) -> str | None:
    """Return the code of a status; a text marks a status that the assertion gave."""
    return concept["coding"][0]["code"] if concept and "text" not in concept else None


def _place(resource: Json) -> Json:
    for site in resource.get("bodySite", ()):
        sides = [each["valueCode"] for each in _own(site, "laterality")]
        side = sides[0] if sides else None
        return {"laterality": side, "body_site": None if site["text"] == side else site["text"]}
    return {}


def _value(of: Json) -> Json:
    found: Json = of.get("valueQuantity") or of.get("valueRange") or {}
    return found


def _quantity(of: Json) -> Json:
    ends = (of["low"], of["high"]) if "low" in of else (of, {})
    first, second = ends
    printed = [each["valueString"] for each in _own(of, "printed")]
    return {
        "printed": printed[0],
        "number": _number(first),
        "high": _number(second),
        "comparator": first.get("comparator"),
        "unit": first.get("code"),
        "printed_unit": first.get("unit"),
    }


def _number(of: Json) -> str | None:
    """Return the digits of a quantity."""
    return str(of["value"]) if "value" in of else None


def _own(of: Json, name: str) -> list[Json]:
    return [each for each in of.get("extension", ()) if each["url"] == f"{PREFIX}{name}"]


def _parts(of: Json, name: str, lists: tuple[str, ...] = ()) -> Json:
    """Return the parts of a complex extension by name."""
    found: Json = {}
    for whole in _own(of, name):
        for part in whole["extension"]:
            ((kind, value),) = ((k, v) for k, v in part.items() if re.match("value[A-Z]", k))
            if kind in ("valueQuantity", "valueRange"):
                value = _quantity(value)
            if part["url"] in lists:
                found.setdefault(part["url"], []).append(value)
            else:
                found[part["url"]] = value
    return found
