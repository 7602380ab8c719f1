"""An OpenID provider on loopback, with real keys, that a test can make lie.

It checks a log-in as a real provider does: client, address of return, code, PKCE.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flask import Flask, Response, jsonify, redirect, request
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from werkzeug.serving import WSGIRequestHandler, make_server

CLIENT_ID, CLIENT_SECRET = "medproc-console", "a secret of the test"


class OpenIdProvider:
    """The provider: `person` logs in at once, with the claims that a test sets."""

    def __init__(self) -> None:
        self._rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._ec = ec.generate_private_key(ec.SECP256R1())
        self._codes: dict[str, dict[str, str]] = {}
        self.issuer = ""
        self.seen: list[str] = []
        """Paths of the requests."""
        self.reset()

    def reset(self) -> None:
        """Be an honest provider again, without a person."""
        self.person: dict[str, Any] = {"sub": "0001"}
        self.userinfo: dict[str, Any] | None = None
        self.published: dict[str, Any] = {}
        """Entries of the configuration that differ."""
        self.claims: dict[str, Any] = {}
        """Claims of the token that differ; None leaves a claim out."""
        self.sign: Callable[[dict[str, Any]], str] = self.rs256
        self.refuses = False
        self.asked: dict[str, str] = {}
        """The parameters of the last request for a log-in."""
        self.seen.clear()

    def rs256(self, claims: dict[str, Any]) -> str:
        """Sign as most providers do."""
        return jwt.encode(claims, self._rsa, "RS256", headers={"kid": "rsa"})

    def es256(self, claims: dict[str, Any]) -> str:
        """Sign with an elliptic curve."""
        return jwt.encode(claims, self._ec, "ES256", headers={"kid": "ec"})

    def unsigned(self, claims: dict[str, Any]) -> str:
        """Do not sign."""
        return jwt.encode(claims, "", "none", headers={"kid": "rsa"})

    def forged_with_the_public_key(self, claims: dict[str, Any]) -> str:
        """Use the published key as a shared secret, which PyJWT itself refuses to do."""
        key = self._rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        parts = [{"alg": "HS256", "typ": "JWT", "kid": "rsa"}, claims]
        body = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return f"{body}.{_encoded(hmac.digest(key, body.encode(), 'sha256'))}"

    def forged_with_another_key(self, claims: dict[str, Any]) -> str:
        """Sign with a key that is not published, under the name of a published key."""
        other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return jwt.encode(claims, other, "RS256", headers={"kid": "rsa"})

    def with_an_unknown_key(self, claims: dict[str, Any]) -> str:
        """Name a key that is not published."""
        return jwt.encode(claims, self._rsa, "RS256", headers={"kid": "none of ours"})

    def without_the_name_of_a_key(self, claims: dict[str, Any]) -> str:
        """Name no key."""
        return jwt.encode(claims, self._rsa, "RS256")

    def app(self) -> Flask:
        """Return the pages of the provider."""
        app = Flask(__name__)
        app.before_request(lambda: self.seen.append(request.path))
        app.get("/.well-known/openid-configuration")(self._configuration)
        app.get("/jwks")(self._jwks)
        app.get("/authorize")(self._authorize)
        app.post("/token")(self._token)
        app.get("/userinfo")(lambda: jsonify(self.userinfo))
        app.get("/logout")(self._log_out)
        return app

    def _configuration(self) -> Response:
        return jsonify(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "end_session_endpoint": f"{self.issuer}/logout",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
                **self.published,
            }
        )

    def _jwks(self) -> Response:
        of_rsa = RSAAlgorithm.to_jwk(self._rsa.public_key(), as_dict=True)
        of_ec = ECAlgorithm.to_jwk(self._ec.public_key(), as_dict=True)
        return jsonify({"keys": [{**of_rsa, "kid": "rsa"}, {**of_ec, "kid": "ec"}]})

    def _authorize(self) -> Any:
        asked = self.asked = request.args.to_dict()
        state = {"state": asked["state"]}
        if self.refuses:
            answer = {"error": "access_denied", **state}
        else:
            code = secrets.token_urlsafe()
            self._codes[code] = asked
            answer = {"code": code, **state}
        return redirect(f"{asked['redirect_uri']}?{urlencode(answer)}")

    def _log_out(self) -> Any:
        return redirect(request.args["post_logout_redirect_uri"])

    def _token(self) -> Any:
        form = request.form
        asked = self._codes.pop(form.get("code", ""), None)
        digest = _encoded(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (form["client_id"], form["client_secret"]) != (CLIENT_ID, CLIENT_SECRET):
            return jsonify({"error": "invalid_client", "error_description": "hunter2"}), 401
        if (
            asked is None
            or form["redirect_uri"] != asked["redirect_uri"]
            or (asked["code_challenge_method"], asked["code_challenge"]) != ("S256", digest)
        ):
            return jsonify({"error": "invalid_grant"}), 400
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 60,
            "nonce": asked["nonce"],
            **self.person,
            **self.claims,
        }
        signed = self.sign({name: each for name, each in claims.items() if each is not None})
        return jsonify({"id_token": signed, "access_token": "access", "token_type": "Bearer"})


class _Quiet(WSGIRequestHandler):
    """Logs no request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Do nothing."""


@contextmanager
def open_id_provider() -> Iterator[OpenIdProvider]:
    """Run a provider on a free port until the block ends."""
    provider = OpenIdProvider()
    server = make_server("127.0.0.1", 0, provider.app(), threaded=True, request_handler=_Quiet)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
