"""Rules: pure decisions, defaults, and their renderings."""
