"""What is logged of a request."""

from __future__ import annotations

import logging

from medproc.logs import PathsOnly


def test_no_query_string_is_logged() -> None:
    record = logging.LogRecord(
        "django.server",
        logging.INFO,
        "x.py",
        1,
        '"%s" %s %s',
        ("GET /admin/pipeline/batch/?q=Jane+Doe HTTP/1.1", "200", "56"),
        None,
    )

    assert PathsOnly().filter(record)

    assert record.getMessage() == '"GET /admin/pipeline/batch/ HTTP/1.1" 200 56'


def test_a_record_without_a_url_stays_as_it_is() -> None:
    record = logging.LogRecord("django.server", logging.INFO, "x.py", 1, "%d served", (3,), None)

    assert PathsOnly().filter(record)

    assert record.getMessage() == "3 served"
