"""Terminal emulation and the pty."""
