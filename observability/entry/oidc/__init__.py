"""The log-in through an identity provider (OpenID Connect), an extra that OIDC_ISSUER turns on.

mozilla-django-oidc makes the request with state, nonce and PKCE, exchanges the code, and finds the
key of a token. This package adds what the library leaves out: discovery, issuer, audience and end
of a token, users by issuer and subject, roles from groups, and a code for each refusal. Only
`start_log_in` and `finish_log_in` import the library, which is absent without the extra.
"""
