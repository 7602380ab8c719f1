"""Small files in the formats of the code systems. We wrote every row; no row is from a release.

The concepts and names are invented, except for identifiers that the formats themselves use.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from pipeline.codes.loaders.check_digits import is_sctid
from pipeline.codes.loaders.snomed import CONCEPT, DESCRIPTION, RELATIONSHIP

LOINC_HEADER = (
    '"LOINC_NUM","COMPONENT","PROPERTY","TIME_ASPCT","SYSTEM","SCALE_TYP","METHOD_TYP","CLASS",'
    '"VersionLastChanged","STATUS","CONSUMER_NAME","SHORTNAME","LONG_COMMON_NAME",'
    '"EXAMPLE_UCUM_UNITS"'
)
LOINC_ROWS = '''\
"10000-8","Toyose","MCnc","Pt","Ser","Qn","","CHEM","2.73","ACTIVE","Toyose, serum",\
"Toyose SerPl","Toyose [Mass/volume] in ""Serum""","mg/dL"
"10001-6","Toyase","CCnc","Pt","Ser","Qn","","CHEM","2.81","DISCOURAGED","","Toyase SerPl",\
"Toyase [Enzymatic activity/volume] in Serum","U/L"
"10002-4","Toyane","MCnc","Pt","Ser","Qn","","CHEM","2.7","DEPRECATED","","Toyane SerPl",\
"Toyane [Mass/volume] in Serum","mg/dL"
'''
LOINC = f"{LOINC_HEADER}\n{LOINC_ROWS}"

UNII = "\r\n".join(
    [
        "Name\tTYPE\tUNII\tDisplay Name",
        "TOYAMINE\tof\t0000000001\tTOYAMINE",
        "TOYAMINE [INN]\tcn\t0000000001\tTOYAMINE",
        "TOYLENOL\tbn\t0000000001\tTOYAMINE",
        "TY-1\tcd\t0000000001\tTOYAMINE",
        "2-TOY-ETHANE\tsys\t0000000002\tTOYETHANE",
        "",
    ]
)

CVX = "\n".join(
    [
        "901|toy vaccine|toy vaccine, live|Authored for a test.|Active|False|2024/05/28|",
        "902 |toy toxoid|toy toxoid, adsorbed||Inactive|False|2023/01/02|",
        "",
    ]
)
CVX_WITH_HEADER = "\n".join(
    [
        "CVX Code\tShort Description\tFull Vaccine Name\tNote\tStatus\tNonvaccine\tLast Updated",
        "901\ttoy vaccine\ttoy vaccine, live\t\tActive\tFalse\t5/28/2024",
        "",
    ]
)


def _name(
    rxcui: int, term_type: str, text: str, source: str = "RXNORM", suppress: str = "N"
) -> str:
    empty = [""] * 9
    cells = [str(rxcui), "ENG", *empty, source, term_type, str(rxcui), text, "", suppress, ""]
    return "|".join(cells) + "|"


def _relation(first: int, relation: str, second: int) -> str:
    return f"{first}||CUI|RO|{second}||CUI|{relation}|||RXNORM||||||"


RXNCONSO = "\n".join(
    [
        _name(9000003, "PSN", "toyamine 5 MG Oral Tablet, prescribable"),
        _name(9000001, "IN", "toyamine"),
        _name(9000002, "BN", "Toylenol"),
        _name(9000003, "SCD", "toyamine 5 MG Oral Tablet"),
        _name(9000003, "SY", "Toyamine 5 mg tablet"),
        _name(9000003, "CD", "toyamine from another source", source="OTHER"),
        _name(9000004, "IN", "old toyamine", suppress="O"),
        "",
    ]
)
RXNREL = "\n".join(
    [
        _relation(9000001, "has_ingredient", 9000003),
        _relation(9000001, "tradename_of", 9000002),
        _relation(9000001, "has_ingredient", 9000004),
        "",
    ]
)


def sctid(body: str) -> str:
    """Return an identifier of SNOMED CT: digits and the fitting check digit."""
    return next(body + digit for digit in "0123456789" if is_sctid(body + digit))


MODULE, DEFINED, CASE = "900000000000207008", "900000000000074008", "900000000000448009"
ROOT, CHILD, RETIRED = sctid("99900000"), sctid("99900001"), sctid("99900002")


def _rf2(header: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    return "\r\n".join("\t".join(cells) for cells in (header, *rows)) + "\r\n"


def _description(at: int, concept: str, kind: str, term: str, active: str = "1") -> tuple[str, ...]:
    own = sctid(f"9990{at:04}01")
    return own, "20250101", active, MODULE, concept, "en", kind, term, CASE


def _relationship(at: int, source: str, target: str, active: str = "1") -> tuple[str, ...]:
    inferred, some = "900000000000011006", "900000000000451002"
    own = sctid(f"9990{at:04}02")
    return (
        own, "20250101", active, MODULE, source, target, "0", "116680003", inferred, some,
    )  # fmt: skip


FSN, SYN = "900000000000003001", "900000000000013009"
SNOMED = {
    "Snapshot/Terminology/sct2_Concept_Snapshot_TOY_20250101.txt": _rf2(
        CONCEPT,
        (ROOT, "20250101", "1", MODULE, DEFINED),
        (CHILD, "20250101", "1", MODULE, DEFINED),
        (RETIRED, "20250101", "0", MODULE, DEFINED),
    ),
    "Snapshot/Terminology/sct2_Description_Snapshot-en_TOY_20250101.txt": _rf2(
        DESCRIPTION,
        _description(1, CHILD, SYN, "Toy itch"),
        _description(2, ROOT, FSN, "Toy finding (finding)"),
        _description(3, CHILD, FSN, "Toy pruritus (finding)"),
        _description(4, CHILD, SYN, "Toy scratch", active="0"),
        _description(5, RETIRED, FSN, "Old toy (finding)"),
    ),
    "Snapshot/Terminology/sct2_Relationship_Snapshot_TOY_20250101.txt": _rf2(
        RELATIONSHIP,
        _relationship(1, CHILD, ROOT),
        _relationship(2, RETIRED, ROOT),
        _relationship(3, CHILD, RETIRED),
    ),
    "Full/Terminology/sct2_Concept_Full_TOY_20250101.txt": "not read",
}


def write_folder(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder, with the ends of lines as given, and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def write_archive(path: Path, files: dict[str, str]) -> Path:
    """Write files into a zip archive and return its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path
