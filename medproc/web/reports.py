"""What Django's page about an error shows while DEBUG is on: no secret, also of the environment."""

from __future__ import annotations

import re

from django.views.debug import SafeExceptionReporterFilter

from medproc.env import SECRETS


class WithoutSecrets(SafeExceptionReporterFilter):
    """Hides every secret variable; Django alone would show a URL with its password."""

    hidden_settings = re.compile(
        "|".join((SafeExceptionReporterFilter.hidden_settings.pattern, *SECRETS)), re.IGNORECASE
    )
