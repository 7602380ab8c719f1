"""The version of the reader: equal versions read equal text from equal bytes.

The version follows from the reader's own code and from the libraries below it, so no change of the
reader can be forgotten here.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_LIBRARIES = ("pypdfium2", "tesserocr", "pillow", "pi-heif")


@lru_cache(maxsize=1)
def reader_version() -> str:
    """Return 16 hex digits of the digest of the reader's code and libraries."""
    # Each child of the reader imports this package, and none asks for the version.
    import hashlib
    from importlib import metadata

    digest = hashlib.sha256()
    for path in sorted(_files()):
        digest.update(path.read_bytes())
    for name in _LIBRARIES:
        digest.update(f"{name} {metadata.version(name)}".encode())
    return digest.hexdigest()[:16]


def _files() -> list[Path]:
    """Return the code and the lists of the reader."""
    here = Path(__file__).parent
    return [*here.rglob("*.py"), *here.rglob("*.txt")]
