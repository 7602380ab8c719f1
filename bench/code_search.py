"""The code search beside rapidfuzz and plain full-text search, on 120 queries and with OCR errors.

Run `python -m bench.code_search` (about 5 min, on its own PostgreSQL); exits 1 if a bound is
missed. `bench/data/code_queries.tsv` explains the queries and their halves. `--tuning` leaves the
unseen half out, and `--show` lists the queries whose best code is not accepted.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench._environment import environment_of
from medproc.embedded import Places, throw_away_servers
from medproc.embedded.places import SUPERUSER

if TYPE_CHECKING:
    from pipeline.clinical.facts import Candidate

QUERIES = Path(__file__).parent / "data" / "code_queries.tsv"
CUTS = (1, 5, 20)
MOST_POINTS_LOST = 15
"""Points of recall@20 that two OCR errors per query may cost."""
ENTITIES, MOST_S = 1_000, 6.0
FILL_S = 25.0
SEED = 12

CONFUSED = {
    "a": "o", "b": "h", "c": "e", "d": "cl", "e": "c", "f": "t", "g": "q", "h": "b", "i": "l",
    "j": "i", "k": "lc", "l": "1", "m": "rn", "n": "u", "o": "0", "p": "n", "q": "g", "r": "n",
    "s": "5", "t": "f", "u": "v", "v": "y", "w": "vv", "x": "k", "y": "v", "z": "2",
    "A": "4", "B": "8", "C": "G", "D": "O", "E": "F", "F": "P", "G": "6", "H": "N", "I": "l",
    "J": "I", "K": "X", "L": "I", "M": "N", "N": "M", "O": "0", "P": "F", "Q": "O", "R": "K",
    "S": "5", "T": "I", "U": "V", "V": "Y", "W": "VV", "X": "K", "Y": "V", "Z": "2",
    "0": "O", "1": "l", "2": "Z", "3": "8", "4": "A", "5": "S", "6": "b", "7": "T", "8": "B",
    "9": "g",
}  # fmt: skip
"""What OCR reads in place of a character."""


@dataclass(frozen=True)
class SearchCase:
    """One query with its accepted codes."""

    category: str
    text: str
    system: str
    codes: frozenset[str]


Search = Callable[[Sequence[SearchCase]], list[list[str]]]


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuning", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        os.environ.update(environment_of(places, folder))
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0, interactive=False)
        loaded, is_fast = load()
        _index_for_full_text(places)
        cases = [case for case in read() if case.system in loaded]
        halves = {"tuning": [c for c in cases if c in read()[: len(read()) // 2]]}
        if not options.tuning:
            halves["unseen"] = [c for c in cases if c not in halves["tuning"]]
        searches: dict[str, Search] = {
            "code search": ours,
            "rapidfuzz": Fuzzy(loaded),
            "full-text": full_text,
        }
        is_good = compare(halves, searches)
        is_robust = with_errors(halves, ours)
        if options.show:
            show(halves["tuning"])
        return 0 if is_good and is_robust and thousand() and is_fast else 1


def read() -> list[SearchCase]:
    """Return the queries; the first half is for tuning."""
    cases = []
    for line in QUERIES.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            category, text, system, codes = line.split("\t")
            cases.append(SearchCase(category, text, system, frozenset(codes.split())))
    return sorted(cases, key=lambda case: sha256(case.text.encode()).hexdigest())


def load() -> tuple[list[str], bool]:
    """Load every packaged system; return the systems, and whether the index fills in time."""
    from django.db import transaction

    from pipeline.codes.loaders.load import load as load_system
    from pipeline.codes.loaders.refusals import CodesError
    from pipeline.codes.search import index

    loaded: list[str] = []
    counts: dict[str, int] = {}
    slowest = 0.0
    for system in ("ICD10CM", "LOINC", "UNII"):
        try:
            result = load_system(system)
        except CodesError as error:
            print(f"{system}: {error.message}")
            continue
        loaded.append(system)
        counts[system] = result.codes
    _print_sizes()
    for system in loaded:
        with transaction.atomic():
            began, cpu = time.perf_counter(), time.process_time()
            entries = index.fill(system)
            took = time.perf_counter() - began
            slowest = max(slowest, took)
            print(
                f"{system}: {counts[system]:,} codes, {entries:,} entries, index {took:.1f} s,"
                f" of which {time.process_time() - cpu:.1f} s CPU of the loader"
            )
            transaction.set_rollback(True)
    return loaded, slowest < FILL_S


def _print_sizes() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_total_relation_size(oid) / 1048576.0 FROM pg_class"
            " WHERE relkind = 'r' AND relname IN"
            " ('codes', 'code_terms', 'code_search_entries', 'code_search_words') ORDER BY 1"
        )
        print(", ".join(f"{name} {size:.0f} MB" for name, size in cursor))


def _index_for_full_text(places: Places) -> None:
    """Give plain full-text search an index; the code search does not use the index."""
    import psycopg

    with psycopg.connect(places.url_of(SUPERUSER, "medproc"), autocommit=True) as server:
        server.execute("CREATE INDEX ON code_terms USING gin (to_tsvector('english', text))")
        server.execute("VACUUM ANALYZE")


def ours(cases: Sequence[SearchCase]) -> list[list[str]]:
    """Search as Pass 1.5 does, with a longer list."""
    return [[each.code for each in found] for found in candidates(cases)]


def candidates(cases: Sequence[SearchCase]) -> list[list[Candidate]]:
    """Return the candidates of each query."""
    from pipeline.codes.search.search import Asked, shortlists

    asked = [Asked(case.text, case.category) for case in cases]
    found = shortlists(asked, max(CUTS))
    return [found[each] for each in asked]


class Fuzzy:
    """rapidfuzz over all terms of the codes that may be assigned: the better of two scorers."""

    def __init__(self, systems: Sequence[str]) -> None:
        from rapidfuzz import fuzz, utils

        self._terms = {system: _terms(system) for system in systems}
        self._texts = {
            system: [utils.default_process(text) for text, _ in terms]
            for system, terms in self._terms.items()
        }
        self._scorers = {"WRatio": fuzz.WRatio, "token_set": fuzz.token_set_ratio}

    def __call__(self, cases: Sequence[SearchCase]) -> list[list[str]]:
        by_scorer = {name: self._with(scorer, cases) for name, scorer in self._scorers.items()}
        return max(by_scorer.values(), key=lambda found: recall(cases, found))

    def _with(self, scorer: Any, cases: Sequence[SearchCase]) -> list[list[str]]:
        from rapidfuzz import process, utils

        found = []
        for case in cases:
            best = process.extract(
                utils.default_process(case.text),
                self._texts[case.system],
                scorer=scorer,
                processor=None,
                limit=10 * max(CUTS),
            )
            found.append(_once(self._terms[case.system][at][1] for _, _, at in best))
        return found


def full_text(cases: Sequence[SearchCase]) -> list[list[str]]:
    """Search with websearch_to_tsquery and ts_rank, without any further knowledge."""
    from django.db import connection

    found = []
    with connection.cursor() as cursor:
        for case in cases:
            cursor.execute(
                "SELECT c.code FROM code_terms t JOIN codes c ON c.id = t.code_id,"
                " websearch_to_tsquery('english', %s) AS query"
                " WHERE c.system_id = %s AND c.billable IS NOT FALSE"
                " AND to_tsvector('english', t.text) @@ query"
                " ORDER BY ts_rank(to_tsvector('english', t.text), query) DESC, c.code LIMIT 200",
                [case.text, case.system],
            )
            found.append(_once(code for (code,) in cursor))
    return found


def _terms(system: str) -> list[tuple[str, str]]:
    from pipeline.models import CodeTerm

    terms = CodeTerm.objects.filter(code__system_id=system).exclude(code__billable=False)
    return list(terms.values_list("text", "code__code"))


def _once(codes: Any) -> list[str]:
    return list(dict.fromkeys(codes))[: max(CUTS)]


def recall(cases: Sequence[SearchCase], found: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return the number of queries with an accepted code at each cut."""
    pairs = list(zip(cases, found, strict=True))
    return tuple(
        sum(bool(case.codes.intersection(codes[:cut])) for case, codes in pairs) for cut in CUTS
    )


