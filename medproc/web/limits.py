"""The bounds of the web server. Each names what would be exhausted without the bound."""

from __future__ import annotations

HEAD_S = 10.0
"""Seconds in which a client must send the head of a request, and a body of at most SMALL_BODY."""
IDLE_S = 30.0
"""Seconds that one read or one write of a request may wait for the client."""
REQUEST_S = 900.0
"""Seconds of a whole request, with the wait for a thread. Then the server closes the connection,
and the thread meets a broken socket. An upload of 500 MB at 5 Mbit/s needs 800 s."""
KEEP_ALIVE_S = 15
"""Seconds that an idle connection stays open for the next request."""
LINGER_S = 2.0
"""Seconds that a client gets to close its side after the last answer."""
DRAIN_S = 30
"""Seconds that requests in progress get when the server stops or reloads."""

CONNECTIONS = 400
"""Open connections per process. Most systems let a process open 1,024 files."""
WAITING_REQUESTS = 256
"""Whole requests that wait for a thread, per process. Each further request is answered with 503."""
BACKLOG = 1024
"""Connections that the kernel holds before the server accepts them."""

HEAD_BYTES = 32_768
"""The largest head of a request. A larger head is answered with 431."""
SMALL_BODY = 32_768
"""The largest body that the server awaits without a thread. A form of the console is smaller."""
UNREAD_ANSWER = 524_288
"""Bytes of the kernel's buffer for an answer; about half of the buffer is payload. The thread is
free once the kernel has the rest of the answer, even if the client reads nothing. Linux grants
425,984 bytes unless net.core.wmem_max is raised."""
LARGEST_FILE = 204_800
"""The largest static file that is served: it fits into the buffer that Linux grants."""
THREADS_WITHOUT_UPLOADS = 2
"""Threads of each process that no body above SMALL_BODY may take, so that pages are answered while
files arrive. Of 2 threads or of 1 thread, one may receive files."""
ANONYMOUS_BODY = SMALL_BODY
"""The largest body of a request without a log-in. The form of the log-in has 300 bytes."""
CLIENT_REQUESTS = 1_200
"""Requests of one client of the HTTP API in a minute of the clock. Each further request is answered
with 429, so that one client with an error in a loop leaves threads for the others."""
