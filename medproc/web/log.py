"""The log of the web server: gunicorn's messages and one line per request, without client words.

A request line, a header or the message of an exception can name a patient. `medproc.logs` says
which words of a request a line may keep. `medproc.logs` is imported by the workers only, as
`gunicorn_config` explains.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from gunicorn.glogging import Logger

from medproc.printable import PlainFormatter

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class WithoutClientWords(logging.Filter):
    """Removes the words of clients from gunicorn's own messages."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the message of the record; every record passes."""
        message = str(record.msg)
        if message.startswith("Invalid request"):
            record.msg, record.args = "a request could not be read and was refused", ()
        elif message.startswith("Error handling request") and isinstance(record.args, tuple):
            from medproc.logs import allowed

            record.args = tuple(map(allowed, record.args))
        if record.exc_info:
            from medproc.logs import places

            record.msg = f"{record.getMessage()}: {places(record.exc_info[1])}"
            record.args, record.exc_info, record.exc_text = (), None, None
        return True


class ServerLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Writes to standard error only; `make up` and containers collect standard error."""

    access_log_enabled = True

    def setup(self, cfg: Any) -> None:
        """Give gunicorn's logger one handler."""
        self.cfg = cfg
        handler = logging.StreamHandler()
        handler.setFormatter(PlainFormatter(LINE))
        handler.addFilter(WithoutClientWords())
        self.error_log.handlers[:] = [handler]
        self.error_log.setLevel(logging.INFO)

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """Log a request as Django's own server does, so that the same filter applies.

        A good answer to a probe or a scrape is not logged: they come every few seconds.
        """
        from medproc.logs import ASKED_OFTEN

        status = str(resp.status).partition(" ")[0]
        if status == "200" and environ.get("RAW_URI") in ASKED_OFTEN:
            return
        asked = (environ.get(key, "-") for key in ("REQUEST_METHOD", "RAW_URI", "SERVER_PROTOCOL"))
        size = str(resp.response_length or resp.sent or 0)
        milliseconds = int(request_time.total_seconds() * 1000)
        logging.getLogger("django.server").info(
            '"%s" %s %s %d ms', " ".join(asked), status, size, milliseconds
        )
