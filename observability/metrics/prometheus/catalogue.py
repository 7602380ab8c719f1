"""The declarations of all metrics, by their source."""

from __future__ import annotations

from observability.metrics.prometheus.families import MetricDeclaration, MetricKind
from pipeline.core.labels import StatusWord
from pipeline.core.server_faults import ServerFault
from pipeline.core.states import JOB_TERMINAL, IncidentKind, Step
from pipeline.models import ReviewLane
from pipeline.models.sla import PRIORITIES
from pipeline.transitions.metric_counts import CALL_S, CONFIDENCE, DURATION_S

_MODEL = ("provider", "model")
_PRIORITIES = tuple((name,) for name in PRIORITIES)
_STEPS = tuple(step.value for step in Step)
# The console does not know the API; a test compares the words.
WEBHOOK_OUTCOMES = (
    "OK", "ADDRESS_REFUSED", "NAME_UNKNOWN", "CONNECTION_FAILED", "TLS_FAILED", "TIMEOUT",
    "RESPONSE_INVALID", "STATUS_REFUSED",
)  # fmt: skip
COUNTED_UP_TO = 10_000
"""A gauge of rows counts up to this number for each label value."""

COUNTED = (
    MetricDeclaration(
        name="documents_processed",
        kind=MetricKind.COUNTER,
        help="Records whose job ended, by the status of the job.",
        labels=("status",),
        counted="documents_processed",
        zeros=tuple((status.value,) for status in sorted(JOB_TERMINAL)),
    ),
    MetricDeclaration(
        name="processing_duration",
        kind=MetricKind.HISTOGRAM,
        help="Seconds for which workers ran a completed record; waiting does not count.",
        counted="processing_duration",
        bounds=DURATION_S,
        zeros=((),),
    ),
    MetricDeclaration(
        name="extraction_confidence",
        kind=MetricKind.HISTOGRAM,
        help="Confidence (0 to 1) of completed records with an accepted entity.",
        counted="extraction_confidence",
        bounds=CONFIDENCE,
        zeros=((),),
    ),
    MetricDeclaration(
        name="medproc_sla_records",
        kind=MetricKind.COUNTER,
        help="Records that ended within their target (met) or not (missed); none cancelled.",
        labels=("priority", "result"),
        counted="sla_records",
        zeros=tuple((name, result) for name in PRIORITIES for result in ("met", "missed")),
    ),
    MetricDeclaration(
        name="medproc_pages_processed",
        kind=MetricKind.COUNTER,
        help="Pages of completed records.",
        counted="pages_processed",
        zeros=((),),
    ),
    MetricDeclaration(
        name="medproc_turnaround_seconds",
        kind=MetricKind.HISTOGRAM,
        help="Seconds from the submission of a completed record to its end.",
        labels=("priority",),
        counted="turnaround",
        bounds=DURATION_S,
        zeros=_PRIORITIES,
    ),
    MetricDeclaration(
        name="medproc_provider_calls",
        kind=MetricKind.COUNTER,
        help="Calls to the provider by outcome: OK, LATE or an error code.",
        labels=(*_MODEL, "step", "outcome"),
        counted="calls",
    ),
    MetricDeclaration(
        name="medproc_reply_mismatches",
        kind=MetricKind.COUNTER,
        help="Calls whose reply belonged to another request.",
        counted="reply_mismatches",
        zeros=((),),
    ),
    MetricDeclaration(
        name="medproc_provider_calls_accepted",
        kind=MetricKind.COUNTER,
        help="Calls whose reply became a result: the goodput.",
        labels=_MODEL,
        counted="accepted_calls",
    ),
    MetricDeclaration(
        name="medproc_provider_input_tokens_accepted",
        kind=MetricKind.COUNTER,
        help="Input tokens of calls whose reply became a result: the goodput in tokens.",
        labels=_MODEL,
        counted="accepted_input_tokens",
    ),
    MetricDeclaration(
        name="medproc_provider_tokens",
        kind=MetricKind.COUNTER,
        help="Tokens of all calls: input, output, thinking, cached.",
        labels=(*_MODEL, "kind"),
        counted="tokens",
    ),
    MetricDeclaration(
        name="medproc_provider_cost_usd",
        kind=MetricKind.COUNTER,
        help="Cost of all calls in US dollars.",
        labels=_MODEL,
        counted="cost",
    ),
    MetricDeclaration(
        name="medproc_provider_call_seconds",
        kind=MetricKind.HISTOGRAM,
        help="Seconds of a call with any outcome, without its wait for the rate limiter.",
        labels=_MODEL,
        counted="call_seconds",
        bounds=CALL_S,
    ),
    MetricDeclaration(
        name="medproc_review_flags",
        kind=MetricKind.COUNTER,
        help="Review flags of published results by class, without the attribute.",
        labels=("step", "flag"),
        counted="review_flags",
    ),
    MetricDeclaration(
        name="medproc_step_crashes",
        kind=MetricKind.COUNTER,
        help="Leases that expired because the process of a step was lost.",
        labels=("step",),
        counted="crashes",
        zeros=tuple((step,) for step in _STEPS),
    ),
    MetricDeclaration(
        name="medproc_job_retries",
        kind=MetricKind.COUNTER,
        help="Retries of jobs: by medproc after a delay, or by an operator.",
        labels=("step", "by"),
        counted="retries",
        zeros=tuple((step, by) for step in _STEPS for by in ("medproc", "operator")),
    ),
    MetricDeclaration(
        name="medproc_incidents",
        kind=MetricKind.COUNTER,
        help="Incidents that were opened.",
        labels=("kind",),
        counted="incidents",
        zeros=tuple((kind.value,) for kind in IncidentKind),
    ),
    MetricDeclaration(
        name="medproc_webhook_attempts",
        kind=MetricKind.COUNTER,
        help="Attempts to deliver an event to a webhook: OK, or why the attempt failed.",
        labels=("outcome",),
        counted="webhook_attempts",
        zeros=tuple((outcome,) for outcome in WEBHOOK_OUTCOMES),
    ),
    MetricDeclaration(
        name="medproc_webhook_deliveries",
        kind=MetricKind.COUNTER,
        help="Deliveries to webhooks that ended; failed after the last attempt of the schedule.",
        labels=("status",),
        counted="webhook_deliveries",
        zeros=(("succeeded",), ("failed",)),
    ),
)
"""Counters and histograms of `metric_counts`."""

