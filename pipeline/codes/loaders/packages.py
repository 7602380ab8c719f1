"""The data files inside installed packages, found without an import of the package.

An import would run the package's code: simple-icd-10-cm then holds 193 MB.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode


def data_folder(module: str, install: str) -> Path:
    """Return the folder `data` of a package.

    `install` is the command that installs the package; the refusal of a missing package names it.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise CodesError(
            f"The package {module} is not installed. `{install}` installs it.",
            code=CodesErrorCode.CODES_PACKAGE_MISSING,
        )
    return Path(spec.origin).parent / "data"


def only_file(folder: Path, pattern: str) -> Path:
    """Return the one file of a package's folder that has a name like `pattern`."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise CodesError(
            f"The package has {len(found)} files {pattern} instead of one. Install it again.",
            code=CodesErrorCode.CODES_FILE_MISSING,
        )
    return found[0]


UNKNOWN = "(unknown version)"


def name_with_version(distribution: str) -> str:
    """Return `simple-icd-10-cm 1.5.0`; the version is that of the installed package."""
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{distribution} {UNKNOWN}"
