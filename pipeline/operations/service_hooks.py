"""Calls the functions of `settings.SERVICE_HOOKS` when a service starts and when it ends.

A service starts and ends whatever its hooks do, because an unreachable server must not stop it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string

from pipeline.core.redaction import redacted

logger = logging.getLogger(__name__)


@contextmanager
def serving(service: str, *, level: int = logging.INFO) -> Iterator[None]:
    """Run the hooks now and at the end; no connection stays open for a later fork.

    `level` is the level at which a hook's line is logged.
    """
    _run(service, "start", level)
    try:
        yield
    finally:
        _run(service, "end", level)


def _run(service: str, moment: str, level: int) -> None:
    for name in settings.SERVICE_HOOKS:
        try:
            said = import_string(name)()
        except Exception as error:  # noqa: BLE001 - the service goes on without the hook
            logger.warning("%s of %s: %s failed: %s", moment, service, name, redacted(error))
        else:
            if said:
                logger.log(level, "%s of %s: %s", moment, service, said)
    connections.close_all()
