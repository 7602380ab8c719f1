"""Whether the entities that a sentence cites state everything in the sentence."""

from __future__ import annotations

from pipeline.clinical.narrative.check import check
from pipeline.clinical.narrative.reasons import UnsupportedReason, reason

__all__ = ["UnsupportedReason", "check", "reason"]
