"""Whether the entities that a sentence cites state everything in the sentence."""

from __future__ import annotations

from pipeline.clinical.narrative.check import check, check_known
from pipeline.clinical.narrative.known import CitedEntity, known_of
from pipeline.clinical.narrative.reasons import UnsupportedReason, reason

__all__ = ["CitedEntity", "UnsupportedReason", "check", "check_known", "known_of", "reason"]
