"""The exception of the embedded servers."""

from __future__ import annotations


class EmbeddedError(Exception):
    """An embedded server cannot be found, started or stopped; the message is one line."""
