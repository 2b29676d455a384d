"""One run: supervisor, run directory, hook socket, denials."""
