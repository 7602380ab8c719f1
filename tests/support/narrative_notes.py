"""Sentences about five written notes, in the style of a model, with the entities of the notes.

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
    for each in json.loads((_FIXTURES / "narrative_notes.json").read_text(encoding="utf-8"))
}
_ALL = tuple(
    (text.strip(), keys.strip())
    for keys, _, text in (
        line.partition("|")
        for line in (_FIXTURES / "narrative_notes.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
)
TUNED = _ALL[::2]
"""Sentences by which the check was mended."""
UNSEEN = _ALL[1::2]
"""Sentences that were read only for the final figure."""
