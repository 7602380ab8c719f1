"""Run the emulator until it is stopped; print its address on the first line.

SIGTERM, Ctrl-C or (on request) the end of a connection stops it and leaves a complete log.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable

from gemini_emulator.http import listen
from gemini_emulator.service import Options, Service


def serve(
    options: Options,
    *,
    port: int,
    announce: Callable[[str], None],
    until_closed: socket.socket | None = None,
) -> None:
    """Serve on 127.0.0.1; `announce` receives the URL once connections are accepted."""
    asyncio.run(_serve(options, port, announce, until_closed))


async def _serve(
    options: Options, port: int, announce: Callable[[str], None], until_closed: socket.socket | None
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_closed is not None:
        # The starter sends nothing, so the connection becomes readable at its end.
        loop.add_reader(until_closed.fileno(), stop.set)
    service = Service(options)
    server = await listen(service.handle, port)
    gc.freeze()
    announce(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await stop.wait()
    server.close()
    service.close()
