"""What may be logged of a request. Imports the standard library only."""

from __future__ import annotations

import logging
import re

_QUERY = re.compile(r"\?\S*")


class PathsOnly(logging.Filter):
    """Cuts the query string off every URL in a record: it may hold what somebody searched for."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Strip the record's words; every record passes."""
        if isinstance(record.args, tuple):
            record.args = tuple(_stripped(part) for part in record.args)
        record.msg = _stripped(record.msg)
        return True


def _stripped(part: object) -> object:
    return _QUERY.sub("", part) if isinstance(part, str) else part
