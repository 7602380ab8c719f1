"""The local engine gives one answer per prompt, with quotes at their true places."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import CallError, ErrorCode
from pipeline.core.types import PageSlice
from pipeline.providers.base import Provider, Request
from pipeline.providers.local import LocalProvider, answer
from pipeline.providers.prompts import render_discovery, render_entities
from pipeline.providers.schemas import DiscoveryReply, EntityReply

TOKEN = "0123456789abcdef"
NOTE = (
    "PMH: HTN, asthma\nMedications:\n- Lisinopril 20 mg PO daily\nDenies fever, chills or cough.\n"
)


def ask(*slices: PageSlice, zones: bool = False) -> EntityReply:
    reply = answer(render_entities(TOKEN, slices, include_zones=zones))
    assert isinstance(reply, EntityReply)
    return reply


def page(text: str, number: int = 1, start: int = 0, *, context: bool = False) -> PageSlice:
    return PageSlice(page=number, start=start, text=text, context=context)


def request(prompt: str) -> Request:
    return Request(
        item_token=TOKEN,
        prompt=prompt,
        schema=EntityReply,
        max_output_tokens=1_000,
        deadline_s=5.0,
        prompt_version="1",
        estimated_input_tokens=1,
    )


def test_a_reply_echoes_the_token_and_carries_its_facts() -> None:
    provider: Provider = LocalProvider()
    prompt = render_entities(TOKEN, [page(NOTE)], include_zones=False)

    reply = provider.generate(request(prompt))

    assert isinstance(reply.output, EntityReply)
    assert reply.output.item_token == TOKEN
    assert reply.details.model_version == provider.model
    assert reply.details.response_id.startswith("local-")
    assert reply.details.input_tokens == len(prompt) // 4 + 1
    assert reply.details.output_tokens > 0
    assert json.loads(reply.details.raw_reply)["item_token"] == TOKEN


def test_the_same_prompt_gets_the_same_reply() -> None:
    prompt = render_entities(TOKEN, [page(NOTE)], include_zones=True)

    first, second = (LocalProvider().generate(request(prompt)) for _ in range(2))

    assert first == second


def test_a_foreign_prompt_is_refused_without_its_text() -> None:
    with pytest.raises(CallError) as refused:
        LocalProvider().generate(request("tell me about Mr Secret"))

    assert refused.value.code is ErrorCode.API_4XX
    assert "Secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_discovery_prompt_gets_a_discovery_reply() -> None:
    reply = answer(render_discovery(TOKEN, [page("OFFICE VISIT\nDate of Service: 03/11/2024\n")]))

    assert isinstance(reply, DiscoveryReply)
    assert reply.item_token == TOKEN


def test_nothing_is_reported_from_context() -> None:
    reply = ask(
        page("History of asthma.", 1, context=True),
        page("Denies fever.", 2),
        page("Takes aspirin 81 mg daily.", 3, context=True),
    )

    assert [(e.page, e.quote) for e in reply.entities] == [(2, "fever")]


def test_an_entity_may_read_on_into_the_context_but_its_quote_stays_on_its_page() -> None:
    reply = ask(
        page("She was started on metoprolol succinate", 4, 100),
        page("25 mg PO daily for rate control.", 5, context=True),
    )

    (drug,) = reply.entities
    assert (drug.page, drug.start, drug.quote) == (4, 119, "metoprolol succinate")
    assert (drug.dose, drug.route, drug.frequency) == ("25 mg", "PO", "daily")


def test_a_term_broken_by_a_page_end_is_quoted_from_the_page_it_begins_on() -> None:
    reply = ask(page("a long history of congestive heart", 1), page("failure and gout.", 2))

    assert [(e.page, e.quote, e.name) for e in reply.entities] == [
        (1, "congestive heart", "congestive heart failure"),
        (2, "gout", "gout"),
    ]


def test_two_slices_of_one_page_that_touch_are_read_as_one_text() -> None:
    reply = ask(page("Known chest ", 1, 50), page("pain today.", 1, 62, context=True))

    (pain,) = reply.entities
    assert (pain.start, pain.quote) == (56, "chest pain")


def test_offsets_count_from_the_beginning_of_the_page() -> None:
    reply = ask(page("Asthma is stable.", 7, 1_234))

    assert [(e.page, e.start, e.quote) for e in reply.entities] == [(7, 1_234, "Asthma")]


def test_zones_are_given_only_where_they_are_asked_for() -> None:
    without, with_zones = ask(page(NOTE)), ask(page(NOTE), zones=True)

    assert without.zones == []
    assert {e.zone for e in without.entities} == {None}
    assert [z.zone_type for z in with_zones.zones] == ["past_medical_history", "medications"]
    assert with_zones.entities[0].zone == "past_medical_history"


def test_every_entity_names_its_rule() -> None:
    reply = ask(page(NOTE))

    assert reply.entities
    assert all(e.rule and 0 < e.engine_confidence <= 1 for e in reply.entities)


def test_a_prefix_that_opens_every_line_is_not_part_of_the_text() -> None:
    lines = ["PAST MEDICAL HISTORY:", "congestive", "heart failure,", "asthma and", "gout", "done"]

    reply = ask(page("\n".join(f"Text: {line}" for line in lines)))

    assert [e.name for e in reply.entities][-2:] == ["asthma", "gout"]
    assert "Text" not in {e.name for e in reply.entities}


def test_names_of_people_are_not_read_as_diseases() -> None:
    reply = ask(page("Seen by Dr. Gallop and Dr. Pain. Attending: Burns, Angina\nNo cough."))

    assert [e.name for e in reply.entities] == ["cough"]


_WORDS = st.sampled_from(
    (
        *("denies", "fever", "cough,", "asthma.", "Lisinopril", "20", "mg", "PO", "daily", "BP"),
        *("118/76", "Hgb", "10.2", "g/dL", "\n", "\n\n", "-", "PMH:", "ALLERGIES", "Penicillin"),
        *("(hives)", "no", "known", "drug", "allergies", "1.", "|", "Sodium", "138", "mmol/L"),
        *("135-145", "é", "µ", "汉", "n/v/d", "Text:", "q6h", "(", ")", "[", "%", "<", ">", "½"),
        *("TEST RESULT FLAG UNITS\n", "Time BP HR RR\n", "\t", "\r\n", "IMMUNIZATIONS\n", "Td"),
    )
)


@settings(max_examples=150)
@given(
    texts=st.lists(st.lists(_WORDS, max_size=40).map(" ".join), min_size=1, max_size=4),
    data=st.data(),
)
def test_every_quote_is_on_its_page_at_its_offset_and_within_an_own_slice(
    texts: list[str], data: st.DataObject
) -> None:
    slices = [
        page(text, number, data.draw(st.integers(0, 50)), context=data.draw(st.booleans()))
        for number, text in enumerate(texts, start=1)
    ]
    by_page = {s.page: s for s in slices}

    reply = ask(*slices, zones=True)

    for entity in reply.entities:
        source = by_page[entity.page]
        assert not source.context
        assert entity.start is not None
        at = entity.start - source.start
        assert source.text[at : at + len(entity.quote)] == entity.quote
    positions = [(e.page, e.start) for e in reply.entities]
    assert positions == sorted(positions, key=lambda p: (p[0], p[1] or 0))
