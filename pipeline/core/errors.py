"""The error taxonomy: one table of codes, and the exceptions that carry them.

Every message is written by this project, so no message contains PHI.

    MedprocError            the root; carries a message
    ├── PipelineError       work on a record failed; carries an ErrorCode
    │   ├── InputError      the file itself cannot be processed (INPUT_*)
    │   └── CallError       one call to the provider failed; carries HTTP details and token counts
    │       └── ReplyError  the provider replied, but the reply cannot be used
    ├── UserError           a person's request cannot be carried out; carries a UserErrorCode
    └── LeaseLostError      another worker holds the job; stop and write nothing
        └── LeaseUnrenewedError  PostgreSQL refused for as long as the lease lived; stop
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Budget(StrEnum):
    """The cost of a failed call."""

    ATTEMPT = "attempt"
    """One of the work item's `max_attempts` attempts; refunded if an outage caused the failure (see
    `attempt_budget`)."""
    RATE_LIMIT = "rate_limit"
    """One of `RATE_LIMIT_BUDGET` limited calls; no attempt."""
    SPLIT = "split"
    """Nothing: the pages are halved instead."""
    PARK = "park"
    """Nothing: the job waits for the reset, or until an operator has removed the cause."""
    NONE = "none"
    """The call counts as one attempt, and no call follows."""


class ErrorCode(StrEnum):
    """Every code that a row, a command or a reply of the API can carry (requirement 19)."""

    RATE_LIMIT = "RATE_LIMIT"
    QUOTA_EXHAUSTED = "QUOTA_EXHAUSTED"
    API_TIMEOUT = "API_TIMEOUT"
    API_5XX = "API_5XX"
    API_4XX = "API_4XX"
    API_AUTH = "API_AUTH"
    API_BILLING = "API_BILLING"
    API_PROXY = "API_PROXY"
    PARSE_JSON = "PARSE_JSON"
    PARSE_SCHEMA = "PARSE_SCHEMA"
    CONTEXT_TOO_LARGE = "CONTEXT_TOO_LARGE"
    OUTPUT_TRUNCATED = "OUTPUT_TRUNCATED"
    EMPTY_RESPONSE = "EMPTY_RESPONSE"
    CONTENT_BLOCKED = "CONTENT_BLOCKED"
    REPLY_MISMATCH = "REPLY_MISMATCH"
    OCR_QUALITY_LOW = "OCR_QUALITY_LOW"
    NO_ENTITIES_FOUND = "NO_ENTITIES_FOUND"
    PARTLY_READ = "PARTLY_READ"
    ITEM_REJECTED = "ITEM_REJECTED"
    DATE_UNCLEAR = "DATE_UNCLEAR"
    SETTINGS_DIFFER = "SETTINGS_DIFFER"
    CODES_NOT_LOADED = "CODES_NOT_LOADED"
    EMBEDDER_AWAY = "EMBEDDER_AWAY"
    ENCOUNTER_NOT_FOUND = "ENCOUNTER_NOT_FOUND"
    PATIENT_MISMATCH = "PATIENT_MISMATCH"
    LANGUAGE_UNSUPPORTED = "LANGUAGE_UNSUPPORTED"
    INPUT_INVALID = "INPUT_INVALID"
    INPUT_ENCRYPTED = "INPUT_ENCRYPTED"
    INPUT_TOO_LARGE = "INPUT_TOO_LARGE"
    DB_ERROR = "DB_ERROR"
    STORAGE_FULL = "STORAGE_FULL"
    STORAGE_REFUSED = "STORAGE_REFUSED"
    WORKER_LOST = "WORKER_LOST"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    MAX_RETRIES_EXCEEDED = "MAX_RETRIES_EXCEEDED"


OUTAGE_CODES = frozenset({ErrorCode.API_5XX, ErrorCode.API_TIMEOUT})
"""Failures of a provider that is down: the circuit breaker counts these codes, an outage opens from
these codes, and the attempts that they spent in an outage are refunded."""


SAME_REPLY_CODES = frozenset({ErrorCode.PARSE_JSON, ErrorCode.PARSE_SCHEMA})
"""An identical second reply with one of these codes ends the attempts of its pages. The failed work
then carries the code itself, in place of MAX_RETRIES_EXCEEDED, and no automatic retry follows."""


@dataclass(frozen=True)
class ErrorPolicy:
    """What follows from a code: for the call, for the job, and for the operator."""

    job_retryable: bool
    """Whether an automatic retry of the failed job may repair the failure."""
    budget: Budget
    """The cost of the failed call. `failed_call` decides by the budget whether a call follows."""
    advice: str
    """What an operator can do."""


_A, _N = Budget.ATTEMPT, Budget.NONE

ERRORS: dict[ErrorCode, ErrorPolicy] = {
    ErrorCode.RATE_LIMIT: ErrorPolicy(
        True,
        Budget.RATE_LIMIT,
        "The per-minute quota is used up. Running work waits and resumes; retry work that failed.",
    ),
    ErrorCode.QUOTA_EXHAUSTED: ErrorPolicy(
        False,
        Budget.PARK,
        "A daily or spending quota is used up. Wait for the reset, or raise the quota.",
    ),
    ErrorCode.API_TIMEOUT: ErrorPolicy(
        True, _A, "The provider did not answer in time. Retry, and check for an outage."
    ),
    ErrorCode.API_5XX: ErrorPolicy(
        True,
        _A,
        "The provider failed. Retry when the provider has recovered.",
    ),
    ErrorCode.API_4XX: ErrorPolicy(
        False, _N, "The provider refused the request. Check the name of the model and the schema."
    ),
    ErrorCode.API_AUTH: ErrorPolicy(
        False,
        Budget.PARK,
        "The key is wrong or lacks a permission. Set a valid GEMINI_API_KEY.",
    ),
    ErrorCode.API_BILLING: ErrorPolicy(
        False,
        Budget.PARK,
        "The provider asks for a payment. Check the billing of the account at the provider.",
    ),
    ErrorCode.API_PROXY: ErrorPolicy(
        False,
        Budget.PARK,
        "A proxy or a wrong address answered. Check GEMINI_BASE_URL, HTTPS_PROXY and the proxy's"
        " login.",
    ),
    ErrorCode.PARSE_JSON: ErrorPolicy(True, _A, "The reply was not JSON. Retry."),
    ErrorCode.PARSE_SCHEMA: ErrorPolicy(
        True, _A, "The reply did not match the schema. Retry; if that fails, check the prompt."
    ),
    ErrorCode.CONTEXT_TOO_LARGE: ErrorPolicy(
        False, Budget.SPLIT, "The pages are too long for the model. Use smaller batches."
    ),
    ErrorCode.OUTPUT_TRUNCATED: ErrorPolicy(
        False, Budget.SPLIT, "The reply was cut off. Use smaller batches."
    ),
    ErrorCode.EMPTY_RESPONSE: ErrorPolicy(True, _A, "The reply was empty. Retry."),
    ErrorCode.CONTENT_BLOCKED: ErrorPolicy(
        False, _N, "The provider's filter refused these pages. Review the pages by hand."
    ),
    ErrorCode.REPLY_MISMATCH: ErrorPolicy(
        True, _A, "The reply belonged to another request and was discarded. Report this error."
    ),
    ErrorCode.OCR_QUALITY_LOW: ErrorPolicy(
        False,
        _N,
        "The scan is too poor to trust. Ask for a better copy, or review the pages by hand.",
    ),
    ErrorCode.NO_ENTITIES_FOUND: ErrorPolicy(
        False, _N, "No clinical content was found. This can be correct; check the pages."
    ),
    ErrorCode.PARTLY_READ: ErrorPolicy(
        False, _N, "A part of the record was not read. Look at the pages, or send a better copy."
    ),
    ErrorCode.ITEM_REJECTED: ErrorPolicy(
        False, _N, "Items of a reply broke the schema and were left out. Check the pages by hand."
    ),
    ErrorCode.DATE_UNCLEAR: ErrorPolicy(
        False,
        _N,
        "The pages do not prove the order of day and month. Check their dates by hand.",
    ),
    ErrorCode.SETTINGS_DIFFER: ErrorPolicy(
        False,
        _N,
        "Hosts with different settings worked on this record. Give all hosts the same settings.",
    ),
    ErrorCode.CODES_NOT_LOADED: ErrorPolicy(
        False,
        _N,
        "No code system is loaded, so entities have no codes. Run manage.py load_codes ICD10CM.",
    ),
    ErrorCode.EMBEDDER_AWAY: ErrorPolicy(
        False,
        _N,
        "The embedder did not answer, so codes are ordered by words alone. Extract the record again"
        " with --force if the order matters.",
    ),
    ErrorCode.ENCOUNTER_NOT_FOUND: ErrorPolicy(
        False, _N, "The encounter does not belong to this record. Check the id."
    ),
    ErrorCode.PATIENT_MISMATCH: ErrorPolicy(
        False, _N, "These pages name another patient. Submit them under the right patient."
    ),
    ErrorCode.LANGUAGE_UNSUPPORTED: ErrorPolicy(
        False, _N, "The local engine reads English only. Use the Gemini provider."
    ),
    ErrorCode.INPUT_INVALID: ErrorPolicy(
        False,
        _N,
        "The file is damaged or has an unknown type. Send PDF, TIFF, PNG, JPEG, HEIC, WebP, BMP,"
        " plain text, RTF, DOCX or C-CDA.",
    ),
    ErrorCode.INPUT_ENCRYPTED: ErrorPolicy(
        False, _N, "The file needs a password. Send the file without a password."
    ),
    ErrorCode.INPUT_TOO_LARGE: ErrorPolicy(
        False, _N, "The file exceeds a limit. Split the file, or raise MAX_UPLOAD_MB or MAX_PAGES."
    ),
    ErrorCode.DB_ERROR: ErrorPolicy(
        True, _A, "The database failed. The step is tried again without a new call to the provider."
    ),
    ErrorCode.STORAGE_FULL: ErrorPolicy(True, _A, "The disk is full. Free some space, then retry."),
    ErrorCode.STORAGE_REFUSED: ErrorPolicy(
        True, _A, "The file store refused this file. Check the file store, then retry."
    ),
    ErrorCode.WORKER_LOST: ErrorPolicy(
        True, _N, "Three workers died in this step. Find the reason, then requeue the record."
    ),
    ErrorCode.DEADLINE_EXCEEDED: ErrorPolicy(
        False, _N, "The step exceeded its time limit, or hung. Retry or requeue the record."
    ),
    ErrorCode.CANCELLED: ErrorPolicy(False, _N, "Cancelled by an operator."),
    ErrorCode.INTERNAL_ERROR: ErrorPolicy(
        False, _N, "This is an error in medproc. Report the error with the id of the job."
    ),
    ErrorCode.MAX_RETRIES_EXCEEDED: ErrorPolicy(
        False, _N, "All attempts are used up. Check the underlying error, then retry."
    ),
}
"""The one table behind the error mapping, failed calls, retries of jobs, console and documents."""


class UserErrorCode(StrEnum):
    """Why the request of a person cannot be carried out."""

    VALUE_INVALID = "VALUE_INVALID"
    """A given value cannot be used; the message names the permitted values."""
    REASON_INVALID = "REASON_INVALID"
    """The reason is missing, too long, or not a single printable line."""
    NOT_FOUND = "NOT_FOUND"
    """No row has the given id or name."""
    STATE_CONFLICT = "STATE_CONFLICT"
    """The target is not in a state in which the action is possible."""
    RECORD_INCOMPLETE = "RECORD_INCOMPLETE"
    """Results of the record are missing, and the request did not allow that."""
    OUTPUT_INVALID = "OUTPUT_INVALID"
    """The output cannot be written there: a missing folder, a missing right, or another export."""
    BACKUP_FAILED = "BACKUP_FAILED"
    """A backup cannot be made or restored; the message names the program or the file."""
    BACKUP_INVALID = "BACKUP_INVALID"
    """A backup is incomplete, damaged, of another version, or of another SECRET_KEY."""
    FORM_EXPIRED = "FORM_EXPIRED"
    """The form was used before, is incomplete, or belongs to another user."""
    REVIEW_HELD = "REVIEW_HELD"
    """Another reviewer holds the review item."""
    REVIEW_NOT_HELD = "REVIEW_NOT_HELD"
    """The reviewer does not hold the review item, or no longer: the claim ended."""
    REVIEW_SECOND_READER = "REVIEW_SECOND_READER"
    """The second review of a record is for another person than the first."""
    REVIEW_FLAGS_OPEN = "REVIEW_FLAGS_OPEN"
    """Flagged entities wait for a decision of their own before all others are accepted."""
    REVIEW_CHANGED = "REVIEW_CHANGED"
    """What the form showed has changed since, by a decision or by a later pass."""
    REVIEW_UNDECIDED = "REVIEW_UNDECIDED"
    """Entities wait for a decision, so the review cannot be closed."""


class MedprocError(Exception):
    """The root of the exceptions of this project."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class PipelineError(MedprocError):
    """Work on a record failed with a code of the taxonomy."""

    code: ErrorCode = ErrorCode.INTERNAL_ERROR

    def __init__(self, message: str = "", *, code: ErrorCode | None = None) -> None:
        if code is not None:
            self.code = code
        super().__init__(message or ERRORS[self.code].advice)

    @property
    def policy(self) -> ErrorPolicy:
        """Return the row of this error's code in `ERRORS`."""
        return ERRORS[self.code]


