"""The shared state of the rules that read one document: words, lines, sentences, zones, entities.

Rules add entities to `found`. Text that a rule has claimed is not read again by a later rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.providers.local.assertions import Assertion, Assertions
from pipeline.providers.local.document import Document
from pipeline.providers.local.finding import Finding
from pipeline.providers.local.lines import PrintedLine, Sentence, lines_of, sentences_of
from pipeline.providers.local.tokens import Token, tokenize
from pipeline.providers.local.zones import Zones, zones_of


@dataclass(kw_only=True)
class DocumentState:
    """The state that the rules of one request share; it lives as long as the request."""

    document: Document
    text: str = field(repr=False)
    lines: list[PrintedLine] = field(repr=False)
    sentences: list[Sentence]
    tokens: list[Token] = field(repr=False)
    zones: Zones
    assertions: Assertions
    findings: list[Finding] = field(default_factory=list, repr=False)
    no_known_allergies: bool | None = None
    _claimed: bytearray = field(repr=False)
    """One byte per character; 1 if a rule has claimed the character."""

    @classmethod
    def of(cls, document: Document) -> DocumentState:
        """Prepare a document for the rules."""
        lines = lines_of(document.text)
        sentences = sentences_of(document.text, lines)
        zones = zones_of(document.text, lines)
        tokens = tokenize(document.text)
        return cls(
            document=document,
            text=document.text,
            lines=lines,
            sentences=sentences,
            tokens=tokens,
            zones=zones,
            assertions=Assertions(document.text, sentences, zones),
            _claimed=bytearray(len(document.text)),
        )

    def add(self, finding: Finding) -> None:
        """Add an entity and claim its text."""
        self.findings.append(finding)
        self.claim(finding.start, finding.end)

    def claim(self, start: int, end: int) -> None:
        """Keep later rules away from `text[start:end]`."""
        self._claimed[start:end] = b"\1" * (end - start)

    def is_claimed(self, start: int, end: int) -> bool:
        """Return whether any of `text[start:end]` is claimed."""
        return self._claimed.find(1, start, end) >= 0

    def judge(self, start: int, end: int, *, lasting: bool = False) -> Assertion:
        """Judge the mention at `text[start:end]`; `lasting` marks a chronic disease."""
        return self.assertions.judge(start, end, lasting=lasting)
