"""A signal sets the stop request at any moment, also in the middle of another signal."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys

import pytest

from medproc.env import PROJECT_ROOT
from tests.support.source_trees import modules_below, tree_of

SIGNALS = 3_000
WAITS = """
import sys
from medproc.stop_signal import StopSignal
stopping = StopSignal()
stopping.catch()
print("waits", flush=True)
while not stopping.wait(0.0001):
    pass
print("stops", flush=True)
sys.stdin.readline()
"""
PACKAGES = (
    "medproc", "pipeline", "observability", "api", "gemini_emulator", "evaluation", "lexicon_build",
)  # fmt: skip


@pytest.mark.parametrize("_turn", range(3))
def test_a_storm_of_signals_stops_the_process(_turn: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], cwd=PROJECT_ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "waits\n"
        for number in range(SIGNALS):
            process.send_signal(signal.SIGTERM if number % 2 else signal.SIGINT)
        said, _ = process.communicate("\n", timeout=60)

    assert said == "stops\n"
    assert process.returncode == 0


def test_no_signal_handler_sets_an_event() -> None:
    found = [
        f"{path.relative_to(PROJECT_ROOT)}:{node.lineno}"
        for path in modules_below(*PACKAGES)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "signal.signal"
        if ".set(" in ast.unparse(node.args[1]) or ast.unparse(node.args[1]).endswith(".set")
    ]

    assert found == []
