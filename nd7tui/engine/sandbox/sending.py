"""sendto, sendmsg and sendmmsg, done here.

Rule: a message is sent on a copy of the caller's socket, with an address that policy allowed and was rewritten, and
with copies of the descriptors it carries. Nothing in it can name what was not decided about: source routes and
MSG_FASTOPEN do not pass, MSG_ZEROCOPY would read this process's memory later.
Linux semantics are kept: a blocking stream takes everything, a part that went out is success, SIGPIPE reaches the
thread that wrote.
Does not prove: the sender. Credentials that the receiver asks for (SO_PASSCRED) are the supervisor's.
Source: send(2), sendmmsg(2), unix(7).
"""

from __future__ import annotations

import _socket as socket  # the same calls; `socket` takes 4 ms to make enums of all constants
import contextlib
import errno
import os
import signal
import struct
import time
from contextlib import ExitStack
from functools import partial

from nd7tui.engine.records import dataclass
from nd7tui.engine.sandbox import abi, messages, patience, sockaddr
from nd7tui.engine.sandbox.outcome import Errno, Outcome, Pending, Refused, Value
from nd7tui.engine.sandbox.peer import Peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.sandbox.call import Call

_CHUNK = 1 << 20  # bytes of a stream that are in this process at a time
_MOST_DATAGRAM = 4 << 20  # beyond every socket buffer that an unprivileged process can have