LIMITED = {
    "rate_limited_items_stored": "Items whose call was refused with 429 and that were stored.",
    "rate_limited_items_redistributed": "Stored items that started again.",
    "rate_limit_generations": "Cooldowns of the rate limiter.",
    "rate_limit_participants": "Limited calls that found their cooldown already set.",
    "breaker_trips": "Openings of the circuit breaker.",
}
LIMITER_COUNTS = tuple(
    MetricDeclaration(name=f"medproc_{name}", kind=MetricKind.COUNTER, help=text, labels=_MODEL)
    for name, text in LIMITED.items()
)
"""The counters of the rate limiter over all lives of Redis (requirement 50)."""


def _gauge(
    name: str, text: str, *labels: str, zeros: tuple[tuple[str, ...], ...] = ()
) -> MetricDeclaration:
    return MetricDeclaration(
        name=f"medproc_{name}", kind=MetricKind.GAUGE, help=text, labels=labels, zeros=zeros
    )


_STATES = (StatusWord.WAITING, StatusWord.RUNNING, StatusWord.PARKED, StatusWord.DEAD)
RECORDS = _gauge(
    "records",
    f"Records that have not ended well, by step and state, up to {COUNTED_UP_TO}. The state failed"
    " counts the last 24 hours.",
    "step",
    "state",
    zeros=tuple((step, state.value) for step in _STEPS for state in (*_STATES, StatusWord.FAILED)),
)
OLDEST = _gauge(
    "oldest_record_seconds",
    "Age of the oldest waiting, running or parked record: since it waits, runs or was parked.",
    "step",
    "state",
)
LEASES = _gauge("leases", "Leases of running jobs, live or expired.", "state",
                zeros=(("live",), ("expired",)))  # fmt: skip
