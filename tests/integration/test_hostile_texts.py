"""Hostile text files and images each end with a named error, within bounds of time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from medproc.env import PROJECT_ROOT
from tests.support.hostile_texts import HOSTILE_TEXTS, HostileText

MOST_SECONDS, MOST_MEGABYTES = 20.0, 500.0
_READ = """
import json, resource, sys
from pipeline.documents.reader import InputRefused, read_pages
try:
    said = ["", str(len(list(read_pages(sys.argv[1], 1, 5))))]
except InputRefused as refused:
    said = [refused.code, refused.message]
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([*said, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


@pytest.mark.parametrize("case", HOSTILE_TEXTS, ids=lambda case: case.name)
def test_a_hostile_file_ends_with_its_named_error(tmp_path: Path, case: HostileText) -> None:
    path = tmp_path / "record"
    path.write_bytes(case.build())

    ran = subprocess.run(
        [sys.executable, "-c", _READ, str(path)],
        cwd=PROJECT_ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip

    code, message, seconds, megabytes = json.loads(ran.stdout)
    assert (code, case.says in message) == (case.code, True)
    assert "\n" not in message
    # Seconds of the processor: the wall clock of a busy machine says nothing about the file.
    assert seconds < MOST_SECONDS
    assert megabytes < MOST_MEGABYTES
