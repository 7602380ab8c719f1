"""No text of the data controls the terminal of a person who runs a command or reads the log."""

from __future__ import annotations

import io
import logging
from importlib import import_module
from pkgutil import iter_modules

import pytest
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gemini_emulator.management import commands as emulator_commands
from medproc.printable import PlainFormatter, printable
from observability.drilldown.nodes import DrillDown, FailureCause, Node, NodeKind
from observability.drilldown.text import as_tree, outline
from observability.management import commands as console_commands
from pipeline.core.labels import StatusWord
from pipeline.management import commands as pipeline_commands
from pipeline.management.plain_command import PlainCommand

HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202eevil\u2066 \x00 \ud800 \u200b \x85 \r back"


@given(st.text())
def test_a_printed_text_has_no_character_that_controls_a_terminal(text: str) -> None:
    shown = printable(text)

    assert not [c for c in shown if not c.isprintable() and c not in "\n\t" and not c.isspace()]
    assert "\r" not in shown
    shown.encode()


@pytest.mark.parametrize("text", ["Größe – 5 µg ✓", "a\n\tb", "a\u00a0b", "\u202f7", "患者"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


class HostileCommand(PlainCommand):
    """A command that prints text of the data."""

    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        """Print a text on both streams."""
        self.stdout.write(HOSTILE)
        self.stderr.write(HOSTILE, ending="")


@pytest.mark.parametrize("passes_streams", [True, False])
def test_a_command_escapes_what_it_prints(
    passes_streams: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = io.StringIO(), io.StringIO()

    if passes_streams:
        call_command(HostileCommand(), stdout=out, stderr=err)
        printed, errors = out.getvalue(), err.getvalue()
    else:
        call_command(HostileCommand())
        printed, errors = capsys.readouterr()

    assert printed == f"{printable(HOSTILE)}\n"
    assert errors == printable(HOSTILE)
    assert printed.startswith(r"\x1b[31mred\x1b]0;title\x07 \x9b2J \u202eevil\u2066 \x00 \ud800")


def test_each_command_escapes_its_output() -> None:
    made = [
        import_module(f"{package.__name__}.{found.name}").Command
        for package in (pipeline_commands, console_commands, emulator_commands)
        for found in iter_modules(package.__path__)
        # Commands of Django and django-rq, which print no data.
        if found.name not in {"migrate", "rqenqueue", "rqscheduler"}
    ]

    assert len(made) > 15
    assert [command for command in made if not issubclass(command, PlainCommand)] == []


def test_the_error_of_a_command_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(HostileCommand):
        def handle(self, *args: object, **options: object) -> None:
            raise CommandError(HOSTILE)

    with pytest.raises(SystemExit):
        Failing().run_from_argv(["manage.py", "failing"])

    assert "\x1b" not in capsys.readouterr().err


def test_a_line_of_the_log_is_escaped() -> None:
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "%s", (HOSTILE,), None)

    assert PlainFormatter().format(record) == printable(HOSTILE)


def test_the_base_of_django_would_not_escape() -> None:
    out = io.StringIO()

    class Bare(BaseCommand):
        requires_system_checks: list[str] = []

        def handle(self, *args: object, **options: object) -> None:
            self.stdout.write(HOSTILE)

    call_command(Bare(), stdout=out)

    assert "\x1b" in out.getvalue()


def test_the_tree_of_explain_is_escaped_on_a_terminal() -> None:
    call = Node(
        kind=NodeKind.CALL,
        id=HOSTILE,
        title=HOSTILE,
        status=StatusWord.FAILED,
        cause=FailureCause(code=HOSTILE, message=HOSTILE),
        notes=(HOSTILE,),
        facts={
            "http_status": 503, "finish_reason": HOSTILE, "accepted": False,
            "retry_after_ms": None, "model_version": HOSTILE,
        },
    )  # fmt: skip
    root = Node(
        kind=NodeKind.RECORD, id="1", title=HOSTILE, status=StatusWord.FAILED, children=(call,)
    )
    found = DrillDown(
        asked="1", asked_kind="record", focus="1", answer="", record_answer="", root=root,
        taken_at=timezone.now(),
    )  # fmt: skip
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=2_000)

    terminal.print(as_tree(outline(found, everything=True)))

    printed = terminal.file.getvalue()  # type: ignore[attr-defined]  # the file of this test
    assert printed.count(r"\u202eevil") >= 6
    assert "\u202e" not in printed
    assert "\x1b]" not in printed
