"""The reference of a patient and the paths of records reach `process` off the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from django.core.management import call_command
from django.db import connection

from medproc.env import PROJECT_ROOT
from pipeline.models import Patient, ShellFile
from tests.support import records
from tests.support.databases import as_owner
from tests.support.workers import until

# One test passes the reference on the command line, and another test reads all command lines.
pytestmark = pytest.mark.xdist_group("private-arguments")

CANARY = "Canary, Jane *1931-02-03"


def run(*arguments: object, typed: bytes = b"") -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        [sys.executable, "manage.py", "process", *map(str, arguments)],
        cwd=PROJECT_ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "medproc.settings"},
        input=typed,
        capture_output=True,
        check=False,
    )
    return subprocess.CompletedProcess(
        ran.args, ran.returncode, ran.stdout.decode(), ran.stderr.decode()
    )


def command_lines() -> str:
    """Return what `ps -ef` shows to every user: the arguments of all processes."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes().replace(b"\0", b" ") + b"\n"
        except OSError:
            continue
    return found.decode("utf-8", "replace")


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_no_user_of_the_machine_sees_the_reference_or_the_path(tmp_path: Path) -> None:
    record = tmp_path / f"{CANARY}.pdf"
    shutil.copy(records.LAB, record)
    (tmp_path / "list").write_text(f"{record}\n\n")
    process = subprocess.Popen(
        [
            sys.executable, "manage.py", "process", "--files-from", str(tmp_path / "list"),
            "--patient-file", "-",
        ],
        cwd=PROJECT_ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "medproc.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(f"{CANARY}\r\n".encode())
        process.stdin.close()
        until(ShellFile.objects.exists)

        visible = command_lines()
    finally:
        process.kill()
        process.wait()

    assert "--patient-file -" in visible
    assert CANARY not in visible
    assert ShellFile.objects.get().original_filename == record.name
    assert Patient.objects.get().reference == CANARY


@pytest.mark.parametrize("form", [["--patient", CANARY], [f"--patient={CANARY}"], ["--patient"]])
def test_the_visible_way_is_refused_without_repeating_the_reference(form: list[str]) -> None:
    ran = run(records.LAB, *form)

    assert ran.returncode == 2
    assert "Use --patient-file FILE, or --patient-file - for standard input." in ran.stderr
    assert "Canary" not in ran.stdout + ran.stderr


@pytest.mark.django_db
@pytest.mark.parametrize(
    "content",
    [b"", b" \n\n", b"MRN-1\nMRN-2\n", b"MRN\xff", b"MRN\x1b[31m", b"MRN\x00", b"M" * 201],
)
def test_a_file_without_one_right_reference_submits_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "patient").write_bytes(content)

    with pytest.raises(Exception, match="--patient-file: "):
        call_command("process", str(records.LAB), "--patient-file", str(tmp_path / "patient"))

    assert not ShellFile.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name a file, or use --files-from LIST."),
        (["x.pdf", "--patient-file", "/nonexistent"], "--patient-file: No such file"),
        (["--files-from", "/"], "--files-from: Is a directory"),
        (["--files-from", "/dev/null"], "Name a file"),
        (["--files-from", "-", "--patient-file", "-"], "Only one of --files-from and"),
    ],
)
def test_a_place_that_cannot_be_read_is_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        call_command("process", *arguments)


@pytest.mark.django_db
def test_a_byte_order_mark_and_blank_lines_are_no_part_of_the_reference(
    tmp_path: Path, redis_db: redis.Redis
) -> None:
    (tmp_path / "patient").write_bytes("\ufeff\r\n  MRN-7 Ä \r\n".encode())

    with pytest.raises(SystemExit):
        call_command(
            "process", str(records.LAB), "--no-wait", "--patient-file", str(tmp_path / "patient")
        )

    assert Patient.objects.get().reference == "MRN-7 Ä"


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_refused_statement_does_not_print_the_row_of_the_patient() -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE user_profiles ADD CHECK (reference <> '{CANARY}')")

    result = run(records.LAB, "--patient-file", "-", typed=CANARY.encode())

    assert result.returncode == 1
    assert result.stderr.startswith("PostgreSQL refused a statement: IntegrityError")
    assert CANARY not in result.stderr + result.stdout
