"""The one connection on which a gate runs its scripts, with as little work as a call allows.

Imports redis, whose own way to run a script takes four times the processor's time (measured:
0.12 ms, here 0.03 ms), and that in the owner's thread before each start. As there, scripts that the
server has lost are loaded again, and a connection that was closed is opened again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import redis
from redis.commands.core import Script

logger = logging.getLogger(__name__)

Argument = str | bytes | float
MOST_OWED = 64
"""Answers that nobody waits for and that may be left to be read."""


class Wire:
    """Runs scripts over a connection of its own; for any thread, one at a time."""

    def __init__(self, client: redis.Redis, keys: Sequence[str]) -> None:
        self._pool = client.connection_pool
        self._keys = [str(len(keys)), *keys]
        self._connection: Any = None
        self._sent: list[tuple[Script, bytes]] = []
        """Commands whose answers are still to be read."""
        self._lock = threading.Lock()

    def run(self, script: Script, arguments: Sequence[Argument], *, waits: bool = True) -> Any:
        """Run a script and return its answer, or True at once where that is not waited for.

        Raises RedisError; for an answer that is not waited for only where nothing can be sent.
        """
        command = _packed("EVALSHA", script.sha, *self._keys, *arguments)
        with self._lock:
            try:
                answer = self._exchange(script, command, waits=waits)
            except redis.ConnectionError:
                # The server closes connections that were idle: a second try on a new one.
                answer = self._exchange(script, command, waits=waits)
        if isinstance(answer, redis.ResponseError):
            raise answer
        return answer

    def _exchange(self, script: Script, command: bytes, *, waits: bool) -> Any:
        if self._connection is None:
            self._connection = self._pool.get_connection()
        try:
            self._connection.send_packed_command([command], check_health=False)
            self._sent.append((script, command))
            if not waits and len(self._sent) < MOST_OWED:
                return True
            return self._last_answer()
        except BaseException:
            # An answer may still come, and would be taken for that of the next command.
            self._close()
            raise

    def _last_answer(self) -> Any:
        """Read an answer for each command that was sent; return that of the last, or its error."""
        sent = list(self._sent)
        answers = [self._answer() for _ in sent]
        self._sent.clear()
        for at, (script, command) in enumerate(sent):
            if isinstance(answers[at], redis.exceptions.NoScriptError):
                self._connection.send_command("SCRIPT", "LOAD", script.script)
                self._connection.read_response()
                self._connection.send_packed_command([command], check_health=False)
                answers[at] = self._answer()
        for answer in answers[:-1]:
            if isinstance(answer, redis.ResponseError):
                logger.error("Redis refused what nobody waited for: %s", answer)
        return answers[-1]

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except redis.ResponseError as error:
            return error

    def _close(self) -> None:
        self._sent.clear()
        if self._connection is not None:
            self._connection.disconnect()


def _packed(*arguments: Argument) -> bytes:
    """Return a command as the protocol has it."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        text = argument if isinstance(argument, bytes) else str(argument).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(text), text))
    return b"".join(parts)
