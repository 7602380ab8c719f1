"""What a preview showed, as its form carries it: a short digest of each job and its part.

Imports values of the pipeline. The filter is asked again when an action is started; what it finds
beyond the preview is not taken up.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import astuple
from hashlib import sha256

from pipeline.operations.preview import Candidate

LENGTH = 8
"""Characters for a job: 48 bits, so that of 10,000 none is taken for another."""


def seen_of(eligible: Iterable[Candidate]) -> str:
    """Return what was shown as one word; it holds no id."""
    return "".join(sorted(map(_digest, eligible)))


class Seen:
    """What somebody has seen of a preview."""

    def __init__(self, text: str) -> None:
        self._digests = {text[at : at + LENGTH] for at in range(0, len(text), LENGTH)}

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, candidate: Candidate) -> bool:
        return _digest(candidate) in self._digests


def _digest(of: Candidate) -> str:
    parts = [None if ids is None else sorted(map(str, ids)) for ids in astuple(of.scope)]
    return urlsafe_b64encode(sha256(f"{of.job_id} {parts}".encode()).digest())[:LENGTH].decode()
