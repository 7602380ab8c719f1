"""The form of the log-in, which refuses an address that tries too many passwords."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from observability.entry.throttle import attempted
from observability.models import FederatedIdentity

THROTTLED = "throttled"
"""The code of the refusal."""


class ThrottledLogInForm(AdminAuthenticationForm):
    """Django's form; the throttle comes before the password is checked."""

    wait_s = 0
    """Seconds to wait, if the throttle refused the attempt."""

    def clean(self) -> dict[str, Any]:
        """Raise ValidationError for a wrong password and for too many attempts."""
        username = self.cleaned_data.get("username")
        if username is None or not self.cleaned_data.get("password") or self.request is None:
            return super().clean()
        attempt = attempted(self.request, username)
        if attempt.wait_s:
            self.wait_s = attempt.wait_s
            raise ValidationError(
                f"Too many failed log-ins from this address. Try again in {attempt.wait}.",
                code=THROTTLED,
            )
        cleaned = super().clean()
        attempt.succeeded()
        return cleaned

    def confirm_login_allowed(self, user: User) -> None:
        """Refuse a user who must use the identity provider, in the words of a wrong password.

        Otherwise the password would still work after the provider has removed the user.
        """
        super().confirm_login_allowed(user)
        if not settings.OIDC_ISSUER or user.is_superuser:
            return
        if settings.OIDC_ONLY or FederatedIdentity.objects.filter(user=user).exists():
            raise ValidationError(
                self.error_messages["invalid_login"],
                code="invalid_login",
                params={"username": self.username_field.verbose_name},
            )
