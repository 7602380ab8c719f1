"""Failures: what is going wrong, in groups? And the members of a group, filtered alike."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import django_filters
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from observability.charts import bars
from observability.failures import OF_CALLS, Group, Source, Window, groups
from observability.keyset import keyset_page
from observability.nodes import Cause
from observability.views.guard import page
from observability.views.shown import shown
from pipeline.errors import ErrorCode
from pipeline.models import OUTCOME_LATE, OUTCOME_OK, Job, ProviderCall
from pipeline.states import JobStatus, Step, WorkStatus
from pipeline.words import PASS_TITLES, counted

LISTED = 50
WINDOWS = [(window.value, window.words) for window in Window]


@page()
def failures(request: HttpRequest) -> HttpResponse:
    """Show the groups of a window (`?window=1h`, `24h`, `7d`)."""
    window = _window(request)
    found = groups(window, timezone.now())
    return shown(
        request,
        "console/failures.html",
        "Failures",
        found=found,
        rows=[(group, _trend(group), _members_query(group, window)) for group in found.groups],
        window=window,
        windows=list(Window),
    )


class Failed(django_filters.FilterSet):  # type: ignore[misc]
    """The filter of a group's members; all of it stands in the URL."""

    window = django_filters.ChoiceFilter(
        label="Within", choices=WINDOWS, method="within", empty_label=None
    )
    cause = django_filters.CharFilter(label="Cause", field_name="outcome")
    step = django_filters.ChoiceFilter(
        label="Pass", choices=list(PASS_TITLES.items()), empty_label="every pass"
    )
    model = django_filters.CharFilter(label="Model")
    state = django_filters.ChoiceFilter(
        label="Now",
        choices=[("failed", "failed for good"), ("absorbed", "succeeded since")],
        method="standing",
        empty_label="whatever became of it",
    )

    class Meta:
        model = ProviderCall
        fields: list[str] = []

    def within(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Keep what is not older than the window."""
        return rows.filter(created_at__gte=timezone.now() - Window(value).length)

    def standing(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Keep batches and chunks that stand so by now."""
        status = WorkStatus.FAILED if value == "failed" else WorkStatus.SUCCEEDED
        return rows.filter(Q(batch__status=status) | Q(chunk__status=status))


class FailedJobs(django_filters.FilterSet):  # type: ignore[misc]
    """The same for jobs that failed without a call."""

    window = django_filters.ChoiceFilter(
        label="Within", choices=WINDOWS, method="within", empty_label=None
    )
    cause = django_filters.CharFilter(label="Cause", field_name="error_code")
    step = django_filters.ChoiceFilter(
        label="Pass",
        field_name="current_step",
        choices=list(PASS_TITLES.items()),
        empty_label="every pass",
    )

    class Meta:
        model = Job
        fields: list[str] = []

    def within(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Keep what is not older than the window."""
        return rows.filter(completed_at__gte=timezone.now() - Window(value).length)


@page()
def members(request: HttpRequest) -> HttpResponse:
    """List the batches and chunks of a group, or its jobs (`?source=job`), newest first."""
    is_jobs = request.GET.get("source") == Source.JOB
    asked = request.GET.copy()
    asked["window"] = _window(request).value
    place = asked.pop("after", [""])[-1]
    chosen: django_filters.FilterSet
    if is_jobs:
        chosen = FailedJobs(asked, queryset=_failed_jobs())
        listed = keyset_page(chosen.qs, "completed_at", place, LISTED)
    else:
        chosen = Failed(asked, queryset=_failed_calls())
        listed = keyset_page(chosen.qs, "created_at", place, LISTED)
    cause = asked.get("cause", "")
    step = asked.get("step", "")
    where = f" in {PASS_TITLES[Step(step)]}" if step in Step.values else ""
    return shown(
        request,
        "console/members.html",
        f"Failures: {cause or 'all causes'}{where}",
        filter=chosen,
        listed=listed,
        is_jobs=is_jobs,
        source=Source.JOB if is_jobs else Source.CALL,
        advice=Cause(code=cause).advice,
        query=asked.urlencode(),
        retry_query=_retry_query(cause, step, _window(request).value),
    )


def _failed_calls() -> QuerySet[ProviderCall, ProviderCall]:
    """Return the last failed call of each batch and chunk, for each cause."""
    # Calls that were written in one flush have one time; their numbers differ.
    later = ProviderCall.objects.filter(
        outcome=OuterRef("outcome"), attempt__gt=OuterRef("attempt")
    )
    return (
        ProviderCall.objects.exclude(outcome=OUTCOME_LATE)
        # In the words of the partial index, or it is not used.
        .exclude(outcome=OUTCOME_OK)
        .filter(
            ~Exists(later.filter(batch=OuterRef("batch"))),
            ~Exists(later.filter(chunk=OuterRef("chunk"))),
        )
        .annotate(
            record_id=F("processing_session__shell_file_id"),
            batch_status=F("batch__status"),
            chunk_status=F("chunk__status"),
            batch_index=F("batch__batch_index"),
            chunk_index=F("chunk__chunk_index"),
            encounter_index=F("batch__healthcare_encounter__encounter_index"),
        )
    )


def _failed_jobs() -> QuerySet[Job, Job]:
    return (
        Job.objects.filter(status__in=[JobStatus.FAILED, JobStatus.DEAD])
        .exclude(error_code__in=OF_CALLS)
        .defer("error_details")
    )


def _window(request: HttpRequest) -> Window:
    asked = request.GET.get("window", "")
    return Window(asked) if asked in Window._value2member_map_ else Window.DAY


def _retry_query(cause: str, step: str, window: str) -> str:
    """Return the same filter for a retry; empty where no cause of the taxonomy is chosen."""
    if cause not in ErrorCode._value2member_map_:
        return ""
    query = {"error_code": cause, "window": window}
    return urlencode(query | ({"step": step} if step in Step.values else {}))


def _trend(group: Group) -> Any:
    words = f"{counted(sum(group.trend), 'failure')}; the highest bar is {max(group.trend)}"
    return bars(group.trend, words=words)


def _members_query(group: Group, window: Window) -> dict[str, str]:
    query = {
        "source": group.source.value,
        "window": window.value,
        "cause": group.cause,
        "step": group.step.value,
    }
    return query | ({"model": group.model} if group.model else {})
