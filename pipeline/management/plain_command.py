"""The base of every command: its output holds no character that could control a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO, cast

from django.core.management.base import BaseCommand, OutputWrapper

from medproc.printable import printable


class PlainOutput(OutputWrapper):
    """Escapes what a command writes to another wrapper, which adds colours afterwards."""

    def __init__(self, stream: OutputWrapper) -> None:
        super().__init__(cast(TextIO, stream), stream.ending)
        self._stream = stream

    def write(  # type: ignore[override]  # like the wrapper of Django itself
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        """Write a text, with control characters escaped."""
        self._stream.write(printable(str(msg)), style_func or self.style_func, ending)


class PlainCommand(BaseCommand):
    """Escapes its output and its errors, whichever streams the caller passes.

    A command checks the environment before it runs. Django's other checks are about the code: they
    import every view, for two seconds, and `make check` runs them.
    """

    requires_system_checks = ["environment"]

    @property
    def stdout(self) -> OutputWrapper:
        """The output. Django replaces the stream after the start, so a setter wraps each stream."""
        return self._stdout

    @stdout.setter
    def stdout(self, stream: OutputWrapper) -> None:
        self._stdout = PlainOutput(stream)

    @property
    def stderr(self) -> OutputWrapper:
        """The errors, wrapped like the output."""
        return self._stderr

    @stderr.setter
    def stderr(self, stream: OutputWrapper) -> None:
        self._stderr = PlainOutput(stream)
