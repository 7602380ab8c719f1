"""A proxy in front of PostgreSQL that loses replies to successful COMMITs.

The proxy reads the messages of the frontend and the backend as bytes, over unix sockets.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SOCKET = ".s.PGSQL.5432"
_COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"
_ROLLED_BACK = b"C\x00\x00\x00\x0dROLLBACK\x00"
_BLOCK = 1 << 16


class LossyProxy:
    """Forward all messages, but lose the replies to some commits and cut the connection.

    `losing` maps bytes of a transaction to the number of replies to lose; `lost` counts them.
    """

    def __init__(self, server: Path, folder: Path, losing: Mapping[bytes, int]) -> None:
        self._server = str(server / SOCKET)
        self._left = Counter(losing)
        self.lost: Counter[bytes] = Counter()
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen(64)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Only a shutdown wakes the thread in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        ways = selectors.DefaultSelector()
        ways.register(client, selectors.EVENT_READ, server)
        ways.register(server, selectors.EVENT_READ, client)
        said, armed = b"", None
        with ways:
            while True:
                for key, _ in ways.select():
                    block = key.fileobj.recv(_BLOCK)  # type: ignore[union-attr]
                    if not block:
                        return
                    if key.fileobj is client:
                        said = said[-100:] + block
                        armed = armed or next((n for n in self._left if n in said), None)
                    elif armed and _COMMITTED in block:
                        if self._loses(armed):
                            return
                        armed, said = None, b""
                    elif armed and _ROLLED_BACK in block:
                        armed, said = None, b""
                    key.data.sendall(block)

    def _loses(self, needle: bytes) -> bool:
        with self._lock:
            if self._left[needle] <= 0:
                return False
            self._left[needle] -= 1
            self.lost[needle] += 1
            return True
