"""The lexicon of the local engine: time and memory of its loading, and the worth of each source.

Run `python -m bench.lexicon`; exits 1 if the lexicon needs more than 0.3 s (CPU) or 60 MB. With
`--sources ICD UNII WORDS --data FOLDER` (three wheels, docs/lexicons.md) the benchmark also scores
the labelled notes of FOLDER with our own lists alone, and with each source added.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")

from evaluation.attributes import Tally
from evaluation.gold import anafora, brat
from evaluation.notes import score_notes
from evaluation.scores import Score
from lexicon_build import wheels
from lexicon_build.build import Packages, Terms, only, packed_form, read, without_ordinary
from pipeline.providers.local.names import mentions, misspellings
from pipeline.providers.local.names.lexicon import Lexicon, keys_of, lexicon
from pipeline.providers.local.names.packed_lexicon import pack, read_terms

BOUND_S = 0.3
BOUND_MB = 60
NAMES = ("drugs", "conditions and symptoms")

LOAD = """
import time

import pipeline.providers.schemas
from pipeline.providers.local.names import lexicon, packed_lexicon, word_lists
from pipeline.providers.local.text import tokens


def megabytes():
    with open("/proc/self/status") as status:
        return next(int(x.split()[1]) / 1024 for x in status if x.startswith("VmRSS"))


before, start = megabytes(), time.process_time()
loaded = lexicon.lexicon()
seconds = time.process_time() - start
now = megabytes() - before
words = list(packed_lexicon.read_terms())
for word in words:
    loaded.lookup(word)
print(seconds, now, megabytes() - before, loaded.size, len(words))
"""


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", nargs=3, type=Path, metavar=("ICD", "UNII", "WORDS"))
    parser.add_argument("--data", type=Path, help="folder with labelled notes")
    options = parser.parse_args()
    exit_code = _measure_loading()
    if options.sources and options.data:
        icd, unii, words = options.sources
        _report(Packages(icd=icd, unii=unii, words=words), options.data)
    return exit_code


def _measure_loading() -> int:
    out = subprocess.run(
        [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True
    ).stdout
    seconds, loaded, unpacked, own, words = (float(part) for part in out.split())
    print(
        f"loading {seconds:.2f} s of CPU (bound {BOUND_S}), {loaded:.0f} MB; "
        f"{unpacked:.0f} MB after every word was met (bound {BOUND_MB})"
    )
    print(f"{own:.0f} terms of our own lists, {words:.0f} first words of the sources")
    return 0 if seconds <= BOUND_S and unpacked <= BOUND_MB else 1


def _report(packages: Packages, data: Path) -> None:
    print("\n| lexicon | terms | data | measure | found | P | R | F1 |")
    print("|---|--:|---|---|--:|--:|--:|--:|")
    for title, terms in _steps(packages):
        _use(terms)
        for score in _scores(data):
            if score.part == "all" and score.measure in NAMES:
                print(f"| {title} | {len(terms):,} | {_cells(score)} |")


def _scores(data: Path) -> Iterator[Score]:
    for folder in sorted({data, *(path for path in data.rglob("*") if path.is_dir())}):
        for reader in (anafora, brat):
            if notes := list(reader(folder)):
                yield from score_notes(folder.name, notes, Tally())


def _steps(packages: Packages) -> Iterator[tuple[str, Terms]]:
    """Yield each lexicon, from our own lists alone to the committed file."""
    every = read(packages)
    terms = packed_form(every)
    yield "own lists", {}
    yield "+ ICD-10-CM", only(terms, ("icd",))
    yield "+ UNII `of`", only(terms, ("icd", "of"))
    yield "+ UNII `bn`", terms
    yield "− ordinary words (committed)", packed_form(without_ordinary(every, packages))
    names = wheels.substances(packages.unii).names
    unasked = {
        tuple(keys_of(name.lower())): {"of": "o", "bn": "n"}[kind] for name, kind, _ in names
    }
    yield "for comparison: own lists + all UNII names", {k: v for k, v in unasked.items() if k}


def _use(terms: Terms) -> None:
    """Let the engine of this process read other sources."""
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "terms"
        packed.write_bytes(pack((), terms))
        vars(lexicon()).update(vars(Lexicon(read_terms(packed))))
    mentions.term_of.cache_clear()
    misspellings.misspelt_drug.cache_clear()


def _cells(score: Score) -> str:
    figures = (score.precision, score.recall, score.f1)
    return " | ".join(
        (
            score.data,
            score.measure,
            str(score.tp + score.fp),
            *("" if figure is None else f"{figure:.3f}" for figure in figures),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
