"""What every test starts from."""

from __future__ import annotations

import signal

# As a terminal's shell gives it. Under nohup, and in some runners, SIGHUP is ignored, and an ignored signal is handed on
# to every program that a test starts, which then cannot be ended by it.
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