_Parts = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A message as the caller wrote it.

    Attributes:
        name: The address as it stands in the caller's memory; empty for none.
        parts: Where the payload is: (address, size) in the caller's memory.
        flags: Its flags.
        control: Its control messages.
    """

    name: bytes
    parts: _Parts
    flags: int
    control: tuple[messages.Control, ...] = ()


class Message:
    """One message on its way.

    Args:
        call: The caller.
        peer: Our copy of its socket.
        draft: What it wrote; of this the payload and the flags are used.
        name: The address, decided about; empty for none.
        control: Control messages, with descriptors of ours.

    Attributes:
        sent: Bytes that the kernel has taken.
    """

    def __init__(self, call: Call, peer: Peer, draft: Draft, name: bytes, control: bytes) -> None:
        self._call = call
        self._peer = peer
        self._name = name
        self._parts = list(draft.parts)
        self._control = control
        self._flags = draft.flags
        self._chunk = b""
        self._started = False
        self._left = sum(size for _, size in draft.parts)
        self.sent = 0
        if self._left > _MOST_DATAGRAM and not self._is_stream:
            raise sockaddr.invalid(errno.EMSGSIZE)

    @property
    def _is_stream(self) -> bool:
        return self._peer.type == socket.SOCK_STREAM

    @property
    def _may_block(self) -> bool:
        return not self._flags & socket.MSG_DONTWAIT and not self._peer.nonblocking

    def attempt(self) -> Outcome | None:
        """Sends what the socket takes at once, 1 MiB of a stream at most.

        Returns:
            The final outcome, or None when there is more to send or the caller would have to wait.
        """
        try:
            if not self._chunk:
                self._chunk = self._take(_CHUNK if self._is_stream else _MOST_DATAGRAM)
            if not self._call.still_waiting():
                return Errno(errno.EINTR)
            with self._call.as_caller():
                taken = messages.send(self._peer.fd, self._name, self._chunk, self._control, self._kernel_flags())
        except OSError as error:
            return self._failed(error.errno or errno.EIO)
        self._started = True
        self._control = b""  # descriptors go with the first byte
        self._chunk = self._chunk[taken:]
        self.sent += taken
        if not self._is_stream or not (self._chunk or self._left):
            return Value(self.sent)
        return None if self._may_block or not self._chunk else Value(self.sent)

    def finish(self, waiting: Callable[[], bool]) -> Outcome:
        """Sends the rest in a worker, waiting as the caller would."""
        timeout = self._peer.send_timeout
        deadline = time.monotonic() + timeout if timeout is not None else None
        while waiting():
            before = self.sent
            outcome = self.attempt()
            if outcome is not None:
                return outcome
            if self.sent > before:
                continue
            if deadline is not None and time.monotonic() >= deadline:
                return self._ended(Errno(errno.EAGAIN))
            if patience.interrupted(self._call):
                return self._ended(patience.interruption(self._peer))
            if patience.wait_writable(self._peer):
                # Room for something, though not for this: do not spin.
                time.sleep(0.001)
        return Errno(errno.EINTR)

    def _kernel_flags(self) -> int:
        flags = self._flags & messages.KNOWN_FLAGS | socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
        # Marks of a message's end belong to the last piece of it.
        return flags & ~(socket.MSG_OOB | socket.MSG_EOR) if self._left else flags

    def _take(self, most: int) -> bytes:
        """Reads the next bytes of the payload; raises OSError EFAULT."""
        pieces: list[bytes] = []
        while self._parts and most:
            base, size = self._parts.pop(0)
            step = min(size, most)
            if step < size:
                self._parts.insert(0, (base + step, size - step))
            pieces.append(self._call.read(base, step))
            most -= step
            self._left -= step
        return b"".join(pieces)

    def _failed(self, number: int) -> Outcome | None:
        if number == errno.EAGAIN and self._may_block:
            return None
        if number == errno.EPIPE and not self._started and self._is_stream:
            self._break_pipe()
        return self._ended(Errno(number))

    def give_up(self, number: int) -> Outcome:
        """Returns the outcome of a message of which no more is sent: what went out, else the errno."""
        return self._ended(Errno(number))

    def _ended(self, outcome: Errno) -> Outcome:
        return Value(self.sent) if self._started else outcome

    def _break_pipe(self) -> None:
        """Sends SIGPIPE to the calling thread, as the kernel does to a writer that did not ask it not to."""
        if self._flags & socket.MSG_NOSIGNAL or not self._call.still_waiting():
            return
        with contextlib.suppress(OSError):
            abi.syscall(abi.NR["tgkill"], self._call.tgid, self._call.tid, signal.SIGPIPE)


class Sender:
    """Answers the sends of one run.

    Args:
        judge: Decides about a message's address (empty for none); returns the bytes to use, or the outcome.
        slots: How many messages may wait.
    """

    def __init__(self, judge: Callable[[Call, Peer, bytes], bytes | Refused | Errno], slots: patience.Slots) -> None:
        self._judge = judge
        self._slots = slots

    def sendto(self, call: Call) -> Outcome:
        """Answers a sendto with an address; raises OSError for the errno that the caller gets."""
        fd, buffer, size, flags, at, at_size = call.args
        with ExitStack() as kept:
            peer = kept.enter_context(Peer.of(call, fd))
            if not 0 <= abi.signed32(at_size) <= sockaddr.STORAGE:
                raise sockaddr.invalid()
            raw = call.read(at, abi.signed32(at_size)) if at else b""
            if at and not raw and peer.transport == "udp":
                raise sockaddr.invalid()  # an address of no length is one too short
            parts = messages.parse_vector(struct.pack("=QQ", buffer, size))
            message = self._message(call, peer, Draft(raw, parts, flags), kept)
            if not isinstance(message, Message):
                return message
            return message.attempt() or self._later(message, kept)

    def sendmsg(self, call: Call) -> Outcome:
        """Answers a sendmsg; raises OSError for the errno that the caller gets."""
        with ExitStack() as kept:
            peer = kept.enter_context(Peer.of(call, call.args[0]))
            message = self._read(call, peer, call.args[1], call.args[2], kept)
            if not isinstance(message, Message):
                return message
            return message.attempt() or self._later(message, kept)

    def sendmmsg(self, call: Call) -> Outcome:
        """Answers a sendmmsg: as many messages as go out, an errno only when it is the first that fails."""
        fd, vector, count, flags = call.args[:4]
        with ExitStack() as kept:
            peer = kept.enter_context(Peer.of(call, fd))
            for index in range(min(count & 0xFFFFFFFF, messages.MOST_PARTS)):
                at = vector + index * messages.VECTOR_ENTRY
                report = partial(_report, call, at, index)
                with ExitStack() as carried:
                    outcome, message = self._one(call, peer, at, flags, carried)
                    if isinstance(outcome, Value):
                        outcome = report(outcome)
                    if outcome is None and message is not None and (message.sent or not index):
                        carried.push(kept.pop_all())
                        return self._later(message, carried, report)
                    if outcome != Value(index + 1):
                        return Value(index) if index or outcome is None else outcome
            return Value(min(count & 0xFFFFFFFF, messages.MOST_PARTS))

    def _later(self, message: Message, kept: ExitStack, report: Callable[[Value], Outcome] | None = None) -> Outcome:
        """Leaves the rest of a message to a worker, with everything that `kept` holds."""
        if not self._slots.take(kept):
            outcome = message.give_up(errno.EAGAIN)
            return report(outcome) if report and isinstance(outcome, Value) else outcome
        return Pending(partial(_finish, message, kept.pop_all(), report))

    def _one(
        self, call: Call, peer: Peer, at: int, flags: int, kept: ExitStack
    ) -> tuple[Outcome | None, Message | None]:
        try:
            message = self._read(call, peer, at, flags, kept)
            if isinstance(message, Message):
                return message.attempt(), message
        except OSError as error:
            return Errno(error.errno or errno.EIO), None
        return message, None

    def _read(self, call: Call, peer: Peer, at: int, flags: int, kept: ExitStack) -> Message | Refused | Errno:
        header = messages.parse_header(call.read(at, messages.HEADER_SIZE))
        raw = call.read(header.name, header.name_size)
        parts = messages.parse_vector(call.read(header.vector, header.parts * 16))
        control = messages.parse_control(call.read(header.control, header.control_size) if header.control else b"")
        return self._message(call, peer, Draft(raw, parts, flags, tuple(control)), kept)

    def _message(self, call: Call, peer: Peer, draft: Draft, kept: ExitStack) -> Message | Refused | Errno:
        if draft.flags & messages.MSG_FASTOPEN or (draft.flags & messages.MSG_ZEROCOPY and peer.zero_copy):
            return Errno(errno.EOPNOTSUPP)
        judged = self._judge(call, peer, draft.name)
        if not isinstance(judged, bytes):
            return judged
        ours = messages.build_control(_translate(call, draft.control, kept))
        return Message(call, peer, draft, judged, ours)


def _finish(
    message: Message, kept: ExitStack, report: Callable[[Value], Outcome] | None, waiting: Callable[[], bool]
) -> Outcome:
    with kept:
        outcome = message.finish(waiting)
        return report(outcome) if report and isinstance(outcome, Value) else outcome


def _report(call: Call, at: int, index: int, sent: Value) -> Outcome:
    """Writes the length of message `index` into the caller's memory; returns the count of messages so far."""
    try:
        call.write(at + messages.LENGTH_AT, struct.pack("=I", sent.value))
    except OSError as error:
        return Errno(error.errno or errno.EFAULT)
    return Value(index + 1)


def _translate(call: Call, control: tuple[messages.Control, ...], kept: ExitStack) -> list[messages.Control]:
    """Returns the control messages with the caller's descriptors copied into this process until `kept` ends.

    Raises:
        OSError: EBADF for a descriptor it has not; EPERM for credentials that are not its own; EINVAL for a message
            that may not pass.
    """
    ours: list[messages.Control] = []
    for message in control:
        if message.is_rights:
            fds: list[int] = []
            for fd in messages.rights_of(message):
                fds.append(call.dup_fd(fd))
                kept.callback(os.close, fds[-1])
            if fds:
                ours.append(messages.rights(fds))
        elif message.is_credentials:
            # Its own it may claim, but only itself could send them: an unprivileged supervisor gets EPERM for them.
            if messages.credentials_pid(message) != call.tgid:
                raise sockaddr.invalid(errno.EPERM)
        elif message.passes:
            ours.append(message)
        else:
            raise sockaddr.invalid()
    return ours
