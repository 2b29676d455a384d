"""Fixtures of the UI's tests."""

from ui_fakes import world

__all__ = ["world"]
