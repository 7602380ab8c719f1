"""Turn a medication's state and its doses into entities.

Each step of a taper or a split dose is an entity. The dose before a change is an attribute of the
entity with the new dose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.clinical.medications.sig import Amount
from pipeline.providers.local.assertions.judgement import Assertion
from pipeline.providers.local.finding import Finding
from pipeline.providers.local.medications.cues import STOP_CUE, State
from pipeline.providers.local.medications.parts import Directions, DoseStep, Tense
from pipeline.providers.schemas import NOT_TAKEN, Experiencer, MedicationStatus

_STATUS: Mapping[State, MedicationStatus] = {
    State.ACTIVE: "active",
    State.STOPPED: "stopped",
    State.PAST: "stopped",
    State.HELD: "on_hold",
    State.PLANNED: "planned",
    State.NOT_TAKEN: "not_started",
    State.ERROR: "entered_in_error",
}
_PERSON: Mapping[State, Experiencer] = {State.RELATIVE: "family", State.OTHER_PERSON: "other"}
_CHANGED_TO = re.compile(
    r"\b(?:increas|decreas|reduc|lower|rais|(?:up|down)?-?titrat|uptitrat)(?:e|ed|es|ing)"
    r"(?:[ ](?:the|his|her|dose|back|up|down))*[ ]to[ ]*$",
    re.I,
)
"""A new dose whose old dose the sentence does not print (`Increase to losartan 100 mg`)."""
_HOLD_VERB = re.compile(
    r"\b(?:hold|stop|discontinue|pause|skip|withhold)(?:[ ](?:the|his|her|your|home))*[ ]*$", re.I
)
_DENIED = frozenset({State.STOPPED, State.HELD, State.NOT_TAKEN, State.ERROR})


def in_state(found: Finding, state: State | None, assertion: Assertion, opening: str) -> Finding:
    """Return the finding with the assertion and the status of a medication in a state.

    `opening` is the part of the sentence before the medication.
    """
    temporality, certainty = assertion.temporality, assertion.certainty
    status = _STATUS.get(state) if state is not None else None
    if status in (None, "active") and _CHANGED_TO.search(opening):
        status = "changed"
    elif state is None and certainty == "hypothetical":
        status = temporality = "planned"
    elif state is None and _is_listed(found, assertion):
        status = "active"
    if state in (State.STOPPED, State.PAST):
        temporality = "historical"
    elif state is State.PLANNED:
        temporality = "planned"
    elif temporality == "historical" and STOP_CUE.search(opening):
        temporality = "current"
    if state in (State.HELD, State.PLANNED):
        certainty = "hypothetical"
    if state is State.ACTIVE and _HOLD_VERB.search(opening):
        # `If the pressure is low, hold lisinopril` says that the patient takes lisinopril.
        certainty = "certain"
    if status == "active" and certainty in ("possible", "hypothetical"):
        # `Should we start a statin?` does not say whether the patient takes a statin.
        status = None
    return replace(
        found,
        negated=True if state in _DENIED else assertion.negated,
        temporality=temporality,
        certainty=certainty,
        experiencer=_PERSON.get(state, assertion.experiencer) if state else assertion.experiencer,
        status=status,
    )


def _is_listed(found: Finding, assertion: Assertion) -> bool:
    """Return whether a medication without a state is listed as a current medication."""
    return (
        found.zone == "medications"
        and assertion.negated is not True
        and assertion.temporality != "historical"
        and assertion.certainty in (None, "certain")
        and assertion.experiencer in (None, "patient")
    )


def is_set_aside(found: Finding) -> bool:
    """Return whether the patient does not take a published medication now."""
    return (
        found.status in NOT_TAKEN
        or found.negated is True
        or found.temporality in ("historical", "planned")
        or found.certainty in ("possible", "hypothetical")
        or found.experiencer in ("family", "other")
    )


def of_steps(
    text: str, found: Finding, steps: Sequence[DoseStep], directions: Directions
) -> list[Finding]:
    """Return the entities of all steps, in order."""
    now = [step for step in steps if step.role is Tense.CURRENT]
    old = [step for step in steps if step.role is Tense.OLD and step.dose] if now else []
    findings: list[Finding] = []
    number = 0
    for step in steps:
        if step in old:
            continue
        entity = _of_step(text, found, step, directions)
        if findings and step.kind is Amount.COUNT:
            # Later steps take pieces of the same product.
            entity = replace(entity, strength=entity.strength or findings[-1].strength)
        if step.role is Tense.CURRENT:
            number += 1
            entity = replace(entity, step=number if len(now) > 1 else None)
            entity = _changed(entity, old[-1]) if old else entity
            if directions.is_changed and entity.status in (None, "active"):
                entity = replace(entity, status="changed")
        findings.append(entity)
    return findings


def _changed(found: Finding, old: DoseStep) -> Finding:
    """Return the entity of a dose that has replaced an old dose. The quote contains both doses."""
    return replace(
        found,
        end=max(found.end, old.end),
        previous_dose=old.dose,
        status=found.status if found.status in NOT_TAKEN else "changed",
    )


def _of_step(text: str, found: Finding, step: DoseStep, directions: Directions) -> Finding:
    """Return the entity of one step. The quote reaches from the name to the end of the step."""
    parts = [found.end, step.end]
    if step.frequency:
        parts.append(step.frequency[1])
    if len(directions.steps) == 1:
        parts.append(directions.end)
    is_content = step.kind is Amount.CONTENT
    entity = replace(
        found,
        end=max(parts),
        strength=step.strength or (step.dose if is_content else None),
        dose=None if is_content else step.dose,
        route=step.route,
        frequency=directions.frequency(text, step),
    )
    if step.role is Tense.TARGET:
        return replace(entity, status="planned", temporality="planned", certainty="hypothetical")
    if step.role is Tense.OLD:
        return replace(entity, status="stopped", temporality="historical")
    return entity
