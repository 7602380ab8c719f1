"""A bucket of an S3 server on loopback (moto), with a key that has only the documented rights."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import requests
from django.conf import settings
from django.test import override_settings
from moto.server import ThreadedMotoServer

from medproc import addresses
from medproc.env import Environment

NAME = "medproc-records"
REGION = "us-east-1"
RIGHTS = [
    "s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:GetObject",
    "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload",
]  # fmt: skip
"""The rights of docs/deployment.md."""
UNCHECKED = 1e9
"""A number of requests that no test reaches: moto checks keys only after this number."""


@dataclass
class Bucket:
    """The server, its one bucket, and the environment that names both."""

    url: str
    environment: dict[str, str]
    client: Any
    """A client with all rights, for what medproc itself must not do."""
    operator: tuple[str, str]
    """The key of that client."""

    def objects(self) -> list[str]:
        """Return the names of everything in the bucket: versions, their marks, parts of uploads."""
        found = self.client.list_object_versions(Bucket=NAME)
        unfinished = self.client.list_multipart_uploads(Bucket=NAME)
        entries = (
            *found.get("Versions", ()),
            *found.get("DeleteMarkers", ()),
            *unfinished.get("Uploads", ()),
        )
        return [entry["Key"] for entry in entries]

    def content(self, key: str) -> bytes:
        """Return the bytes of an object."""
        body: bytes = self.client.get_object(Bucket=NAME, Key=key)["Body"].read()
        return body

    def empty(self) -> None:
        """Delete everything, and keep no versions from now on."""
        found = self.client.list_object_versions(Bucket=NAME)
        for entry in (*found.get("Versions", ()), *found.get("DeleteMarkers", ())):
            version = {name: entry[name] for name in ("Key", "VersionId")}
            self.client.delete_object(Bucket=NAME, **version)
        for upload in self.client.list_multipart_uploads(Bucket=NAME).get("Uploads", ()):
            upload_id = {name: upload[name] for name in ("Key", "UploadId")}
            self.client.abort_multipart_upload(Bucket=NAME, **upload_id)
        self._version("Suspended")

    def keep_versions(self) -> None:
        """Let the bucket keep the old versions of its objects."""
        self._version("Enabled")

    def _version(self, status: str) -> None:
        state = {"Status": status}
        self.client.put_bucket_versioning(Bucket=NAME, VersioningConfiguration=state)

    @contextmanager
    def without(self, right: str) -> Iterator[None]:
        """Take a right from the key of medproc during the block."""
        iam = _client("iam", self.url, *self.operator)
        _allow(iam, "medproc", [each for each in RIGHTS if each != right])
        try:
            yield
        finally:
            _allow(iam, "medproc", RIGHTS)

    def settings(self, **changed: str | None) -> dict[str, Any]:
        """Return the settings that name the bucket; `changed` replaces variables."""
        variables: dict[str, Any] = {**self.environment, **changed}
        environment = Environment.model_construct(**{**_defaults(), **variables})
        names = [name for name in Environment.model_fields if name.startswith("STORAGE_")]
        store = addresses.store_settings(environment, Path(settings.MEDPROC_DATA_DIR))
        return {
            "STORAGES": {**settings.STORAGES, "default": store},
            **{name: getattr(environment, name) for name in names},
        }

    @contextmanager
    def used(self, **changed: str | None) -> Iterator[None]:
        """Use the bucket in this process."""
        with override_settings(**self.settings(**changed)):
            yield


@contextmanager
def bucket_server() -> Iterator[Bucket]:
    """Start the server, make the bucket, and a key with `RIGHTS`; stop the server in the end."""
    # It would log each request, with its colours.
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        # A server that this process stopped before has left its users.
        requests.post(f"{url}/moto-api/reset", timeout=10).raise_for_status()
        _check_keys_after(url, UNCHECKED)
        own, others = _new_key(url, "medproc", RIGHTS), _new_key(url, "operator", ["s3:*", "iam:*"])
        client = _client("s3", url, *others)
        client.create_bucket(Bucket=NAME)
        _check_keys_after(url, 0)
        environment = {
            "STORAGE_BUCKET": NAME,
            "STORAGE_ENDPOINT_URL": url,
            "STORAGE_KEY_ID": own[0],
            "STORAGE_SECRET_KEY": own[1],
        }
        yield Bucket(url=url, environment=environment, client=client, operator=others)
    finally:
        server.stop()


def _new_key(url: str, user: str, rights: list[str]) -> tuple[str, str]:
    client = _client("iam", url, "any", "key")
    client.create_user(UserName=user)
    _allow(client, user, rights)
    key = client.create_access_key(UserName=user)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def _allow(client: Any, user: str, rights: list[str]) -> None:
    statement = {"Effect": "Allow", "Action": rights, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client.put_user_policy(UserName=user, PolicyName="records", PolicyDocument=policy)


def _check_keys_after(url: str, number: float) -> None:
    requests.post(f"{url}/moto-api/reset-auth", data=str(number), timeout=10).raise_for_status()


def _client(service: str, url: str, key_id: str, secret: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
    )


def _defaults() -> dict[str, Any]:
    return {
        name: field.get_default(call_default_factory=True)
        for name, field in Environment.model_fields.items()
    }
