"""The readers of code systems yield the rows of a file, or name the first wrong row."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from medproc.env import PROJECT_ROOT
from pipeline.codes.loaders import CodesError, CodesErrorCode
from pipeline.codes.loaders.check_digits import is_loinc, is_sctid
from pipeline.codes.loaders.files import LONGEST_LINE
from pipeline.codes.loaders.icd10cm import cited
from pipeline.codes.loaders.rows import CodeRow, PropertyRow, TermRow
from pipeline.codes.loaders.sources import source_of
from pipeline.models.codes import SystemKey
from tests.support import code_files
from tests.support.code_files import CVX, LOINC, RXNCONSO, RXNREL, SNOMED, UNII

NAMES = {
    "LOINC": "Loinc.csv",
    "UNII": "UNII_Names.txt",
    "CVX": "cvx.txt",
    "RXNORM": "RXNCONSO.RRF",
}
TEXTS = {"LOINC": LOINC, "UNII": UNII, "CVX": CVX, "RXNORM": RXNCONSO}


def read(system: str, path: Path) -> list[CodeRow | TermRow | PropertyRow]:
    """Return all rows of a file, after the version and the digest as a load reads them."""
    source = source_of(system, path)
    assert source.digest()
    assert source.version()
    return list(source.rows())


def refused(system: str, path: Path) -> CodesError:
    """Return the refusal of a file; its message is one line."""
    with pytest.raises(CodesError) as caught:
        read(system, path)
    assert "\n" not in caught.value.message
    return caught.value


def write(folder: Path, system: str, content: str | bytes) -> Path:
    """Write the file of a system with other content."""
    path = folder / NAMES[system]
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("code", ["4548-4", "2345-7", "85354-9", "8480-6", "718-7"])
def test_the_check_digit_of_loinc_is_known(code: str) -> None:
    body, digit = code.split("-")

    assert is_loinc(code)
    assert not any(is_loinc(f"{body}-{other}") for other in "0123456789" if other != digit)
    assert not is_loinc(f" {code}")
    assert not is_loinc(code.replace("-", ""))


@pytest.mark.parametrize("code", ["116680003", "138875005", "900000000000003001"])
def test_the_check_digit_of_snomed_ct_is_known(code: str) -> None:
    assert is_sctid(code)
    assert not any(is_sctid(code[:-1] + other) for other in "0123456789" if other != code[-1])
    swapped = f"{code[1]}{code[0]}{code[2:]}"
    assert code[0] == code[1] or not is_sctid(swapped)


def test_every_packaged_loinc_code_has_its_check_digit_and_the_vital_signs_are_thirteen() -> None:
    rows = [row for row in source_of("LOINC").rows() if isinstance(row, CodeRow)]

    assert all(is_loinc(row.code) for row in rows)
    assert len(rows) == len({row.code for row in rows}) == 146
    assert sum(row.kind == "vital sign" for row in rows) == 13
    glucose = next(row for row in rows if row.code == "2345-7")
    assert glucose.properties == {
        "specimens": ["serum", "plasma"],
        "units": "mg/dL",
        "si_units": "mmol/L",
        "si_factor": 0.05551,
    }


def test_loinc_csv_gives_every_code_that_is_not_deprecated(tmp_path: Path) -> None:
    path = write(tmp_path, "LOINC", "\ufeff" + LOINC)

    rows = read("LOINC", path)

    codes = {row.code: row for row in rows if isinstance(row, CodeRow)}
    assert set(codes) == {"10000-8", "10001-6"}
    assert codes["10000-8"].display == 'Toyose [Mass/volume] in "Serum"'
    assert codes["10001-6"].properties["status"] == "DISCOURAGED"
    assert TermRow(code="10000-8", text="Toyose, serum", kind="consumer") in rows
    assert source_of("LOINC", path).version() == "2.81"


def test_unii_gives_official_common_and_brand_names_of_a_substance(tmp_path: Path) -> None:
    rows = read("UNII", write(tmp_path, "UNII", UNII))

    assert rows == [
        CodeRow(
            code="0000000001", display="TOYAMINE", kind="of", properties={"registers": ["INN"]}
        ),
        TermRow(code="0000000001", text="TOYAMINE", kind="of"),
        TermRow(code="0000000001", text="TOYAMINE", kind="cn"),
        TermRow(code="0000000001", text="TOYLENOL", kind="bn"),
    ]


@pytest.mark.parametrize("text", [CVX, code_files.CVX_WITH_HEADER])
def test_cvx_reads_bars_and_tabs(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "CVX", text)

    rows = read("CVX", path)

    first = next(row for row in rows if isinstance(row, CodeRow))
    assert (first.code, first.display, first.kind) == ("901", "toy vaccine", "active")
    assert TermRow(code="901", text="toy vaccine, live", kind="synonym") in rows
    assert source_of("CVX", path).version() == "2024-05-28"


@pytest.mark.parametrize("put", [code_files.write_folder, code_files.write_archive])
def test_rxnorm_reads_its_own_names_and_relations(
    tmp_path: Path, put: Callable[[Path, dict[str, str]], Path]
) -> None:
    files = {
        "rrf/RXNCONSO.RRF": RXNCONSO,
        "rrf/RXNREL.RRF": RXNREL,
        "prescribe/rrf/RXNCONSO.RRF": "a smaller edition",
    }
    path = put(tmp_path / "RxNorm_full_11032025.zip", files)

    rows = read("RXNORM", path)

    codes = {row.code: (row.kind, row.display) for row in rows if isinstance(row, CodeRow)}
    assert codes == {
        "9000001": ("IN", "toyamine"),
        "9000002": ("BN", "Toylenol"),
        "9000003": ("SCD", "toyamine 5 MG Oral Tablet"),
    }
    assert not any("another source" in getattr(row, "text", "") for row in rows)
    assert PropertyRow(code="9000003", name="has_ingredient", value="9000001") in rows
    assert PropertyRow(code="9000002", name="tradename_of", value="9000001") in rows
    assert source_of("RXNORM", path).version() == "2025-11-03"


@pytest.mark.parametrize("put", [code_files.write_folder, code_files.write_archive])
def test_snomed_ct_reads_active_concepts_names_and_parents(
    tmp_path: Path, put: Callable[[Path, dict[str, str]], Path]
) -> None:
    path = put(tmp_path / "release.zip", SNOMED)

    rows = read("SNOMEDCT", path)

    assert [row for row in rows if isinstance(row, CodeRow)] == [
        CodeRow(code=code_files.ROOT, display="Toy finding (finding)", kind="finding"),
        CodeRow(code=code_files.CHILD, display="Toy pruritus (finding)", kind="finding"),
    ]
    assert [row for row in rows if isinstance(row, TermRow)] == [
        TermRow(code=code_files.CHILD, text="Toy itch", kind="synonym")
    ]
    assert [row for row in rows if isinstance(row, PropertyRow)] == [
        PropertyRow(code=code_files.CHILD, name="parents", value=code_files.ROOT)
    ]
    assert source_of("SNOMEDCT", path).version() == "20250101"


def test_a_folder_and_its_archive_have_the_same_digest(tmp_path: Path) -> None:
    folder = code_files.write_folder(tmp_path / "release", SNOMED)
    archive = code_files.write_archive(tmp_path / "release.zip", SNOMED)

    assert source_of("SNOMEDCT", folder).digest() == source_of("SNOMEDCT", archive).digest()


@pytest.mark.parametrize("system", NAMES)
def test_hostile_bytes_are_refused(tmp_path: Path, system: str) -> None:
    text = TEXTS[system]
    first, rest = text.split("\n", 1)
    variants: dict[bytes, CodesErrorCode] = {
        b"": CodesErrorCode.CODES_EMPTY,
        text.encode("utf-16"): CodesErrorCode.CODES_ENCODING,
        text.encode() + b"\xf6\n": CodesErrorCode.CODES_ENCODING,
        text.encode() + b"\0\n": CodesErrorCode.CODES_ENCODING,
        b"PK\x03\x04 not an archive\n": CodesErrorCode.CODES_HEADER,
        text.rstrip().encode(): CodesErrorCode.CODES_ROW,
        b"hello\n": CodesErrorCode.CODES_HEADER,
        f"{first}\n{'x' * (LONGEST_LINE + 1)}".encode(): CodesErrorCode.CODES_ROW,
        f"{first}\nhello\n".encode(): CodesErrorCode.CODES_ROW,
        f"{first}\n{rest[: len(rest.splitlines()[0]) // 2]}".encode(): CodesErrorCode.CODES_ROW,
    }
    for content, code in variants.items():
        error = refused(system, write(tmp_path, system, content))

        assert error.code == code, (content[:60], error.message)


@pytest.mark.parametrize(
    ("system", "old", "new", "code"),
    [
        ("LOINC", "10000-8", "10000-9", "CODES_CHECK_DIGIT"),
        ("LOINC", "10002-4", "10002-5", "CODES_CHECK_DIGIT"),
        ("LOINC", '"Toyose SerPl"', '"Toyose SerPl', "CODES_ROW"),
        ("LOINC", '"ACTIVE"', '"ACTIV"', "CODES_ROW"),
        ("LOINC", '"2.73"', '"new"', "CODES_ROW"),
        ("LOINC", '"STATUS"', '"STATE"', "CODES_HEADER"),
        ("LOINC", '"METHOD_TYP"', '"STATUS"', "CODES_HEADER"),
        ("UNII", "Name\tTYPE", "TYPE\tName", "CODES_HEADER"),
        ("UNII", "\tof\t", "\tox\t", "CODES_ROW"),
        ("UNII", "0000000001", "000000001", "CODES_ROW"),
        ("CVX", "|Active|", "|Activ|", "CODES_ROW"),
        ("CVX", "2023/01/02", "2023/0", "CODES_ROW"),
        ("CVX", "902 ", "9020 ", "CODES_ROW"),
        ("RXNORM", "9000001|ENG", "x|ENG", "CODES_ROW"),
        ("RXNORM", "Toylenol||N||", "Toylenol||N|", "CODES_ROW"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path: Path, system: str, old: str, new: str, code: str) -> None:
    text = TEXTS[system]
    assert old in text

    error = refused(system, write(tmp_path, system, text.replace(old, new, 1)))

    assert error.code == code


@pytest.mark.parametrize("name", [name for name in SNOMED if name.startswith("Snapshot")])
def test_wrong_files_of_snomed_ct_are_refused(tmp_path: Path, name: str) -> None:
    text = SNOMED[name]
    missing = {other: each for other, each in SNOMED.items() if other != name}
    variants = {
        text.replace("effectiveTime", "time"): "CODES_HEADER",
        text.replace(code_files.MODULE, "900000000000207009", 1): "CODES_CHECK_DIGIT",
        text.replace("\t20250101\t", "\t2025\t", 1): "CODES_ROW",
        text[: text.rindex("\t")]: "CODES_ROW",
        text.rstrip(): "CODES_ROW",
    }
    for at, (changed, code) in enumerate(variants.items()):
        folder = code_files.write_folder(tmp_path / str(at), {**SNOMED, name: changed})

        assert refused("SNOMEDCT", folder).code == code
    folder = code_files.write_folder(tmp_path / "missing", missing)
    assert refused("SNOMEDCT", folder).code == "CODES_FILE_MISSING"
    twice = code_files.write_folder(
        tmp_path / "twice", {**SNOMED, name.replace("20250101", "20250701"): text}
    )
    assert refused("SNOMEDCT", twice).code == "CODES_FILE_UNREADABLE"


def test_odd_paths_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "RxNorm.zip"
    code_files.write_archive(damaged, {"RXNCONSO.RRF": RXNCONSO * 100})
    content = bytearray(damaged.read_bytes())
    content[60] ^= 0xFF
    damaged.write_bytes(content)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(content[: len(content) // 2])
    empty = tmp_path / "empty.zip"
    with zipfile.ZipFile(empty, "w"):
        pass

    assert refused("RXNORM", tmp_path / "missing").code == "CODES_FILE_MISSING"
    assert refused("RXNORM", Path("/dev/null")).code == "CODES_FILE_UNREADABLE"
    assert refused("RXNORM", damaged).code == "CODES_FILE_UNREADABLE"
    assert refused("RXNORM", cut).code == "CODES_FILE_UNREADABLE"
    assert refused("RXNORM", empty).code == "CODES_FILE_MISSING"
    assert refused("ICD10CM", cut).code == "CODES_FILE_NOT_USED"


@pytest.mark.parametrize("system", ["RXNORM", "SNOMEDCT", "CVX"])
def test_a_system_that_no_package_carries_needs_a_file(system: str) -> None:
    with pytest.raises(CodesError) as caught:
        source_of(system)

    assert caught.value.code == "CODES_FILE_NEEDED"
    assert f"load_codes {system} FILE" in caught.value.message


@pytest.mark.parametrize("system", ["icd10cm", "ICD9", "", "x\ny"])
def test_an_unknown_system_is_refused(system: str) -> None:
    with pytest.raises(CodesError) as caught:
        source_of(system)

    assert caught.value.code == "CODES_SYSTEM_UNKNOWN"


def test_a_missing_package_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    for system, command in (("UNII", "make codes"), ("ICD10CM", "requirements.lock")):
        with pytest.raises(CodesError, match=command) as caught:
            source_of(system).digest()
        assert caught.value.code == "CODES_PACKAGE_MISSING"


@pytest.mark.parametrize(
    ("note", "codes"),
    [
        ("other protozoal intestinal diseases (A07.-)", ["A07"]),
        ("acanthamebiasis (B60.1-)", ["B60.1"]),
        ("Naegleriasis (B60.2)", ["B60.2"]),
        ("diabetes (E08-E13)", ["E08-E13"]),
        ("two (A01.0-, B02)", ["A01.0", "B02"]),
        ("several (O24.0-O24.1-)", []),
        ("drugs (T36-T50 with final character 5)", []),
        ("no code at all (chronic)", []),
    ],
)
def test_the_codes_of_an_excludes_note_are_prefixes_and_ranges(note: str, codes: list[str]) -> None:
    assert cited(note) == codes


def test_every_system_has_a_source() -> None:
    for system in SystemKey:
        path = Path("/") if system in ("RXNORM", "SNOMEDCT", "CVX") else None

        assert source_of(system, path).key == system


def test_the_document_explains_every_system_and_every_refusal() -> None:
    rows = {
        line.split("|")[1].strip()
        for line in (PROJECT_ROOT / "docs/codes.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    }

    assert {*SystemKey.values, *CodesErrorCode} <= rows