def compare(halves: Mapping[str, Sequence[SearchCase]], searches: Mapping[str, Search]) -> bool:
    """Print recall at each cut; return whether the code search is the best at every cut."""
    print("\n| queries | search | @1 | @5 | @20 | ms per query |\n|---|---|--:|--:|--:|--:|")
    is_good = True
    for half, cases in halves.items():
        figures = {}
        for name, search in searches.items():
            began = time.perf_counter()
            figures[name] = recall(cases, search(cases))
            each_ms = (time.perf_counter() - began) / len(cases) * 1000
            cells = " | ".join(f"{n} ({n / len(cases):.0%})" for n in figures[name])
            print(f"| {len(cases)} {half} | {name} | {cells} | {each_ms:.1f} |")
        best, *others = figures.values()
        is_good &= all(a > b for other in others for a, b in zip(best, other, strict=True))
    return is_good


def with_errors(halves: Mapping[str, Sequence[SearchCase]], search: Search) -> bool:
    """Print recall with two OCR errors per query; return whether at most 15 points are lost."""
    print(
        "\n| two OCR errors in each | @1 | @5 | @20 | points of @20 lost |\n|---|--:|--:|--:|--:|"
    )
    draw = random.Random(SEED)
    is_robust = True
    for half, cases in halves.items():
        misread = [replace(case, text=misreading(case.text, draw)) for case in cases]
        clean, found = recall(cases, search(cases)), recall(cases, search(misread))
        lost = (clean[-1] - found[-1]) / len(cases) * 100
        print(f"| {len(cases)} {half} | {' | '.join(map(str, found))} | {lost:.1f} |")
        is_robust &= lost <= MOST_POINTS_LOST
    return is_robust


