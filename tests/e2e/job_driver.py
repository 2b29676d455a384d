"""Runs a program as `nd7 run` does, with the real job control and a gate that has nothing to judge.

So that job control can be tested on its own, on a kernel without a sandbox too.
"""

from __future__ import annotations

import os
import select
import sys

from nd7tui.engine.run import jobs


def main() -> int:
    jobs.become_subreaper()
    signals = jobs.Signals()
    pid = os.fork()
    if pid == 0:
        try:
            os.execvp(sys.argv[1], sys.argv[1:])
        finally:
            os._exit(126)
    job = jobs.Job(pid)
    poller = select.poll()
    poller.register(signals.fd, select.POLLIN)
    job.reap()
    while job.ending is None:
        poller.poll(200)
        for sent in signals.read():
            job.take(sent)
    signals.close()
    return jobs.end_like(job.ending)


if __name__ == "__main__":
    sys.exit(main())
