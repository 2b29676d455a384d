"""What every test starts from."""

from __future__ import annotations

import signal

# As a shell at a terminal gives them. Under nohup, in the background and in some runners they are ignored, and what is
# ignored is handed on to every program that a test starts, which then cannot be ended by it.
for number, handler in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    signal.signal(number, handler)
