"""The preview in the form's hidden field: a short digest of each job and its part.

Starting an operation evaluates the filter again. Jobs that were not in the preview are left out.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256

from pipeline.operations.preview import RetryCandidate

BYTES = 6
LENGTH = 8
"""Characters per job: 48 bits, enough that no two of 10,000 jobs have the same digest."""


def preview_digest_of(eligible: Iterable[RetryCandidate]) -> str:
    """Return the digests of a preview as one word, free of ids."""
    # Six bytes become eight characters without a remainder, so all are encoded at once.
    return urlsafe_b64encode(b"".join(sorted(map(_bytes, eligible)))).decode()


class PreviewDigest:
    """The jobs that the user has seen in a preview."""

    def __init__(self, text: str) -> None:
        self._digests = {text[at : at + LENGTH] for at in range(0, len(text), LENGTH)}

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, candidate: RetryCandidate) -> bool:
        return urlsafe_b64encode(_bytes(candidate)).decode() in self._digests


def _bytes(candidate: RetryCandidate) -> bytes:
    scope = candidate.scope
    seen = candidate.job_id.bytes
    if not scope.is_all:
        parts = [
            None if ids is None else sorted(map(str, ids))
            for ids in (scope.encounters, scope.items)
        ]
        seen += str(parts).encode()
    return sha256(seen).digest()[:BYTES]
