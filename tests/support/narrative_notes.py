"""Sentences about fifteen written notes, in the style of a model, with the entities of the notes.

The entities have the attributes that the local engine published about the notes. The sentences were
written before their author read the words of the check.
"""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.clinical.facts import EntityFacts

_FIXTURES = Path(__file__).parents[1] / "fixtures"
FACTS: dict[str, EntityFacts] = {
    each["key"]: EntityFacts.of_json(each)
    for name in ("narrative_notes.json", "narrative_letters.json")
    for each in json.loads((_FIXTURES / name).read_text(encoding="utf-8"))
}


def _sentences(name: str) -> tuple[tuple[str, str], ...]:
    """Return each sentence of a file with the keys of its entities."""
    lines = (_FIXTURES / name).read_text(encoding="utf-8").splitlines()
    split = [line.partition(" | ") for line in lines if not line.startswith("#")]
    return tuple((text, keys) for keys, _, text in split)


TUNED = _sentences("narrative_notes.txt")
"""Sentences by which the check was mended."""
UNSEEN = _sentences("narrative_notes_unseen.txt")
"""Sentences that were written after the last change of the check, to measure the check."""
LETTERS = _sentences("narrative_letters.txt")
"""Sentences of discharge summaries, clinics and emergency departments, written in freer words."""
LETTERS_LATER = _sentences("narrative_letters_later.txt")
"""Sentences of other specialties, written after the check was mended by `LETTERS`."""
LETTERS_LAST = _sentences("narrative_letters_last.txt")
"""Sentences about the same entities, written after the last change of the check."""
