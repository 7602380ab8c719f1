"""The error taxonomy: one table of codes, and the exceptions that carry them.

Imports nothing of the project. Every message is free of PHI by construction: it is written by us.

    PipelineError                 anything that ends a call, a batch, a step or a command
    ├── InputError                the file itself cannot be processed (INPUT_*)
    ├── CallError                 one call to the provider failed; carries HTTP facts and usage
    │   └── ReplyError            the provider answered, but not with something we can use
    ├── LeaseLostError                 another worker owns the job; stop and write nothing
    └── UserError                 a command or request that cannot be carried out as asked
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Budget(StrEnum):
    """What a failed call costs."""

    ATTEMPT = "attempt"
    """One of the batch's `max_retries` attempts."""
    RATE_LIMIT = "rate_limit"
    """One of `RATE_LIMIT_BUDGET` limited calls; no attempt."""
    SPLIT = "split"
    """Nothing: the pages are halved instead."""
    PARK = "park"
    """Nothing: the job waits for the reset, or for a valid key."""
    NONE = "none"
    """It ends at once; nothing is left to spend."""


class ErrorCode(StrEnum):
    """Every code that a row, a command or a reply of the API can carry (`spec.md` point 19)."""

    RATE_LIMIT = "RATE_LIMIT"
    QUOTA_EXHAUSTED = "QUOTA_EXHAUSTED"
    API_TIMEOUT = "API_TIMEOUT"
    API_5XX = "API_5XX"
    API_4XX = "API_4XX"
    API_AUTH = "API_AUTH"
    PARSE_JSON = "PARSE_JSON"
    PARSE_SCHEMA = "PARSE_SCHEMA"
    CONTEXT_TOO_LARGE = "CONTEXT_TOO_LARGE"
    OUTPUT_TRUNCATED = "OUTPUT_TRUNCATED"
    EMPTY_RESPONSE = "EMPTY_RESPONSE"
    CONTENT_BLOCKED = "CONTENT_BLOCKED"
    REPLY_MISMATCH = "REPLY_MISMATCH"
    OCR_QUALITY_LOW = "OCR_QUALITY_LOW"
    NO_ENTITIES_FOUND = "NO_ENTITIES_FOUND"
    ENCOUNTER_NOT_FOUND = "ENCOUNTER_NOT_FOUND"
    PATIENT_MISMATCH = "PATIENT_MISMATCH"
    LANGUAGE_UNSUPPORTED = "LANGUAGE_UNSUPPORTED"
    INPUT_INVALID = "INPUT_INVALID"
    INPUT_ENCRYPTED = "INPUT_ENCRYPTED"
    INPUT_TOO_LARGE = "INPUT_TOO_LARGE"
    DB_ERROR = "DB_ERROR"
    STORAGE_FULL = "STORAGE_FULL"
    WORKER_LOST = "WORKER_LOST"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    MAX_RETRIES_EXCEEDED = "MAX_RETRIES_EXCEEDED"


@dataclass(frozen=True)
class ErrorFacts:
    """What follows from a code: whether to try again, at which cost, and what to do."""

    retryable: bool
    budget: Budget
    advice: str


_A, _N = Budget.ATTEMPT, Budget.NONE

