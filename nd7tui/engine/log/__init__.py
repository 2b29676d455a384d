"""The hash-chained session log."""
