"""Which handler answers which file system call: the arguments of each, in one table.

Rule: one line a call; no decision is taken here.
"""

from __future__ import annotations

from nd7tui.engine.sandbox import abi, metadata
from nd7tui.engine.sandbox.names import Names
from nd7tui.engine.sandbox.opens import Opens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.ground import Ground
    from nd7tui.engine.sandbox.outcome import Outcome
    from nd7tui.engine.sandbox.resolve import Place

_CWD = abi.AT_FDCWD
_NOFOLLOW, _EMPTY = abi.AT_SYMLINK_NOFOLLOW, abi.AT_EMPTY_PATH


def handlers(ground: Ground) -> dict[str, Callable[[Call], Outcome]]:
    """Returns the handler of every notified file system call, by name.

    A handler raises OSError for the errno that the caller gets.
    """
    opens, names, meta = Opens(ground), Names(ground), metadata.Metadata(ground)
    return {
        **dict.fromkeys(("open", "creat", "openat", "openat2"), opens.handle),
        **_name_calls(names),
        **_mode_calls(meta),
        **_time_calls(meta),
        **_attribute_calls(meta),
    }


def _name_calls(names: Names) -> dict[str, Callable[[Call], Outcome]]:
    def at(c: Call, fd: int, addr: int) -> tuple[int, bytes]:
        return c.args[fd], c.cstring(c.args[addr])

    def here(c: Call, addr: int) -> tuple[int, bytes]:
        return _CWD, c.cstring(c.args[addr])

    remove = abi.AT_REMOVEDIR
    return {
        "mkdir": lambda c: names.mkdir(c, *here(c, 0), c.args[1]),
        "mkdirat": lambda c: names.mkdir(c, *at(c, 0, 1), c.args[2]),
        "mknod": lambda c: names.mknod(c, *here(c, 0), c.args[1], c.args[2]),
        "mknodat": lambda c: names.mknod(c, *at(c, 0, 1), c.args[2], c.args[3]),
        "symlink": lambda c: names.symlink(c, c.cstring(c.args[0]), *here(c, 1)),
        "symlinkat": lambda c: names.symlink(c, c.cstring(c.args[0]), *at(c, 1, 2)),
        "rmdir": lambda c: names.unlink(c, *here(c, 0), remove),
        "unlink": lambda c: names.unlink(c, *here(c, 0), 0),
        "unlinkat": lambda c: names.unlink(c, *at(c, 0, 1), c.args[2]),
        "rename": lambda c: names.rename(c, here(c, 0), here(c, 1), 0),
        "renameat": lambda c: names.rename(c, at(c, 0, 1), at(c, 2, 3), 0),
        "renameat2": lambda c: names.rename(c, at(c, 0, 1), at(c, 2, 3), c.args[4] & 0xFFFFFFFF),
        "link": lambda c: names.link(c, here(c, 0), here(c, 1), 0),
        "linkat": lambda c: names.link(c, at(c, 0, 1), at(c, 2, 3), c.args[4]),
        "truncate": lambda c: names.truncate(c, c.cstring(c.args[0]), c.args[1]),
    }


def _mode_calls(meta: metadata.Metadata) -> dict[str, Callable[[Call], Outcome]]:
    chmod, chown = metadata.chmod, metadata.chown
    return {
        "chmod": lambda c: meta.by_path(c, _CWD, c.args[0], chmod(c.args[1]), follow=True),
        "fchmod": lambda c: meta.by_descriptor(c, c.args[0], chmod(c.args[1])),
        "fchmodat": lambda c: meta.by_path(c, c.args[0], c.args[1], chmod(c.args[2]), follow=True),
        "fchmodat2": lambda c: meta.by_path(
            c, c.args[0], c.args[1], chmod(c.args[2]), follow=not c.args[3] & _NOFOLLOW, empty=bool(c.args[3] & _EMPTY)
        ),
        "chown": lambda c: meta.by_path(c, _CWD, c.args[0], chown(c.args[1], c.args[2]), follow=True),
        "lchown": lambda c: meta.by_path(c, _CWD, c.args[0], chown(c.args[1], c.args[2]), follow=False),
        "fchown": lambda c: meta.by_descriptor(c, c.args[0], chown(c.args[1], c.args[2])),
        "fchownat": lambda c: meta.by_path(
            c,
            c.args[0],
            c.args[1],
            chown(c.args[2], c.args[3]),
            follow=not c.args[4] & _NOFOLLOW,
            empty=bool(c.args[4] & _EMPTY),
        ),
    }


def _time_calls(meta: metadata.Metadata) -> dict[str, Callable[[Call], Outcome]]:
    def utimensat(c: Call) -> Outcome:
        action = metadata.times(metadata.timespecs(c, c.args[2]))
        if not c.args[1]:
            return meta.by_descriptor(c, c.args[0], action)
        follow, empty = not c.args[3] & _NOFOLLOW, bool(c.args[3] & _EMPTY)
        return meta.by_path(c, c.args[0], c.args[1], action, follow=follow, empty=empty)

    def futimesat(c: Call) -> Outcome:
        action = metadata.times(metadata.timevals(c, c.args[2]))
        if not c.args[1]:
            return meta.by_descriptor(c, c.args[0], action)
        return meta.by_path(c, c.args[0], c.args[1], action, follow=True)

    def simple(read: Callable[[Call, int], bytes | None]) -> Callable[[Call], Outcome]:
        return lambda c: meta.by_path(c, _CWD, c.args[0], metadata.times(read(c, c.args[1])), follow=True)

    return {
        "utimensat": utimensat,
        "futimesat": futimesat,
        "utimes": simple(metadata.timevals),
        "utime": simple(metadata.utimbuf),
    }


def _attribute_calls(meta: metadata.Metadata) -> dict[str, Callable[[Call], Outcome]]:
    def set_of(c: Call) -> Callable[[Place], None]:
        name, value = metadata.attribute(c, c.args[1], c.args[2], c.args[3])
        return metadata.set_attribute(name, value, c.args[4] & 0xFFFFFFFF)

    def remove_of(c: Call) -> Callable[[Place], None]:
        return metadata.remove_attribute(c.cstring(c.args[1], 256))

    return {
        "setxattr": lambda c: meta.by_path(c, _CWD, c.args[0], set_of(c), follow=True),
        "lsetxattr": lambda c: meta.by_path(c, _CWD, c.args[0], set_of(c), follow=False),
        "fsetxattr": lambda c: meta.by_descriptor(c, c.args[0], set_of(c)),
        "removexattr": lambda c: meta.by_path(c, _CWD, c.args[0], remove_of(c), follow=True),
        "lremovexattr": lambda c: meta.by_path(c, _CWD, c.args[0], remove_of(c), follow=False),
        "fremovexattr": lambda c: meta.by_descriptor(c, c.args[0], remove_of(c)),
    }
