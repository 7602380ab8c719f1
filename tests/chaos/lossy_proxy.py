"""A proxy before PostgreSQL that loses the reply to a COMMIT which the server has done.

Imports the standard library only. It reads the frontend's and the backend's messages as bytes; the
server's sockets and its own are unix sockets.
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
    """Pass everything on, but for the replies to some commits: then the connection is cut.

    `losing` says of transactions that hold these bytes how many replies are lost; `lost` counts.
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
        # Only a shutdown wakes the thread that waits in accept.
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
