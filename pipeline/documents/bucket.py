"""The stored files in a bucket of an S3-compatible store, in place of the folder.

Bytes go in and out in blocks, so no file is ever whole in memory. Every refusal of the store
becomes a `FileStoreError`, which names no key, address or secret. To delete a file is to delete all
its versions.
"""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import SimpleNamespace
from typing import IO, Any

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
)
from django.core.files import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name
from urllib3.exceptions import HTTPError

from pipeline.core.server_faults import FileStoreError, ServerFault

CONNECT_S, READ_S, TRIES = 5.0, 20.0, 3
QUICK_S = 5.0
"""Seconds for each request of a check, which is not repeated."""
REGION = "us-east-1"
"""The region in the signatures for a store without regions."""
_BLOCK = 1 << 20
_PART_BYTES = 16 << 20
"""Bytes of a part of a large file: 10,000 parts hold more than the largest MAX_UPLOAD_MB."""
_NO_ROOM = frozenset({"QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"})
_INSUFFICIENT_STORAGE = 507
_NO_VERSIONS = frozenset({"MethodNotAllowed", "NotImplemented"})
_LOGIN = (CredentialRetrievalError, NoCredentialsError, PartialCredentialsError)


# django-storages' own S3File was not used: it holds a file that it reads in memory. Its S3Storage
# takes a missing bucket for a missing file, keeps connections over a fork, and leaves old versions.
class BucketStorage(S3Storage):  # type: ignore[misc]  # django-storages has no annotations
    """Stores files as objects of one bucket."""

    def __init__(self, *, is_quick: bool = False, **options: Any) -> None:
        """With `is_quick`, a request ends soon and is not repeated."""
        self._process_id, self._session = 0, None
        self._quick_options = {**options, "is_quick": True}
        has_own_key = options.get("access_key") is not None
        is_aws = options.get("endpoint_url") is None
        checksums = "when_supported" if is_aws else "when_required"
        super().__init__(
            **{**options, "region_name": options.get("region_name") or REGION},
            # Another profile or session in the environment would not fit a stated key.
            **({"security_token": None, "session_profile": None} if has_own_key else {}),
            default_acl=None,
            file_overwrite=True,
            # One thread: the transfer then holds at most one part in memory.
            transfer_config=TransferConfig(
                multipart_threshold=_PART_BYTES, multipart_chunksize=_PART_BYTES, use_threads=False
            ),
            client_config=Config(
                connect_timeout=QUICK_S if is_quick else CONNECT_S,
                read_timeout=QUICK_S if is_quick else READ_S,
                retries={"mode": "standard", "total_max_attempts": 1 if is_quick else TRIES},
                signature_version="s3v4",
                s3={"addressing_style": "auto" if is_aws else "path"},
                # Another address must not come from the environment or from a file.
                ignore_configured_endpoint_urls=True,
                # Many compatible stores do not know the newer checksums.
                request_checksum_calculation=checksums,
                response_checksum_validation=checksums,
            ),
        )

    @property
    def connection(self) -> Any:
        """The connection of this process; a forked process makes its own, or replies would swap.

        All threads use its client: making one takes 0.2 s (measured). Raises FileStoreError without
        a key: a client that is made while the machine's role does not answer never gets one.
        """
        if self._process_id != os.getpid():
            self._connections, self._making = SimpleNamespace(), threading.Lock()
            self._process_id = os.getpid()
        with self._making, _named_faults():
            is_made = hasattr(self._connections, "connection")
            if not is_made and self._create_session().get_credentials() is None:
                raise NoCredentialsError
            return super().connection

    @cached_property
    def quick(self) -> BucketStorage:
        """The same bucket for a check, whose requests end soon."""
        return BucketStorage(**self._quick_options)

    def exists(self, name: str) -> bool:
        """Return whether the object exists."""
        try:
            self._head(name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        """Return the size in bytes. Raises FileNotFoundError."""
        return int(self._head(name)["ContentLength"])

    def get_modified_time(self, name: str) -> datetime:
        """Return the time of the upload. Raises FileNotFoundError."""
        modified: datetime = self._head(name)["LastModified"]
        return modified

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        """Return the folders and the files below a name."""
        with _named_faults():
            found: tuple[list[str], list[str]] = super().listdir(path)
            return found

    def delete(self, name: str) -> None:
        """Delete all versions of an object. Raises FileStoreError if the store keeps a version."""
        where = self._where(name)
        with _named_faults():
            for version in [*self._versions(name)]:
                self._client.delete_object(**where, **version)

    def abort_unfinished(self, prefix: str, older_s: float) -> int:
        """Delete the parts of uploads that a killed process has left; count the uploads."""
        before, gone = datetime.now(UTC) - timedelta(seconds=older_s), 0
        with _named_faults():
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=prefix):
                for upload in page.get("Uploads", ()):
                    if upload["Initiated"] < before:
                        self._client.abort_multipart_upload(
                            Bucket=self.bucket_name, Key=upload["Key"], UploadId=upload["UploadId"]
                        )
                        gone += 1
        return gone

    def check_reads(self) -> None:
        """Ask for one name. Raises FileStoreError."""
        with _named_faults():
            self._client.list_objects_v2(Bucket=self.bucket_name, MaxKeys=1)

    def check_writes(self, name: str) -> None:
        """Write, read and delete an object without content of a record. Raises FileStoreError."""
        self.check_reads()
        self.save(name, File(io.BytesIO(b"medproc")))
        try:
            with self.open(name) as written:
                written.read()
        finally:
            self.delete(name)

    @property
    def _client(self) -> Any:
        return self.connection.meta.client

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        if mode != "rb":
            raise ValueError("a stored file is written once, with `save`")
        with _named_faults(), self._missing_named():
            body = self._client.get_object(**self._where(name))["Body"]
        return File(io.BufferedReader(_Body(body), _BLOCK), name)

    def _save(self, name: str, content: IO[Any]) -> str:
        content.seek(0)
        with _named_faults():
            self._client.upload_fileobj(
                content,
                *self._where(name).values(),
                ExtraArgs=self._get_write_parameters(name),
                Config=self.transfer_config,
            )
        return str(clean_name(name))

    def _create_session(self) -> Any:
        # A session has no socket, so a forked process uses that of its parent.
        self._session = self._session or super()._create_session()
        return self._session

    def _where(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": self._normalize_name(clean_name(name))}

    def _head(self, name: str) -> dict[str, Any]:
        with _named_faults(), self._missing_named():
            found: dict[str, Any] = self._client.head_object(**self._where(name))
            return found

    @contextmanager
    def _missing_named(self) -> Iterator[None]:
        """Raise FileNotFoundError for a missing object, but not for a missing bucket."""
        try:
            yield
        except ClientError as error:
            if _status(error.response) != 404:
                raise
            # The answer to a HEAD request does not say what is missing.
            self.check_reads()
            raise FileNotFoundError(errno.ENOENT, "there is no such stored file") from None

    def _versions(self, name: str) -> Iterator[dict[str, str]]:
        """Yield the versions of an object, with the marks of earlier deletions."""
        key = self._where(name)["Key"]
        pages = self._client.get_paginator("list_object_versions")
        try:
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=key):
                for found in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                    if found["Key"] == key:
                        yield {"VersionId": found["VersionId"]}
        except ClientError as error:
            if error.response["Error"]["Code"] not in _NO_VERSIONS:
                raise
            yield {}


