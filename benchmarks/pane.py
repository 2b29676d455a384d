"""How fast the agent pane is: `python benchmarks/pane.py [--engine NAME] [--megabytes N]`.

The host app runs in a real pty of 120x40 whose other side is read here and thrown away, so Textual's own painting and
writing is in every number. What a terminal takes to draw is not.
"""

from __future__ import annotations

import argparse
import os
import select
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.style import Style

from nd7tui.engine.terminal.choose import make
from nd7tui.engine.terminal.pty import PtyProcess
from nd7tui.widgets.agent_paint import strip_of

ROOT = Path(__file__).parents[1]
HOST = ROOT / "tests" / "app" / "pane_host.py"
COLS, ROWS = 120, 40
RECEIVER = (
    "import os,sys,time,tty\ntty.setraw(0)\nlog=open(sys.argv[1],'w',buffering=1)\nlog.write('up\\n')\n"
    "while os.read(0,1): log.write(f'{time.monotonic_ns()}\\n')"
)


class Outer:
    """The host app in a pty."""

    def __init__(self, engine: str, *program: str) -> None:
        argv = [sys.executable, str(HOST), "--engine", engine, *program]
        self.process = PtyProcess.spawn(argv, {**os.environ, "COLORTERM": "truecolor"}, cols=COLS, rows=ROWS)
        self.seen = bytearray()

    def read(self, seconds: float) -> None:
        if select.select([self.process.fd], [], [], max(0.0, seconds))[0]:
            self.process.pump(self.seen.extend)

    def until(self, wanted: bytes, timeout: float = 300.0) -> float:
        """Reads until `wanted` was painted; returns seconds."""
        start = time.monotonic()
        while wanted not in self.seen:
            if time.monotonic() - start > timeout:
                raise TimeoutError(wanted)
            self.read(0.5)
        return time.monotonic() - start

    def idle(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def peak_memory(self) -> int:
        """Peak resident memory of the app in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024

    def close(self) -> None:
        self.process.kill()
        while self.process.poll() is None:
            time.sleep(0.01)
        self.process.close()


def spread(values: list[float]) -> str:
    """Median, 95th percentile and worst, in ms."""
    ordered = sorted(1000 * value for value in values)
    p95 = ordered[int(len(ordered) * 0.95)]
    return f"median {statistics.median(ordered):.1f}, p95 {p95:.1f}, worst {ordered[-1]:.1f} ms"


def throughput(engine: str, megabytes: int) -> None:
    with tempfile.NamedTemporaryFile("wb") as file:
        line = b"".join(b"%d some words of a line of output, " % number for number in range(3))[:99] + b"\n"
        file.write(line * (megabytes * 10_000))
        file.flush()
        outer = Outer(engine, "sh", "-c", f"echo ready; read x; cat {file.name}; echo all-$((40+2))")
        outer.until(b"ready")
        outer.idle(0.3)
        before = outer.peak_memory()
        outer.process.write(b"\r")
        took = outer.until(b"all-42")
        print(f"cat {megabytes} MB: {took:.2f} s, peak memory {outer.peak_memory()} MiB (before: {before})")
        outer.close()


def echo(engine: str) -> None:
    """Key press to its echo on the outer terminal."""
    outer = Outer(engine, "sh", "-c", "echo ready; exec cat")
    outer.until(b"ready")
    outer.idle(0.5)
    times = []
    for index in range(100):
        key = bytes([ord("a") + index % 26])
        outer.seen.clear()
        outer.process.write(key)
        times.append(outer.until(key))
        outer.idle(0.03)
    print(f"key to echo, idle: {spread(times)}")
    outer.close()


def delivery(engine: str, what: str, flood: str) -> None:
    """Key press to the program having it."""
    with tempfile.TemporaryDirectory() as folder:
        log, script = Path(folder) / "log", Path(folder) / "receiver.py"
        script.write_text(RECEIVER)
        outer = Outer(engine, "sh", "-c", f"{flood} exec {sys.executable} {script} {log}")
        while not log.exists() or not log.read_text():
            outer.read(0.05)
        outer.idle(0.5)
        sent = []
        for _ in range(60):
            sent.append(time.monotonic_ns())
            outer.process.write(b"k")
            outer.idle(0.08)
            outer.seen.clear()
        outer.idle(1.0)
        got = [int(word) for word in log.read_text().split()[1:]]
        print(f"key to program, {what}: {spread([(b - a) / 1e9 for a, b in zip(sent, got, strict=True)])}")
        outer.close()


def frames(engine_name: str) -> None:
    """Reading and drawing one frame, without Textual."""
    engine, base = make(engine_name, COLS, ROWS), Style()

    def frame(data: bytes) -> float:
        engine.feed(data)
        start = time.perf_counter()
        for y in engine.take_dirty():
            strip_of(engine.row(y), COLS, base)
        return time.perf_counter() - start

    def dense(seed: int) -> bytes:
        cells = (f"\x1b[38;2;{i % 256};{i * 7 % 256};{seed}mx" for i in range(COLS * ROWS))
        return b"\x1b[H" + "".join(cells).encode()

    plain = "".join(f"\x1b[{y + 1}H{'word ' * 23}" for y in range(ROWS)).encode()
    print(f"frame of plain text: {spread([frame(plain.replace(b'word', b'w%03d' % n)) for n in range(30)])}")
    print(f"frame of one style a cell: {spread([frame(dense(n)) for n in range(10)])}")
    lines = [f"\x1b[m\r\nanother line {n}".encode() for n in range(200)]
    print(f"scroll by one line: {spread([frame(line) for line in lines])}")
    engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="ghostty")
    parser.add_argument("--megabytes", type=int, default=50)
    args = parser.parse_args()
    print(f"engine {args.engine}, {COLS}x{ROWS}, Python {sys.version.split()[0]}")
    frames(args.engine)
    echo(args.engine)
    delivery(args.engine, "idle", "")
    delivery(args.engine, "under yes", "yes 'a line of a flood' & ")
    throughput(args.engine, args.megabytes)


if __name__ == "__main__":
    main()
