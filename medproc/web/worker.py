"""A threaded worker of gunicorn that gives a thread only to a request that has arrived.

gunicorn's own threaded worker reads the head of a request in a thread. So a few hundred clients
that send half a request would hold every thread. The same holds for connections without a request,
and nothing limits the requests that wait for a thread. This worker bounds all of these.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from medproc.web.limits import (
    CONNECTIONS,
    HEAD_S,
    IDLE_S,
    LINGER_S,
    REQUEST_S,
    THREADS_WITHOUT_UPLOADS,
    UNREAD_ANSWER,
    WAITING_REQUESTS,
)
from medproc.web.request_head import ENOUGH, Arrival, arrived

_READY = frozenset({Arrival.WHOLE, Arrival.LONG})
_UNFINISHED = frozenset({Arrival.PART, Arrival.ASKS})
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_IDLE = struct.pack("ll", int(IDLE_S), 0)
_REFUSED = {
    Arrival.TOO_LONG: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    Arrival.WITHOUT_LENGTH: HTTPStatus.LENGTH_REQUIRED,
}


class Connection(TConn):  # type: ignore[misc]  # gunicorn has no types
    """A connection, and what is known of its next request."""

    seen = 0
    """The bytes that had arrived at the last look."""
    is_told = False
    """Whether the client was told to send its body."""
    is_long = False
    """Whether a thread reads the body of the request while the body arrives."""


class BoundedWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """The worker. Only its event loop calls the methods below."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._began: dict[Connection, float] = {}
        """The connections that have or await a thread, and since when (monotonic seconds)."""
        self._ending: deque[Connection] = deque()
        """The connections whose answer is sent, and whose client has not closed yet."""
        self._uploads = 0
        """The requests with a long body that have a thread."""
        self._waiting: deque[Connection] = deque()
        """The connections whose request has a long body and awaits the end of another upload."""

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection; a thread is used only after the request has arrived."""
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return
        self.nr_conns += 1
        if self.nr_conns > CONNECTIONS:
            self._make_room()
        self._await(Connection(self.cfg, client, address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Await the next request of a connection that was kept open."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._await(conn)

    def on_pending_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Hand a request that has arrived to a thread; else wait for more bytes."""
        try:
            data = client.recv(ENOUGH, socket.MSG_PEEK)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EINTR):
                self._drop(conn)
            return
        found = arrived(data)
        if not data:
            self._drop(conn)
        elif found in _REFUSED:
            self._refuse(conn, _REFUSED[found])
        elif found in _UNFINISHED and len(data) == conn.seen:
            # The socket was reported without a further byte: the client has ended its side.
            self._refuse(conn, HTTPStatus.BAD_REQUEST)
        elif found in _UNFINISHED:
            if found is Arrival.ASKS and not conn.is_told:
                conn.is_told = True
                with suppress(OSError):
                    client.send(_CONTINUE)
            # The kernel reports the socket again only when one more byte is there, so a client that
            # sends nothing more costs no time.
            conn.seen = len(data)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(data) + 1)
        elif len(self._began) >= self.cfg.threads + WAITING_REQUESTS:
            self._refuse(conn, HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._forget(conn)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            conn.data_ready = True
            conn.is_long = found is Arrival.LONG
            self.enqueue_req(conn)

    def enqueue_req(self, conn: Connection) -> None:
        """Give a request to the threads, and note since when; uploads leave threads for others."""
        self._began[conn] = time.monotonic()
        if conn.is_long and self._uploads >= max(1, self.cfg.threads - THREADS_WITHOUT_UPLOADS):
            self._waiting.append(conn)
        else:
            self._start(conn)

    def _start(self, conn: Connection) -> None:
        self._uploads += conn.is_long
        super().enqueue_req(conn)

    def finish_request(self, conn: Connection, fs: Future[Any]) -> None:
        """Keep the connection of an ended request, or let its client close the connection.

        gunicorn's own method waits up to two seconds for the client, and the event loop with it.
        """
        self._began.pop(conn, None)
        if conn.is_long:
            self._uploads -= 1
            if self._waiting:
                self._start(self._waiting.popleft())
        is_kept = not fs.cancelled() and fs.exception() is None and bool(fs.result())
        left = conn.parser.unreader.buf.getvalue() if is_kept else b""
        # Half of a second request can come with the first: a thread would wait for the other half.
        following = arrived(left) if left else Arrival.WHOLE
        conn.is_long = following is Arrival.LONG
        if is_kept and following in _READY:
            super().finish_request(conn, fs)
        else:
            self._end(conn)

    def murder_pending(self) -> None:
        """Refuse requests that did not arrive in time, and end requests that last too long."""
        now = time.monotonic()
        while self.pending_conns and self.pending_conns[0].timeout <= now:
            conn = self.pending_conns[0]
            if conn.seen:
                self._refuse(conn, HTTPStatus.REQUEST_TIMEOUT)
            else:
                self._drop(conn)
        while self._ending and self._ending[0].timeout <= now:
            self._close(self._ending[0])
        for conn, began in tuple(self._began.items()):
            if now - began < REQUEST_S:
                break
            self._began.pop(conn)
            self.log.warning("a request lasted over %.0f s and was cut", REQUEST_S)
            # The thread closes the connection; here only its reads and writes are ended.
            with suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)

    def _cap_keepalive(self, deadline: float) -> None:
        """Let connections without a request delay the end of the worker no longer than others."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def _await(self, conn: Connection) -> None:
        client = conn.sock
        client.setblocking(False)
        # In the thread the socket blocks, so only the kernel can bound a read or a write.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _IDLE)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _IDLE)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_ANSWER)
        conn.seen, conn.is_told = 0, False
        conn.timeout = time.monotonic() + HEAD_S
        self.pending_conns.append(conn)
        readable = partial(self.on_pending_socket_readable, conn)
        self.poller.register(client, selectors.EVENT_READ, readable)

    def _make_room(self) -> None:
        """Close the connection that has waited longest for its own request."""
        if self.pending_conns:
            self._drop(self.pending_conns[0])
        elif self.keepalived_conns:
            conn = self.keepalived_conns.popleft()
            self.poller.unregister(conn.sock)
            self.nr_conns -= 1
            conn.close()

    def _forget(self, conn: Connection) -> None:
        self.pending_conns.remove(conn)
        self.poller.unregister(conn.sock)

    def _drop(self, conn: Connection) -> None:
        """Close a connection that waits for its request."""
        self._forget(conn)
        self.nr_conns -= 1
        conn.close()

    def _refuse(self, conn: Connection, status: HTTPStatus) -> None:
        """Answer a request that gets no thread."""
        self._forget(conn)
        self.log.warning("code %d, message %s", status.value, status.phrase)
        # The answer is small, so the kernel takes the answer at once or never.
        with suppress(OSError):
            util.write_error(conn.sock, status.value, status.phrase, status.phrase)
        self._end(conn)

    def _end(self, conn: Connection) -> None:
        """Say that nothing more is sent, and wait until the client has read the answer.

        A close with unread bytes would reset the connection, and the client could lose the answer.
        """
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        except OSError:
            self.nr_conns -= 1
            conn.close()
            return
        conn.timeout = time.monotonic() + LINGER_S
        self._ending.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))

    def _drain(self, conn: Connection, client: socket.socket) -> None:
        try:
            if client.recv(ENOUGH):
                return
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EINTR):
                return
        self._close(conn)

    def _close(self, conn: Connection) -> None:
        self._ending.remove(conn)
        self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()