ERRORS: dict[ErrorCode, ErrorFacts] = {
    ErrorCode.RATE_LIMIT: ErrorFacts(
        True,
        Budget.RATE_LIMIT,
        "The quota per minute binds; running work waits by itself, failed work needs a retry.",
    ),
    ErrorCode.QUOTA_EXHAUSTED: ErrorFacts(
        False, Budget.PARK, "A day or spend quota is used up; wait for its reset or raise it."
    ),
    ErrorCode.API_TIMEOUT: ErrorFacts(
        True, _A, "The provider did not answer in time; retry, and look for an outage."
    ),
    ErrorCode.API_5XX: ErrorFacts(True, _A, "The provider failed; retry when it has recovered."),
    ErrorCode.API_4XX: ErrorFacts(
        False, _N, "The provider refused the request; check the model's name and the schema."
    ),
    ErrorCode.API_AUTH: ErrorFacts(
        False,
        Budget.PARK,
        "The key is wrong or lacks a right; put a valid GEMINI_API_KEY in place.",
    ),
    ErrorCode.PARSE_JSON: ErrorFacts(True, _A, "The reply was not JSON; retry."),
    ErrorCode.PARSE_SCHEMA: ErrorFacts(
        True, _A, "The reply did not have the expected shape; retry, then check the prompt."
    ),
    ErrorCode.CONTEXT_TOO_LARGE: ErrorFacts(
        False, Budget.SPLIT, "The pages are too long for the model; use smaller batches."
    ),
    ErrorCode.OUTPUT_TRUNCATED: ErrorFacts(
        False, Budget.SPLIT, "The answer was cut off; use smaller batches."
    ),
    ErrorCode.EMPTY_RESPONSE: ErrorFacts(True, _A, "The provider answered with nothing; retry."),
    ErrorCode.CONTENT_BLOCKED: ErrorFacts(
        False, _N, "The provider's filter refused these pages; review them by hand."
    ),
    ErrorCode.REPLY_MISMATCH: ErrorFacts(
        True, _A, "The reply belonged to another request and was thrown away; report it."
    ),
    ErrorCode.OCR_QUALITY_LOW: ErrorFacts(
        False, _N, "The scan is too poor to trust; ask for a better copy or review by hand."
    ),
    ErrorCode.NO_ENTITIES_FOUND: ErrorFacts(
        False, _N, "Nothing clinical was found; this can be right, look at the pages."
    ),
    ErrorCode.ENCOUNTER_NOT_FOUND: ErrorFacts(
        False, _N, "That encounter is not of this record; check the id."
    ),
    ErrorCode.PATIENT_MISMATCH: ErrorFacts(
        False, _N, "These pages name another patient; check them before anything is published."
    ),
    ErrorCode.LANGUAGE_UNSUPPORTED: ErrorFacts(
        False, _N, "The local engine reads English only; use the Gemini provider."
    ),
    ErrorCode.INPUT_INVALID: ErrorFacts(
        False, _N, "The file is broken or of another kind; send a PDF, TIFF, PNG or JPEG."
    ),
    ErrorCode.INPUT_ENCRYPTED: ErrorFacts(
        False, _N, "The file needs a password; send it without one."
    ),
    ErrorCode.INPUT_TOO_LARGE: ErrorFacts(
        False, _N, "The file passes a limit; split it, or raise MAX_UPLOAD_MB or MAX_PAGES."
    ),
    ErrorCode.DB_ERROR: ErrorFacts(
        True, _A, "The database failed; it is tried again without a call to the provider."
    ),
    ErrorCode.STORAGE_FULL: ErrorFacts(True, _A, "The disk is full; make room, then retry."),
    ErrorCode.WORKER_LOST: ErrorFacts(
        True, _N, "Three workers died in this step; find out why, then requeue the record."
    ),
    ErrorCode.DEADLINE_EXCEEDED: ErrorFacts(
        False, _N, "The step's time was used up; retry the record."
    ),
    ErrorCode.CANCELLED: ErrorFacts(False, _N, "Cancelled by an operator."),
    ErrorCode.INTERNAL_ERROR: ErrorFacts(
        False, _N, "A fault of medproc; report it with the id of the job."
    ),
    ErrorCode.MAX_RETRIES_EXCEEDED: ErrorFacts(
        False, _N, "All attempts are used up; look at the underlying error, then retry."
    ),
}
"""The one table behind the classifier, the retry policy, the console and the documentation."""


class PipelineError(Exception):
    """Something in the pipeline failed with a code of the taxonomy."""

    code: ErrorCode = ErrorCode.INTERNAL_ERROR

    def __init__(self, message: str = "", *, code: ErrorCode | None = None) -> None:
        if code is not None:
            self.code = code
        self.message = message or ERRORS[self.code].advice
        super().__init__(self.message)

    @property
    def facts(self) -> ErrorFacts:
        """What follows from this error's code."""
        return ERRORS[self.code]


class InputError(PipelineError):
    """The file cannot be processed, whoever tries."""

    code = ErrorCode.INPUT_INVALID


class UserError(PipelineError):
    """The command or request cannot be carried out as asked; the message says what to do."""

    code = ErrorCode.API_4XX


class LeaseLostError(PipelineError):
    """The job belongs to another worker now; write nothing more."""

    code = ErrorCode.WORKER_LOST


@dataclass(frozen=True, kw_only=True)
class CallFacts:
    """What is known of a failed or succeeded call beside its reply; goes to `provider_calls`."""

    http_status: int | None = None
    finish_reason: str = ""
    quota_id: str = ""
    retry_after_s: float | None = None
    model_version: str = ""
    response_id: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    raw_reply: str = field(default="", repr=False)
    """The reply's text as it came; PHI, kept in `provider_payloads` only."""

    def log_context(self) -> dict[str, Any]:
        """Return what may be logged."""
        return {
            "http_status": self.http_status,
            "finish_reason": self.finish_reason,
            "quota_id": self.quota_id,
            "retry_after_s": self.retry_after_s,
        }


class CallError(PipelineError):
    """One call to the provider failed."""

    code = ErrorCode.API_5XX

    def __init__(
        self, message: str = "", *, code: ErrorCode | None = None, facts: CallFacts | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.call = facts or CallFacts()


class ReplyError(CallError):
    """The provider answered with something that cannot be used."""

    code = ErrorCode.PARSE_SCHEMA
