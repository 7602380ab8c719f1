"""Sentences that were written after the check was finished, to measure the check on new wording."""

from __future__ import annotations

USED: tuple[tuple[str, str], ...] = ()
