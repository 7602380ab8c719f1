"""Arguments with personal data, read from a file or from standard input.

Every user of the machine can read the arguments of a running process (`ps`), and the shell keeps
them in its history. So the command line holds only the place of such an argument.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from pipeline.stages.intake import LONGEST_REFERENCE

STANDARD_INPUT = "-"
_MOST_BYTES = 16 << 20
WRONG_ARGUMENTS = 2


class RefusedOption(argparse.Action):
    """An option whose value would be visible; the refusal names the right way, not the value."""

    def __init__(self, option_strings: Sequence[str], dest: str, instead: str) -> None:
        super().__init__(option_strings, dest, nargs="?", help=argparse.SUPPRESS)
        self._instead = instead

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Refuse."""
        parser.error(
            f"{option_string} is not an option: every user of this machine can read the command"
            f" line. {self._instead}"
        )


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files, the list of files, and the file of the patient's reference."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument(
        "--files-from",
        metavar="LIST",
        help="a file with one path per line, or - for standard input, if names are personal data",
    )
    parser.add_argument(
        "--patient-file",
        metavar="FILE",
        help="a file that holds your reference of the records' patient in one line, or - for"
        " standard input; default: a new pseudonym",
    )
    parser.add_argument(
        "--patient",
        action=RefusedOption,
        instead="Use --patient-file FILE, or --patient-file - for standard input.",
    )


def files_of(options: dict[str, Any]) -> list[Path]:
    """Return the files that were named, then the files of the list. There is at least one."""
    files, source = list(options["files"]), options["files_from"]
    if source == options["patient_file"] == STANDARD_INPUT:
        raise _wrong("Only one of --files-from and --patient-file can read standard input.")
    if source is not None:
        lines = _read(source, "--files-from").splitlines()
        files += [Path(os.fsdecode(line)) for line in lines if line.strip()]
    if not files:
        raise _wrong("Name a file, or use --files-from LIST.")
    return files


def patient_reference_of(options: dict[str, Any]) -> str | None:
    """Return the reference of the patient, or None without --patient-file."""
    source = options["patient_file"]
    if source is None:
        return None
    if source == STANDARD_INPUT and sys.stdin.isatty():
        sys.stderr.write("Reference of the patient: ")
        sys.stderr.flush()
        content = sys.stdin.buffer.readline()
    else:
        content = _read(source, "--patient-file")
    try:
        lines = [line.strip() for line in content.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise _wrong("--patient-file: the reference is not UTF-8.") from None
    if len(lines) != 1 or not lines[0].isprintable():
        raise _wrong("--patient-file: expected one line of text, the reference of the patient.")
    if len(lines[0]) > LONGEST_REFERENCE:
        raise _wrong(
            f"--patient-file: a patient reference has at most {LONGEST_REFERENCE} characters."
        )
    return lines[0]


def _read(source: str, option: str) -> bytes:
    try:
        if source == STANDARD_INPUT:
            content = sys.stdin.buffer.read(_MOST_BYTES)
        else:
            with Path(source).open("rb") as file:
                content = file.read(_MOST_BYTES)
    except OSError as error:
        raise _wrong(f"{option}: {error.strerror or 'the file cannot be read'}.") from None
    if len(content) == _MOST_BYTES:
        raise _wrong(f"{option}: the file is too large.")
    return content


def _wrong(message: str) -> CommandError:
    return CommandError(message, returncode=WRONG_ARGUMENTS)
