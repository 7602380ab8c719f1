"""The page of a failed row explains its error code with the text of the code table."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.models import Batch, Job, ProviderCall, Session, Summary
from tests.support import records

pytestmark = pytest.mark.django_db


def test_the_page_of_what_failed_gives_the_tables_words_for_its_root_cause() -> None:
    record = records.failed_record(records.VISITS, records.ONE_BROKEN_BATCH)
    operator = Client()
    operator.force_login(User.objects.create_superuser("operator", password="for-tests-only"))
    facts = ERRORS[ErrorCode.PARSE_JSON]
    failed = [
        Job.objects.get(shell_file=record),
        Session.objects.get(shell_file=record),
        Summary.objects.get(shell_file=record),
        Batch.objects.get(status="failed"),
        ProviderCall.objects.filter(outcome="PARSE_JSON")[0],
    ]

    pages = {
        row._meta.model_name: operator.get(
            reverse(f"admin:pipeline_{row._meta.model_name}_change", args=[row.pk])
        ).content.decode()
        for row in failed
    }

    said = escape(f"PARSE_JSON: retryable, budget {facts.budget}. {facts.advice}")
    assert [name for name, page in pages.items() if said not in page] == []
