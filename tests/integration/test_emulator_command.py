"""`manage.py gemini_emulator` prints its address, ends cleanly, and refuses bad arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from gemini_emulator import read_log
from medproc.env import PROJECT_ROOT
from pipeline.core.errors import CallError
from tests.support.emulator import entities_request, gemini


def command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "gemini_emulator", *arguments],
        cwd=PROJECT_ROOT,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_prints_its_address_serves_and_leaves_a_whole_log(tmp_path: Path) -> None:
    script, log = tmp_path / "faults.toml", tmp_path / "calls.jsonl"
    script.write_text('[[fault]]\nfault = "503"\nnumber = 1\n')
    process = command(
        "--port", "0", "--answers", "minimal", "--faults", str(script), "--log", str(log)
    )
    assert process.stdout is not None
    provider = gemini(process.stdout.readline().strip())

    with pytest.raises(CallError):
        provider.generate(entities_request())
    provider.generate(entities_request())
    process.send_signal(signal.SIGTERM)
    process.communicate()

    assert process.returncode == 0
    assert [line.outcome for line in read_log(log)] == ["503", "ok"]


def test_a_scenario_is_announced_behind_the_address() -> None:
    process = command("--port", "0", "--scenario", "outage", "--scale", "0.1")
    assert process.stdout is not None

    said = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGTERM)
    process.communicate()

    assert said[0].startswith("http://127.0.0.1:")
    assert "down for a minute" in said[1]
    assert "breaker" in said[2]


@pytest.mark.parametrize(
    ("options", "text", "says"),
    [
        (["--scenario"], 'title = "t"\n', "expect: Field required"),
        (["--scenario"], None, "No such file"),
        (["--scale", "0", "--scenario"], 'title = "t"\nexpect = "e"\n', "--scale"),
        (["--clock", "noon", "--scenario"], 'title = "t"\nexpect = "e"\n', "not a time"),
        (["--check"], "no line of a log", "not a log"),
        (["--check"], None, "no such file"),
        (["--faults"], '[[fault]]\nfault = "418"\n', "no such fault: 418"),
        (["--faults"], "[[fault]\n", "line 1"),
        (["--faults"], None, "No such file"),
        (["--latency-map"], "[1]", "write an object"),
        (["--latency", "fast", "--faults"], "", "not a latency"),
    ],
)
def test_a_wrong_option_is_reported_in_one_line(
    tmp_path: Path, options: list[str], text: str | None, says: str
) -> None:
    path = tmp_path / "given.toml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(CommandError, match=says) as raised:
        call_command("gemini_emulator", *options, str(path))

    assert "\n" not in str(raised.value)