INCIDENTS_OPEN = _gauge("incidents_open", "Open incidents.", "kind",
                        zeros=tuple((kind.value,) for kind in IncidentKind))  # fmt: skip
PAUSES_OPEN = _gauge("pauses_open", "Queues and providers that an operator has paused.")
REVIEWS = _gauge("review_backlog", f"Open reviews by lane, up to {COUNTED_UP_TO}.", "lane",
                 zeros=tuple((lane.value,) for lane in ReviewLane))  # fmt: skip
TASK_AGE = _gauge(
    "periodic_task_age_seconds", "Seconds since a periodic task last started.", "task"
)
TASK_WELL = _gauge("periodic_task_well", "1 if a periodic task runs as often as it should.", "task")
SLA_TARGET = _gauge("sla_target_seconds", "Target from submission to end, by priority.", "priority")
SLA_LATE = _gauge(
    "sla_records_late",
    f"Records that have not ended and are past their target, up to {COUNTED_UP_TO} a status.",
    "priority",
    zeros=_PRIORITIES,
)
AUDIT_ALARM = _gauge("audit_alarm", "1 if the audit chain is broken.")
OF_DATABASE = (
    RECORDS, OLDEST, LEASES, INCIDENTS_OPEN, PAUSES_OPEN, REVIEWS, TASK_AGE, TASK_WELL, SLA_TARGET,
    SLA_LATE,
    AUDIT_ALARM,
)  # fmt: skip

QUOTA = _gauge("quota", "Limit of the quota.", *_MODEL, "limit")
QUOTA_USED = _gauge("quota_used", "Used part of the quota in the present window.", *_MODEL, "limit")
IN_FLIGHT = _gauge("calls_in_flight", "Calls that the provider has not answered.", *_MODEL)
COOLDOWN = _gauge("cooldown_seconds", "Seconds left of a cooldown after 429.", *_MODEL)
BREAKER = _gauge("breaker_open", "1 while the circuit breaker is not closed.", *_MODEL)
WORKERS = _gauge("workers", "Workers by state.", "state",
                 zeros=(("idle",), ("busy",), ("error",)))  # fmt: skip
SUSPENDED = _gauge("workers_suspended", "1 while `rqsuspend` holds the workers.")
WORKER_RSS = _gauge("worker_resident_bytes", "Resident memory of the workers of a host with their"
                    " running steps.", "host")  # fmt: skip
HOST_MEMORY = _gauge("host_memory_bytes", "Memory of a host with workers.", "host", "kind")
MEMORY_SHORT = _gauge("host_memory_short", "1 if the steps of a host can exhaust its memory.",
                      "host")  # fmt: skip
OF_REDIS = (
    QUOTA, QUOTA_USED, IN_FLIGHT, COOLDOWN, BREAKER, WORKERS, SUSPENDED, WORKER_RSS, HOST_MEMORY,
    MEMORY_SHORT,
)  # fmt: skip

SOURCE_UP = _gauge("scrape_source_up", "1 if this scrape could read the source.", "source")
FAULTS = _gauge("server_fault", "1 for the reason why PostgreSQL, Redis or the bucket refuses.",
                "code", zeros=tuple((fault.value,) for fault in ServerFault))  # fmt: skip
OF_SCRAPE = (SOURCE_UP, FAULTS)

ALL: tuple[MetricDeclaration, ...] = (
    *COUNTED,
    *LIMITER_COUNTS,
    *OF_DATABASE,
    *OF_REDIS,
    *OF_SCRAPE,
)
