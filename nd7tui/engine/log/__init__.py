"""The hash-chained session log: frames, the chain, the store, and readers."""
