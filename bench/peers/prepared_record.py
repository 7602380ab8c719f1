"""Submit two records, run them up to Pass 1 with the local engine, and write their prompts.

`python -m bench.peers.prepared_record FOLDER`, a process of its own: for `first.pdf` and `then.pdf`
it writes `first.json` and `then.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PLACEHOLDER = "0" * 32
"""Takes the place of the item token in a written prompt."""
PRIORITIES = {"first": 100, "then": 0}
"""The record of one page runs before the clock starts, so it has the higher priority."""


def main() -> int:
    """Prepare both records."""
    import django

    django.setup()
    from django.test import override_settings

    from pipeline.operations import operator_actions
    from pipeline.stages.intake import Submission
    from pipeline.workers import run_step

    folder = Path(sys.argv[1])
    for name, priority in PRIORITIES.items():
        with override_settings(MEDPROC_PROVIDER="local"):
            received = operator_actions.record_submit(
                Submission(path=folder / f"{name}.pdf", priority=priority)
            )
            run_step.run_step("pages")
            run_step.run_step("pass05")
        plan = json.dumps(_plan_of(received.shell_file_id))
        (folder / f"{name}.json").write_text(plan, "utf-8")
    return 0


def _plan_of(record: Any) -> dict[str, Any]:
    """Return the prompts that Pass 1 will render, the places of their text, and the call options.

    The plan is computed here as the step computes it, and stored only by the step.
    """
    from django.conf import settings

    from pipeline.models import Encounter, selectors
    from pipeline.providers.gemini import THINKING
    from pipeline.providers.json_schema import wire_schema
    from pipeline.providers.prompts import render_entities
    from pipeline.providers.schemas import EntityReply
    from pipeline.stages.pass1.entity_rows import EncounterText
    from pipeline.stages.pass1.planner import plan
    from pipeline.stages.pass1.run import MAX_OUTPUT_TOKENS

    spans, pages = selectors.spans_by_encounter(record), selectors.page_texts(record)
    encounters = Encounter.objects.filter(shell_file_id=record).order_by("encounter_index")
    items = []
    for encounter in encounters:
        text = EncounterText(batches=plan(spans.get(encounter.id, ()), pages), pages=pages)
        for batch in text.batches:
            prompt = render_entities(
                PLACEHOLDER,
                text.slices(batch.index),
                include_zones=not settings.PASS1_DISABLE_ZONES,
            )
            place = f"entities {batch.spans[0].page}:{batch.spans[0].start}"
            items.append({"prompt": prompt, "place": place, "size": encounter.character_count})
    model = settings.GEMINI_MODEL
    thinking = next(thinking for prefix, thinking in THINKING if model.startswith(prefix))
    config = {
        "response_mime_type": "application/json",
        "response_json_schema": wire_schema(EntityReply),
        "max_output_tokens": MAX_OUTPUT_TOKENS,
        "thinking_config": thinking.model_dump(mode="json", exclude_none=True),
    }
    return {"items": items, "config": config, "model": model}


if __name__ == "__main__":
    sys.exit(main())