class _Body(io.RawIOBase):
    """The content of an object, read from the network block by block."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a part of the buffer. Raises FileStoreError, also if the content ends too early."""
        with _named_faults():
            block: bytes = self._body.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        """Close the connection of a content that was not read to its end."""
        if not self.closed:
            self._body.close()
        super().close()


@contextmanager
def _named_faults() -> Iterator[None]:
    """Replace an error of the libraries, which can quote addresses and keys, by FileStoreError.

    Raises OSError ENOSPC for a store without room, as a disk does.
    """
    try:
        yield
    except ClientError as error:
        response = error.response
        is_full = _status(response) == _INSUFFICIENT_STORAGE or _code(response) in _NO_ROOM
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise FileStoreError(_fault_of(response)) from None
    except _LOGIN:
        raise FileStoreError(ServerFault.STORAGE_LOGIN) from None
    except (BotoCoreError, HTTPError):
        raise FileStoreError(ServerFault.STORAGE_AWAY) from None
    except Boto3Error:
        raise FileStoreError(ServerFault.STORAGE_FAILING) from None


def _fault_of(response: Mapping[str, Any]) -> ServerFault:
    """Return why the store refused, by the code and the status of its answer."""
    status = _status(response)
    if _code(response) == "NoSuchBucket":
        return ServerFault.STORAGE_NO_BUCKET
    if status in (401, 403):
        return ServerFault.STORAGE_LOGIN
    if status == 429 or status >= 500:
        return ServerFault.STORAGE_FAILING
    return ServerFault.STORAGE_SETTINGS


def _code(response: Mapping[str, Any]) -> str:
    return str(response.get("Error", {}).get("Code", ""))


def _status(response: Mapping[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
