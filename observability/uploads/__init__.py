"""Uploads through the console: limited while they arrive, submitted once, and audited."""

from __future__ import annotations
