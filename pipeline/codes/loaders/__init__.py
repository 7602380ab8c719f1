"""The loaders of code systems.

`load` replaces the codes of one system in one transaction. Each reader turns one source into rows
and checks every row; a row that does not fit the format ends the load, and the old codes stay.
"""

from __future__ import annotations

from pipeline.codes.loaders.load import Loaded, ensure_loaded, load, own_file
from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode

__all__ = ["CodesError", "CodesErrorCode", "Loaded", "ensure_loaded", "load", "own_file"]
