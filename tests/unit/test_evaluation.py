"""The evaluation reads labels, computes scores, and prints both with its command."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evaluation.gold import anafora, brat
from evaluation.run import evaluate
from evaluation.scores import Score, overlapping

NOTE = "Line one.\nDenies fever.\nTakes aspirin for gout.\n"


def _entity(start: int, end: int, kind: str, cue: str = "") -> str:
    return (
        f"<entity><span>{start},{end}</span><type>{kind}</type><properties>"
        f"<negation_indicator>{cue}</negation_indicator></properties></entity>"
    )


def write_anafora(folder: Path, *, counted_in_crlf: bool) -> None:
    text = NOTE.replace("\n", "\r\n") if counted_in_crlf else NOTE
    entities = "".join(
        _entity(text.index(word), text.index(word) + len(word), kind, cue)
        for word, kind, cue in (
            ("fever", "Sign_symptom", "7@e"),
            ("aspirin", "Medications/Drugs", ""),
            ("gout", "Disease_Disorder", ""),
            ("one", "Anatomical_site", ""),
        )
    )
    (folder / "Note_1").write_text(NOTE, encoding="utf-8")
    (folder / "Note_1.tool.someone.completed.xml").write_text(
        f"<data><annotations>{entities}</annotations></data>", encoding="utf-8"
    )


@pytest.mark.parametrize("counted_in_crlf", [True, False])
def test_anafora_offsets_fit_whatever_line_ends_they_count(
    tmp_path: Path, *, counted_in_crlf: bool
) -> None:
    write_anafora(tmp_path, counted_in_crlf=counted_in_crlf)

    (note,) = anafora(tmp_path)

    assert [(note.text[s.start : s.end], s.kind, s.negated) for s in note.spans] == [
        ("fever", "finding", True),
        ("aspirin", "drug", False),
        ("gout", "finding", False),
    ]


def test_brat_labels_of_another_kind_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fever and aspirin", encoding="utf-8")
    (tmp_path / "a.ann").write_text(
        "T1\tSign_symptom 0 5\tfever\nT2\tMedication 10 17\taspirin\nT3\tAge 6 9\tand\nR1\tX\n",
        encoding="utf-8",
    )
    (tmp_path / "b.txt").write_text("Jane", encoding="utf-8")
    (tmp_path / "b.ann").write_text("T1\tNAME 0 4\tJane\n", encoding="utf-8")

    (note,) = brat(tmp_path)

    assert [(s.start, s.end, s.kind) for s in note.spans] == [(0, 5, "finding"), (10, 17, "drug")]


def test_one_found_span_counts_for_one_label_only() -> None:
    matched, false, missed = overlapping([(0, 5), (6, 9)], [(0, 9), (20, 22)])

    assert (matched, false, missed) == (1, [(20, 22)], [(6, 9)])


def test_figures_without_a_base_are_none() -> None:
    score = Score(data="d", part="all", measure="m", tp=0, fp=0, fn=0)

    assert (score.precision, score.recall, score.f1) == (None, None, None)


def test_the_scores_of_a_folder_count_what_was_found(tmp_path: Path) -> None:
    write_anafora(tmp_path, counted_in_crlf=True)

    scores = {s.measure: s for s in evaluate(tmp_path).scores if s.part == "all"}

    for measure in ("drugs", "conditions and symptoms", "negation on labelled spans"):
        assert (scores[measure].fp, scores[measure].fn) == (0, 0)
    assert scores["conditions and symptoms"].tp == 2
    assert scores["negation on labelled spans"].tp == 1


def test_the_command_prints_json(tmp_path: Path) -> None:
    write_anafora(tmp_path, counted_in_crlf=False)
    out = io.StringIO()

    call_command("evaluate", str(tmp_path), "--json", stdout=out)

    rows = json.loads(out.getvalue())["scores"]
    assert {row["measure"] for row in rows} >= {"drugs", "conditions and symptoms"}
    assert all(row["f1"] in (1.0, None) for row in rows if row["measure"] != "procedures")


def test_the_command_prints_a_table(tmp_path: Path) -> None:
    write_anafora(tmp_path, counted_in_crlf=False)
    out = io.StringIO()

    call_command("evaluate", str(tmp_path), stdout=out)

    assert "conditions and symptoms" in out.getvalue()
    assert "aspirin" not in out.getvalue()


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_labels_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(CommandError) as refused:
        call_command("evaluate", str(tmp_path / name))

    assert "\n" not in str(refused.value)
    assert name in str(refused.value)
