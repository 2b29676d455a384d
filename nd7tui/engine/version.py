"""The version of nd7, in one place that every layer may read and that costs nothing to import."""

from __future__ import annotations

VERSION = "0.1.0"
