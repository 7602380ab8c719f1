"""The commands of README and docs/, and a shell that runs them as a reader would.

A `console` block holds commands (`$ …`) and what they print. `…` means any text, a number means
any number, and an id means any id: an id that a command printed replaces the id of the page in
later commands. mktestdocs and byexample were rejected: the first compares no output, and the second
needs its own marks inside the pages.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from medproc.env import PROJECT_ROOT
from tests.support.workers import until

ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PATIENCE_S = 240
"""A busy machine may take minutes to stop three processes and two servers."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_IDS = (ID, r"\d{8}T\d{6}Z", r"[0-9a-f]{8}")
_PART = re.compile(
    rf"(?P<any>…)|(?P<id>{ID}|{_IDS[1]}|\b{_IDS[2]}(?=-…))"
    r"|(?P<short>\b[0-9a-f]{8,12}\b)|\bP-(?P<pseudonym>[0-9A-F]{10})\b"
    r"|(?P<number>\d[\d,.:]*)"
)
_SEEN = {
    "any": r"[\s\S]*?",
    "short": r"[0-9a-f]{8,12}",
    "pseudonym": r"P-[0-9A-F]{10}",
    "number": r"[–\d][\d,.:]*",
}


@dataclass(frozen=True)
class DocsExample:
    """One command of a page, and the lines that the page shows after the command."""

    command: str
    output: str


@dataclass(frozen=True)
class DocsBlock:
    """The commands of one `console` block, with the page and the line where the block begins."""

    page: str
    line: int
    examples: tuple[DocsExample, ...]

    @property
    def name(self) -> str:
        """The page and the first command: the name of the block in a story."""
        return f"{self.page}: {self.examples[0].command.splitlines()[0]}"


def blocks() -> list[DocsBlock]:
    """Return every `console` block of README and docs/, in the order of the files."""
    pages = [PROJECT_ROOT / "README.md", *sorted((PROJECT_ROOT / "docs").glob("*.md"))]
    return [
        DocsBlock(page.name, text[: found.start()].count("\n") + 1, _examples(found[1]))
        for page in pages
        for text in [page.read_text("utf-8")]
        for found in _BLOCK.finditer(text)
    ]


def _examples(block: str) -> tuple[DocsExample, ...]:
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = 1 + next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        found.append(DocsExample("\n".join(lines[:end]), "\n".join(lines[end:])))
    assert found, f"a console block has no command:\n{block}"
    return tuple(found)


@dataclass
class DocsReader:
    """A person with a terminal: a bash in an own folder, and the ids that this person has seen."""

    folder: Path
    environment: dict[str, str]
    replaced: dict[str, str]
    """What is different on this machine: text of the page → text of the command."""
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start the shell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for entry in PROJECT_ROOT.iterdir():
            if not entry.name.startswith(".git"):
                (self.folder / entry.name).symlink_to(entry)
        self.shell = subprocess.Popen(
            ["/bin/bash"], cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, example: DocsExample, ready: str = "", *, again: bool = False) -> None:
        """Run a command, compare what it prints with the page, and note each difference.

        A command with a text `ready` serves until `stop_servers`; the text says that it serves.
        With `again`, the person repeats the command until the command prints what the page says.
        """
        difference = ""

        def is_as_on_the_page() -> bool:
            nonlocal difference
            printed = self._serve(example.command, ready) if ready else self.ask(example.command)
            missing = self._missing(example, printed)
            difference = f"$ {example.command}\nprints no such line:\n{missing}\nbut:\n{printed}"
            return not missing

        if is_as_on_the_page():
            return
        if again:
            with suppress(AssertionError):
                until(is_as_on_the_page, PATIENCE_S)
                return
        self.differences.append(difference)

    def stop_servers(self) -> None:
        """End what serves, the last first."""
        while self.servers:
            self.stop_server(-1)

    def stop_server(self, index: int) -> None:
        """End one of those that serve, counted in the order of their starts."""
        server = self.servers.pop(index)
        if server.poll() is not None:
            self.differences.append(f"{server.args!r} ended by itself")
            return
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(PATIENCE_S)

    def stop(self) -> None:
        """End what serves, and the shell."""
        self.stop_servers()
        with self.shell:  # closes the pipes, which ends the shell
            pass

    def _here(self, text: str) -> str:
        for printed, actual in self.replaced.items():
            text = text.replace(printed, actual)
        return text

    def ask(self, command: str) -> str:
        """Run a command in the shell and return what the command prints."""
        command = self._here(command)
        assert self.shell.stdin
        assert self.shell.stdout
        end = f"end-{secrets.token_hex(8)}"
        self.shell.stdin.write(f"{command}\necho; echo {end} $?\n")
        self.shell.stdin.flush()
        printed: list[str] = []
        for line in self.shell.stdout:
            if line.startswith(end):
                return "".join(printed)
            printed.append(line)
        raise AssertionError(f"the shell ended: {command}\n{''.join(printed)}")

    def _serve(self, command: str, ready: str) -> str:
        log = self.folder / f"server-{secrets.token_hex(4)}.log"
        exported = self.ask("env -0 | base64 -w 0")
        with log.open("wb") as output:
            server = subprocess.Popen(
                ["/bin/bash", "-c", self._here(command)], cwd=self.folder, env=_decoded(exported),
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.servers.append(server)
        with suppress(AssertionError):
            until(lambda: ready in log.read_text("utf-8") or server.poll() is not None, PATIENCE_S)
        assert ready in log.read_text("utf-8"), log.read_text("utf-8")
        return log.read_text("utf-8")

    def _missing(self, example: DocsExample, printed: str) -> str:
        """Return the first line of the page that was not printed, or an empty text."""
        at = 0
        for line in filter(str.strip, example.output.splitlines()):
            groups: list[str] = []
            found = re.compile(_pattern(self._here(line), groups)).search(printed, at)
            if not found:
                return line
            at = found.end()
            for shown, actual in zip(groups, found.groups(), strict=True):
                self.replaced[shown] = actual
                self.replaced[shown[:8]] = actual[:8]
        return ""


def _decoded(exported: str) -> dict[str, str]:
    text = base64.b64decode(exported.strip()).decode()
    return dict(item.split("=", 1) for item in text.split("\0") if item)


def _pattern(line: str, ids: list[str]) -> str:
    """Return a pattern for a line of a page, and append to `ids` the ids of its groups."""
    pattern, at = "", 0
    for part in _PART.finditer(line):
        pattern += _spaced(line[at : part.start()])
        if part.lastgroup == "id":
            ids.append(part["id"])
            pattern += f"({next(form for form in _IDS if re.fullmatch(form, part['id']))})"
        else:
            pattern += _SEEN[str(part.lastgroup)]
        at = part.end()
    return pattern + _spaced(line[at:])


def _spaced(text: str) -> str:
    return re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(text))
