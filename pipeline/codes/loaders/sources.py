"""The source of each system: the package that carries the codes, or the user's own file."""

from __future__ import annotations

from pathlib import Path

from pipeline.codes.loaders.cvx import Cvx
from pipeline.codes.loaders.files import UserFiles
from pipeline.codes.loaders.icd10cm import Icd10Cm
from pipeline.codes.loaders.loinc import LoincCsv, PackagedLoinc
from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode
from pipeline.codes.loaders.rows import CodeSource
from pipeline.codes.loaders.rxnorm import RxNorm
from pipeline.codes.loaders.snomed import SnomedCt
from pipeline.codes.loaders.unii import UniiNames
from pipeline.models.codes import SystemKey


def source_of(system: str, path: Path | None = None) -> CodeSource:
    """Return the source of a system; raise CodesError for an unknown system or a wrong path."""
    match system:
        case SystemKey.ICD10CM:
            if path is not None:
                raise CodesError(
                    f"{system} comes from an installed package; name no file.",
                    code=CodesErrorCode.CODES_FILE_NOT_USED,
                )
            return Icd10Cm()
        case SystemKey.UNII:
            return UniiNames(UserFiles(path) if path else None)
        case SystemKey.LOINC:
            return LoincCsv(UserFiles(path)) if path else PackagedLoinc()
        case SystemKey.RXNORM:
            return RxNorm(_given(system, path, "RXNCONSO.RRF"))
        case SystemKey.SNOMEDCT:
            return SnomedCt(_given(system, path, "the release in RF2"))
        case SystemKey.CVX:
            return Cvx(_given(system, path, "cvx.txt"))
    raise CodesError(
        f"{system} is no code system. The systems are {', '.join(SystemKey.values)}.",
        code=CodesErrorCode.CODES_SYSTEM_UNKNOWN,
    )


def _given(system: str, path: Path | None, content: str) -> UserFiles:
    if path is None:
        raise CodesError(
            f"No package carries {system}. Name your own copy: load_codes {system} FILE, with"
            f" {content}.",
            code=CodesErrorCode.CODES_FILE_NEEDED,
        )
    return UserFiles(path)


def is_packaged(source: CodeSource, stored: str) -> bool:
    """Return whether stored codes come from the package of `source`, in any version."""
    return stored.split(" ")[0] == source.name.split(" ")[0]