def misreading(text: str, draw: random.Random) -> str:
    """Return the text with two characters as OCR misreads them."""
    places = [at for at, character in enumerate(text) if character in CONFUSED]
    chosen = set(draw.sample(places, min(2, len(places))))
    return "".join(CONFUSED[c] if at in chosen else c for at, c in enumerate(text))


def thousand() -> bool:
    """Measure 1,000 different entities of one record through the stage; one group at a time."""
    from django.db import connection, transaction

    from pipeline.codes.search.search import shortlists
    from pipeline.stages.pass1_5 import run, store

    cases = read()
    draw = random.Random(SEED)
    asked: list[Any] = []
    from pipeline.codes.search.search import Asked

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT display FROM codes WHERE system_id = 'ICD10CM' AND kind = 'subcategory'"
            " ORDER BY md5(code) LIMIT %s",
            [ENTITIES - len(cases)],
        )
        for (display,) in cursor:
            words = display.replace(",", "").split()
            asked.append(Asked(" ".join(words[: draw.randint(2, 7)]), "condition"))
    asked += [Asked(case.text, case.category) for case in cases]
    ids = _record(asked)
    loaded = store.loaded_systems()
    began, cpu, server = time.perf_counter(), time.process_time(), _server_s()
    rows = 0
    for group in store.groups(ids, loaded, run.GROUP_SIZE):
        found = shortlists([each for _, _, each in group.entities], run.SHORTLIST_SIZE)
        with transaction.atomic():
            store.write(ids, group, found, loaded)
        rows += sum(len(found[each]) for _, _, each in group.entities)
    took = time.perf_counter() - began
    print(
        f"\n{len(asked):,} entities ({len(set(asked))} different): {took:.2f} s"
        f" (bound {MOST_S}); CPU: worker {time.process_time() - cpu:.2f} s, PostgreSQL"
        f" {_server_s() - server:.2f} s; {rows:,} rows"
    )
    return took <= MOST_S


def _server_s() -> float:
    """Return the CPU seconds of this connection's server process, which runs on this host."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        values = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def _record(asked: Sequence[Any]) -> Any:
    """Insert a record with four encounters that hold these entities; return its id."""
    from pipeline.models import Encounter, Entity, Patient, Session, ShellFile

    patient = Patient.objects.create()
    shell_file = ShellFile.objects.create(
        patient=patient,
        sha256="0" * 64,
        size_bytes=1,
        media_type="application/pdf",
        storage_key="records/bench",
    )
    session = Session.objects.create(patient=patient, shell_file=shell_file)
    by_encounter: defaultdict[int, list[Any]] = defaultdict(list)
    for at, each in enumerate(asked):
        by_encounter[at % 4].append(each)
    for index, entities in by_encounter.items():
        encounter = Encounter.objects.create(
            shell_file=shell_file,
            patient=patient,
            encounter_index=index + 1,
            encounter_type="office_visit",
            page_start=1,
            page_end=1,
            page_count=1,
            character_count=1,
        )
        Entity.objects.bulk_create(
            Entity(
                shell_file=shell_file,
                healthcare_encounter=encounter,
                processing_session=session,
                patient=patient,
                entity_index=number,
                category=each.category,
                name=each.text,
                page_number=1,
                char_start=0,
                char_end=1,
                quote="made up",
                alignment="exact",
                accepted=True,
                engine="bench",
                engine_confidence=1,
                confidence=1,
            )
            for number, each in enumerate(entities)
        )
    return shell_file.id


def show(cases: Sequence[SearchCase]) -> None:
    """Print the tuning queries whose best code is not accepted."""
    for case, found in zip(cases, candidates(cases), strict=True):
        if not found or found[0].code not in case.codes:
            print(f"\n{case.text} → {' '.join(sorted(case.codes))}")
            for each in found[:4]:
                print(f"    {each.code} {each.display} {each.score} {each.reason}")


if __name__ == "__main__":
    sys.exit(main())
