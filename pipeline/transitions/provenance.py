"""What the workers of a record used: written to session and job when a worker begins a step.

`ai_processing_sessions.model_config` keeps the settings of the submission and of each step. A
difference between them becomes a warning of the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from pipeline.core.errors import ErrorCode
from pipeline.core.labels import PASS_TITLES
from pipeline.core.states import CALLING_STEPS, Step
from pipeline.core.types import WorkSettings
from pipeline.models import Job, Session, ShellFile
from pipeline.models.fields import ClockTimestamp
from pipeline.transitions.leases import Lease

_ENGINE = ("provider", "model", "input_mode")
_STEPS, _SUBMITTED = "steps", "submitted"


def submitted_config(submitted: WorkSettings) -> dict[str, Any]:
    """Return the `model_config` of a record that no worker has begun."""
    return {**submitted.as_json(), _SUBMITTED: submitted.as_json(), _STEPS: {}}


def note_settings(lease: Lease, used: WorkSettings) -> None:
    """Record the settings of the worker that begins a step; call this inside the fence.

    The job's retries follow the worker's settings. A step without calls leaves the model alone.
    """
    Job.objects.filter(id=lease.job_id).update(
        max_retries=used.job_max_retries, retry_delay=timedelta(seconds=used.retry_delay_s)
    )
    if lease.step not in CALLING_STEPS:
        return
    session = Session.objects.get(id=lease.session_id)
    config: dict[str, Any] = session.model_config
    steps: dict[str, Any] = config.get(_STEPS, {})
    own = {**used.as_json(), "worker": lease.worker_id}
    messages = [*_differences(lease.step, own, steps), *_from_submission(own, config)]
    Session.objects.filter(id=session.id).update(
        ai_model_name=used.model,
        processing_mode=used.input_mode,
        max_retries=used.job_max_retries,
        model_config={**config, **used.as_json(), _STEPS: {**steps, lease.step.value: own}},
        updated_at=ClockTimestamp(),
    )
    if messages:
        _warn(lease, messages)


def _differences(
    step: Step, own: Mapping[str, Any], steps: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for name, other in steps.items():
        if _engine(other) != _engine(own):
            again = " in an earlier run" if name == step else ""
            yield (
                f"{PASS_TITLES[step]} used {_named(own)}, and {PASS_TITLES[Step(name)]} used"
                f" {_named(other)}{again}. The settings of the workers differ."
            )


def _from_submission(own: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    submitted: Mapping[str, Any] = config.get(_SUBMITTED, {})
    names = [name for name, value in submitted.items() if own.get(name, value) != value]
    if not names:
        return
    if any(name in _ENGINE for name in names):
        yield (
            f"The workers used {_named(own)}. The process that submitted the record is set to"
            f" {_named(submitted)}."
        )
    else:
        yield (
            "The workers and the process that submitted the record have different settings:"
            f" {', '.join(sorted(names))}. The settings of the workers apply."
        )


def _engine(config: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(config.get(name) for name in _ENGINE)


def _named(config: Mapping[str, Any]) -> str:
    return f"{config.get('model')} ({config.get('provider')}, {config.get('input_mode')})"


def _warn(lease: Lease, messages: list[str]) -> None:
    code = ErrorCode.SETTINGS_DIFFER.value
    shell_file = ShellFile.objects.only("warnings").get(id=lease.shell_file_id)
    known = {warning["message"] for warning in shell_file.warnings}
    added = [{"code": code, "message": m, "pages": []} for m in messages if m not in known]
    if added:
        ShellFile.objects.filter(id=lease.shell_file_id).update(
            warnings=[*shell_file.warnings, *added]
        )
