"""Whose record it is, and which encounters name somebody else.

May import `identity` and this package's `outcome`; pure. An encounter that may be another
patient's is held for review; one that names nobody is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.identity import Identity, Verdict, compare, compare_digests, digests, dominant
from pipeline.stages.pass05.outcome import Decision, Encounter, Rule


def held_encounters(
    encounters: Sequence[Encounter],
    known: Mapping[str, str] | Identity | None,
    key: bytes,
    log: list[Decision],
) -> tuple[Identity | None, set[str]]:
    """Return the record's own patient and the encounters that are held for review."""
    weighted = [(e.patient, float(sum(map(len, e.spans)))) for e in encounters]
    own = dominant(weighted)
    stated = [e for e in encounters if e.patient.stated]
    held: dict[str, tuple[Rule, tuple[str, ...]]] = {}
    if not known and own is None:
        for e in stated:
            if any(compare(e.patient, other.patient).disagrees for other in stated):
                held[e.key] = (Rule.PATIENT_AMBIGUOUS, ("several_people",))
    else:
        for e in stated:
            verdict = _against(e.patient, own, known, key)
            if verdict.disagrees:
                held[e.key] = (Rule.PATIENT_MISMATCH, verdict.reasons)
    for e in encounters:
        if e.key in held:
            rule, reasons = held[e.key]
            log.append(
                Decision(
                    rule=rule,
                    chunks=tuple(sorted({m.chunk_index for m in e.members})),
                    subjects=(e.key,),
                    outcome="held",
                    reason=" ".join(reasons),
                )
            )
    return own, set(held)


def _against(
    seen: Identity, own: Identity | None, known: Mapping[str, str] | Identity | None, key: bytes
) -> Verdict:
    """Judge an encounter's patient against the record's.

    Digests cannot see a scanner's slip, so what the record itself says of its patient, where that
    agrees with what is known, may speak for an encounter.
    """

    def judge(identity: Identity) -> Verdict:
        if isinstance(known, Identity):
            return compare(known, identity)
        return compare_digests(known or {}, digests(identity, key))

    direct = judge(seen)
    if own is None or direct.agrees:
        return direct
    through = compare(own, seen)
    if not known:
        return through
    record = judge(own)
    if record.agrees and not through.disagrees:
        return through
    if record.disagrees or direct.disagrees:
        return direct
    return through
