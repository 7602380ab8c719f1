"""Every entry point refuses a wrong environment: one line per variable, no value, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from medproc.env import PROJECT_ROOT, VARIABLES, Environment
from tests.support.wrong_values import CANARY, wrong_values

MANAGE = (sys.executable, "manage.py")
ENTRY_POINTS = (
    (*MANAGE, "check"),
    (*MANAGE, "check", "--deploy"),
    (*MANAGE, "migrate"),
    (*MANAGE, "process", "samples/lab_5p_8enc.pdf"),
    (*MANAGE, "health", "--json"),
    (*MANAGE, "services", "status"),
    (*MANAGE, "serve", "127.0.0.1:0"),
    (*MANAGE, "rqworker"),
    (*MANAGE, "rqworker-pool"),
    (*MANAGE, "rqcron"),
    (*MANAGE, "gemini_emulator"),
    (sys.executable, "-m", "medproc.supervisor", "up"),
    (sys.executable, "-m", "medproc.supervisor", "demo", "samples/lab_5p_8enc.pdf"),
    (sys.executable, "-c", "import medproc.wsgi"),
)
PATIENCE_S = 240
OURS = [name for name in Environment.model_fields if name != "MEDPROC_DATA_DIR"]
"""The data folder is right here, so that the test can search it."""


def environment(data_dir: Path, **variables: str) -> dict[str, str]:
    names = {*VARIABLES, "DJANGO_SETTINGS_MODULE"}
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "MEDPROC_DATA_DIR": str(data_dir), **variables}


def start(command: tuple[str, ...], variables: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=PROJECT_ROOT,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
    )


def with_canary(variable: str, place: int, tmp_path: Path) -> str:
    """Return a wrong value with the canary, another one for each place."""
    values = [value for value in wrong_values(variable, tmp_path) if CANARY in value]
    return values[place % len(values)]


@pytest.mark.slow(reason="starts every entry point once: 14 processes, 15 s")
def test_every_entry_point_refuses_every_wrong_variable_in_one_line(tmp_path: Path) -> None:
    started = [
        start(
            command,
            environment(
                tmp_path / f"var-{place}",
                **{name: with_canary(name, 3 * place, tmp_path) for name in OURS},
            ),
        )
        for place, command in enumerate(ENTRY_POINTS)
    ]

    for command, process in zip(ENTRY_POINTS, started, strict=True):
        out, err = process.communicate(timeout=PATIENCE_S)
        lines = err.splitlines()

        assert process.returncode not in (0, None), command
        assert [line.split(") ")[1].split(":")[0] for line in lines] == OURS, (command, err)
        assert CANARY not in out + err
        assert "Traceback" not in out + err
    assert not list(tmp_path.glob("var-*"))


@pytest.mark.parametrize("kind", ["file", "below a file", "of others", "relative"])
def test_a_data_folder_that_cannot_be_ours_is_one_line(kind: str, tmp_path: Path) -> None:
    (tmp_path / "hunter2").write_text("of others")
    tmp_path.chmod(0o755)
    folder = {
        "file": tmp_path / "hunter2",
        "below a file": tmp_path / "hunter2" / "var",
        "of others": tmp_path,
        "relative": Path("hunter2"),
    }[kind]
    started = [
        start((*MANAGE, *command), environment(folder))
        for command in (["services", "up"], ["rqcron"])
    ]

    for process in started:
        out, err = process.communicate(timeout=PATIENCE_S)
        (line,) = err.splitlines()
        assert process.returncode == 1
        assert line.startswith("(medproc.E007) MEDPROC_DATA_DIR: ")
        assert CANARY not in out + err
    assert tmp_path.stat().st_uid == os.geteuid()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert not (PROJECT_ROOT / "hunter2").exists()


def test_help_needs_no_right_environment_and_a_misspelt_name_is_a_warning(tmp_path: Path) -> None:
    wrong = environment(tmp_path / "var", LEASE_S="hunter2")
    misspelt = environment(tmp_path / "var", GEMINI_RPMS="300", PASS1_MAXRETRIES="hunter2")
    help_wanted = start((*MANAGE, "process", "--help"), wrong)
    checked = start((*MANAGE, "check"), misspelt)

    help_text, _ = help_wanted.communicate(timeout=PATIENCE_S)
    _, warnings = checked.communicate(timeout=PATIENCE_S)

    assert (help_wanted.returncode, checked.returncode) == (0, 0)
    assert "--patient" in help_text
    assert "HINT: Do you mean GEMINI_RPM?" in warnings
    assert "HINT: Do you mean PASS1_MAX_RETRIES?" in warnings
    assert CANARY not in warnings
