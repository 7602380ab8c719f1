"""The stored output of a work item, compressed while its row waits in memory for publication.

An encounter is published when its last item ends, so a large step holds the outputs of thousands of
items. As dictionaries they need some twenty times the memory.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

LEVEL = 1
"""The fastest compression; an output shrinks to a fifth."""


class PackedOutput(Mapping[str, Any]):
    """An output as compressed JSON. Every access reads the JSON again; `unpacked` reads once."""

    __slots__ = ("_packed",)

    def __init__(self, output: Mapping[str, Any]) -> None:
        text = json.dumps(dict(output), ensure_ascii=False)
        self._packed = zlib.compress(text.encode("utf-8", "surrogatepass"), LEVEL)

    def __getitem__(self, name: str) -> Any:
        return self.unpacked()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.unpacked())

    def __len__(self) -> int:
        return len(self.unpacked())

    def __repr__(self) -> str:
        return f"PackedOutput({self.size} bytes)"

    @property
    def size(self) -> int:
        """The number of bytes in memory."""
        return len(self._packed)

    def unpacked(self) -> dict[str, Any]:
        """Return the output."""
        text = zlib.decompress(self._packed).decode("utf-8", "surrogatepass")
        output: dict[str, Any] = json.loads(text)
        return output
