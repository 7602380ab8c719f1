"""A bad item of a reply is left out and counted; too many bad items refuse the reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.core.errors import ErrorCode, ReplyError
from pipeline.providers.json_schema import wire_schema
from pipeline.providers.reply_parsing import read_reply, stored_output
from pipeline.providers.schemas import DiscoveryReply, EntityReply
from tests.support.emulator import entities_request

TOKEN = "ef" * 16
REQUEST = entities_request(token=TOKEN)
ENTITY = {"category": "medication", "page": 1, "quote": "metformin 500 mg", "name": "metformin"}
ZONE = {"zone_type": "medications", "page_start": 1, "page_end": 1}
VISIT = {"encounter_type": "imaging", "spans": [{"page": 1}]}
SECRET = "Odalys"


def text_of(entities: list[Any], **more: Any) -> str:
    return json.dumps({"item_token": TOKEN, "entities": entities, **more})


def read(text: str) -> EntityReply:
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
    output = read_reply(json.dumps({"candidates": [candidate]}), REQUEST).output
    assert isinstance(output, EntityReply)
    return output


BAD_ENTITIES = {
    "empty quote": {**ENTITY, "quote": ""},
    "no quote": {**ENTITY, "quote": None},
    "long quote": {**ENTITY, "quote": "x" * 2_001},
    "unknown category": {**ENTITY, "category": "Medication"},
    "number as value": {**ENTITY, "value": 7.2},
    "confidence in percent": {**ENTITY, "engine_confidence": 95},
    "unknown certainty": {**ENTITY, "certainty": "likely"},
    "page zero": {**ENTITY, "page": 0},
    "no name": {k: v for k, v in ENTITY.items() if k != "name"},
    "a list as dose": {**ENTITY, "dose": ["500 mg"]},
    "text": SECRET,
    "null": None,
    "a list": [ENTITY],
}


@pytest.mark.parametrize("bad", BAD_ENTITIES.values(), ids=BAD_ENTITIES.keys())
def test_a_bad_entity_costs_only_itself(bad: object) -> None:
    reply = read(text_of([ENTITY, ENTITY, bad, ENTITY, ENTITY]))

    assert [entity.name for entity in reply.entities] == ["metformin"] * 4
    assert reply.items_rejected == 1


@pytest.mark.parametrize(("good", "bad"), [(0, 1), (3, 1), (7, 2), (39, 10)])
def test_more_than_a_fifth_of_bad_entities_refuses_the_reply(good: int, bad: int) -> None:
    with pytest.raises(ReplyError) as raised:
        read(text_of([ENTITY] * good + [{**ENTITY, "quote": SECRET, "page": SECRET}] * bad))

    assert raised.value.code is ErrorCode.PARSE_SCHEMA
    assert SECRET not in str(raised.value)
    assert raised.value.__context__ is None


@pytest.mark.parametrize(("good", "bad"), [(4, 1), (8, 2), (40, 10)])
def test_a_fifth_of_bad_entities_is_left_out(good: int, bad: int) -> None:
    reply = read(text_of([ENTITY] * good + [{**ENTITY, "page": -1}] * bad))

    assert (len(reply.entities), reply.items_rejected) == (good, bad)


def test_bad_zones_never_refuse_a_reply() -> None:
    reply = read(text_of([ENTITY], zones=[{**ZONE, "zone_type": "attic"}, ZONE, SECRET]))

    assert (len(reply.entities), len(reply.zones), reply.items_rejected) == (1, 1, 2)


@pytest.mark.parametrize(
    "envelope",
    [
        {"unsupported_pages": ["last"]},
        {"language": None},
        {"zones": "none"},
        {"entities": {}},
        {"entities": None},
    ],
    ids=str,
)
def test_a_bad_envelope_refuses_the_reply(envelope: dict[str, Any]) -> None:
    with pytest.raises(ReplyError) as raised:
        read(json.dumps({"item_token": TOKEN, "entities": [ENTITY] * 9, **envelope}))

    assert raised.value.code is ErrorCode.PARSE_SCHEMA


def test_a_bad_envelope_is_refused_beside_a_bad_entity_too() -> None:
    with pytest.raises(ReplyError):
        read(text_of([ENTITY] * 9 + [None], language=None))


@pytest.mark.parametrize("claimed", [0, 7, -1, "many"])
def test_the_number_is_counted_and_never_taken_from_the_model(claimed: object) -> None:
    more = {"items_rejected": claimed}

    assert read(text_of([ENTITY], **more)).items_rejected == 0
    assert read(text_of([ENTITY] * 4 + [None], **more)).items_rejected == 1


def test_the_model_is_never_asked_for_the_number() -> None:
    for schema in (EntityReply, DiscoveryReply):
        assert "items_rejected" not in json.dumps(wire_schema(schema))


def test_a_stored_reply_obeys_the_same_rule() -> None:
    stored = f"Here:\n{text_of([ENTITY] * 4 + [None])}\nDone."

    output = stored_output(stored, EntityReply, TOKEN)

    assert isinstance(output, EntityReply)
    assert (len(output.entities), output.items_rejected) == (4, 1)
    with pytest.raises(ReplyError):
        stored_output(text_of([ENTITY, None]), EntityReply, TOKEN)
    with pytest.raises(ReplyError):
        stored_output(stored, EntityReply, "12" * 16)


def test_a_bad_encounter_costs_only_itself() -> None:
    visits = [VISIT] * 5 + [{**VISIT, "spans": []}]
    text = json.dumps({"item_token": TOKEN, "encounters": visits})

    output = stored_output(text, DiscoveryReply, TOKEN)

    assert isinstance(output, DiscoveryReply)
    assert (len(output.encounters), output.items_rejected) == (5, 1)
