"""System checks of the environment, the queues and the databases.

Each wrong variable is one error with the id `medproc.E0xx`, and each suspicious variable is one
warning, all from `env.py`. E101 refuses a queue that would unpickle its entries, and E102 a pool of
connections in the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as CheckWarning
from rq.serializers import JSONSerializer, resolve_serializer

from medproc import db_pool


@register("environment")
def check_environment(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Report every wrong variable of the environment, and every suspicious one."""
    return [
        *(
            Error(problem.message, hint=problem.hint, id=problem.id)
            for problem in settings.ENVIRONMENT_PROBLEMS
        ),
        *(
            CheckWarning(problem.message, hint=problem.hint, id=problem.id)
            for problem in settings.ENVIRONMENT_WARNINGS
        ),
    ]


@register("environment")
def check_serializers(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse queues that are not JSON: a pickle in Redis could run code in a worker."""
    return [
        Error(
            f"The queue {name} does not use rq.serializers.JSONSerializer.",
            hint='Set RQ_QUEUES["…"]["SERIALIZER"] to "rq.serializers.JSONSerializer".',
            id="medproc.E101",
        )
        for name, queue in settings.RQ_QUEUES.items()
        if resolve_serializer(queue.get("SERIALIZER")) is not JSONSerializer
    ]


@register("environment")
def check_pools(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a pool in the settings: a worker forks, and its children would share the pool."""
    return [
        Error(
            f'The database {name} sets OPTIONS["pool"], which workers must not have.',
            hint="Remove the option. The console has a pool of its own by itself.",
            id="medproc.E102",
        )
        for name, database in settings.DATABASES.items()
        if db_pool.has_foreign_pool(database)
    ]
