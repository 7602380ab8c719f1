"""The source of each system: the package that carries the codes, or the user's own file."""

from __future__ import annotations

from pathlib import Path

from pipeline.codes.loaders.icd10cm import Icd10Cm
from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode
from pipeline.codes.loaders.rows import Source
from pipeline.models.codes import SystemKey


def source_of(system: str, path: Path | None = None) -> Source:
    """Return the source of a system; raise CodesError for an unknown system or a wrong path."""
    match system:
        case SystemKey.ICD10CM:
            if path is not None:
                raise CodesError(
                    f"{system} comes from an installed package; name no file.",
                    code=CodesErrorCode.CODES_FILE_NOT_USED,
                )
            return Icd10Cm()
    raise CodesError(
        f"{system} is no code system. The systems are {', '.join(SystemKey.values)}.",
        code=CodesErrorCode.CODES_SYSTEM_UNKNOWN,
    )


def is_packaged(source: Source, stored: str) -> bool:
    """Return whether stored codes come from the package of `source`, in any version."""
    return stored.split(" ")[0] == source.name.split(" ")[0]
