"""The operator's verbs, the same for command line, admin and code. Imports stages and queues."""

from __future__ import annotations

from pipeline.queues import enqueue_step
from pipeline.stages.intake import Received, Submission, receive


def record_submit(submission: Submission) -> Received:
    """Take a file in and wake a worker for it.

    Raises InputError where the bytes cannot be a record, and PipelineError STORAGE_FULL where
    there is no room; nothing is kept then.
    """
    received = receive(submission)
    if received.due is not None:
        enqueue_step(received.job_id, received.due.value, received.dispatch_no)
    return received