class InputError(PipelineError):
    """The file cannot be processed; a retry of the same file fails too."""

    code = ErrorCode.INPUT_INVALID


class UserError(MedprocError):
    """A command or request cannot be carried out. The message says what to do instead."""

    def __init__(self, message: str, *, code: UserErrorCode, field: str = "") -> None:
        self.code = code
        self.field = field
        """The field of a form that is wrong; empty if no single field is."""
        super().__init__(message)


class LeaseLostError(MedprocError):
    """Another worker holds the job now; write nothing more."""


class LeaseUnrenewedError(LeaseLostError):
    """PostgreSQL refused for as long as the lease lived. The step stops, and has not crashed."""


@dataclass(frozen=True, kw_only=True)
class CallDetails:
    """What is known of a call besides its reply; stored in `provider_calls`."""

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
    is_usage_unknown: bool = False
    """The provider's counts were absurd, so all counts of the call are 0."""
    raw_reply: str = field(default="", repr=False)
    """The text of the reply as received. PHI; stored in `provider_payloads` only."""


class CallError(PipelineError):
    """One call to the provider failed."""

    code = ErrorCode.API_5XX

    def __init__(
        self,
        message: str = "",
        *,
        code: ErrorCode | None = None,
        details: CallDetails | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.details = details or CallDetails()


class ReplyError(CallError):
    """The provider replied, but the reply cannot be used."""

    code = ErrorCode.PARSE_SCHEMA
