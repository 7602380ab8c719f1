"""The reading of pages: files of eleven types in; text, words, confidences and images out.

Every library that parses a file runs in a killable child process (`child.py`). The parent runs only
the standard library, so a hostile file never harms the worker. The package knows no Django.
"""

from __future__ import annotations

from .client import open_and_read, probe, read_pages, render_page, slice_pages, warm
from .file_type import sniff, unsupported
from .model_phrases import addresses, with_addresses
from .types import (
    ADDRESSES_A_MODEL,
    ATTACHMENTS,
    ENCODING_GUESSED,
    FURTHER_PICTURES,
    HIDDEN_TEXT,
    LOST_CHARACTERS,
    PARTLY_DAMAGED,
    PARTLY_READ,
    RENDERED_SMALLER,
    REPAIRED,
    TEXT_LAYER_REJECTED,
    TEXT_TYPES,
    TRACKED_CHANGES,
    InputRefused,
    MediaType,
    PageRead,
    PageSource,
    Probe,
    ReaderError,
    ReaderLimits,
    RefusalCode,
    Region,
    Slice,
    Suspect,
    Word,
)
from .version import reader_version

__all__ = [
    "ADDRESSES_A_MODEL",
    "ATTACHMENTS",
    "ENCODING_GUESSED",
    "FURTHER_PICTURES",
    "HIDDEN_TEXT",
    "LOST_CHARACTERS",
    "PARTLY_DAMAGED",
    "PARTLY_READ",
    "RENDERED_SMALLER",
    "REPAIRED",
    "TEXT_LAYER_REJECTED",
    "TEXT_TYPES",
    "TRACKED_CHANGES",
    "InputRefused",
    "MediaType",
    "PageRead",
    "PageSource",
    "Probe",
    "ReaderError",
    "ReaderLimits",
    "RefusalCode",
    "Region",
    "Slice",
    "Suspect",
    "Word",
    "addresses",
    "open_and_read",
    "probe",
    "read_pages",
    "reader_version",
    "render_page",
    "slice_pages",
    "sniff",
    "unsupported",
    "warm",
    "with_addresses",
]
