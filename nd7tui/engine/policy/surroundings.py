"""What of this machine the policy depends on: name servers, temporary directories, and where links lead.

Rule: a line of the tables says what a name means; a secret behind a symbolic link is refused where it really lies too,
and nothing that a run may write decides what is allowed. Owns the I/O that `defaults.py` must not do.
Does not prove: that the answers stay true. They are taken once, at the run's start; a link made later from a place
that the run cannot write is not seen, and hard links and bind mounts are the sandbox's concern.
"""

from __future__ import annotations

import fnmatch
import os
import stat

from nd7tui.engine import paths
from nd7tui.engine.policy import address
from nd7tui.engine.policy.defaults import PACKAGE_CACHES, STARTUP, Layout, policy_for
from nd7tui.engine.policy.rules import Effect, PathTarget, Policy, Rule, is_beneath, split
from nd7tui.engine.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def nameservers(path: str = "/etc/resolv.conf") -> tuple[str, ...]:
    """Returns the addresses of the configured DNS servers; none for a file that is missing or names none.

    Source: resolv.conf(5). Its default without a file is a server on this machine, which loopback covers.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            words = [line.split() for line in file.read(65536).splitlines()]
    except OSError:
        return ()
    found = []
    for word in words:
        if len(word) > 1 and word[0] == "nameserver":
            try:
                found.append(address.canonical(word[1]))
            except ValueError:
                continue
    return tuple(dict.fromkeys(found))


def tmp_directories(env: Mapping[str, str], home: str) -> tuple[bytes, ...]:
    """Returns `/tmp` and `$TMPDIR`, canonical, less what does not exist or would open the home directory."""
    found = []
    for path in ("/tmp", env.get("TMPDIR", "")):  # noqa: S108
        if os.path.isabs(path) and os.path.isdir(path):
            real = os.fsencode(os.path.realpath(path))
            if not is_beneath(os.fsencode(home), real):
                found.append(real)
    return tuple(dict.fromkeys(found))


def layout_of(
    project: str,
    run_dir: str,
    *,
    tmp: tuple[bytes, ...],
    scratch: tuple[str, ...] = (),
    programs: tuple[bytes, ...] = (),
    protected: tuple[str, ...] = (),
) -> Layout:
    """Returns the layout of a run of this user on this machine; see `Layout` for the arguments."""
    return Layout(
        home=_real(paths.home()),
        project=_real(project),
        tmp=tmp,
        scratch=tuple(_real(path) for path in scratch),
        run_dir=_real(run_dir),
        state_dir=_real(paths.state_dir()),
        nameservers=nameservers(),
        uid=os.geteuid(),
        programs=programs,
        protected=tuple(_real(path) for path in protected),
        caches=_real(paths.caches_dir()),
    )


def make_caches(env: Mapping[str, str]) -> dict[str, str]:
    """Makes the place for packages, and returns the variables that send package managers there.

    One that the user has set stays as it is. Without a place there are none: the package managers then use their own,
    where the run may not write.
    """
    top = os.path.realpath(paths.caches_dir())
    try:
        os.makedirs(top, mode=0o700, exist_ok=True)
    except OSError:
        return {}
    taken = {name.lower() for name in env}  # npm reads NPM_CONFIG_CACHE too
    return {name: os.path.join(top, own) for name, own in PACKAGE_CACHES.items() if name.lower() not in taken}


def floor_of(layout: Layout) -> Policy:
    """Returns the policy a run starts with here: the tables' rules, and those for what their paths lead to."""
    policy = policy_for(layout)
    return replace(
        policy,
        default=policy.default + tuple(_behind_links(policy.default, layout)),
        never=policy.never + tuple(_behind_links(policy.never, layout)),
    )


def _real(path: str) -> bytes:
    return os.fsencode(os.path.realpath(path))


def _behind_links(rules: tuple[Rule, ...], layout: Layout) -> Iterator[Rule]:
    links = _Links()
    for rule in rules:
        target = rule.target
        # /dev/stdin and its like lead to whatever this process has open, which must not become a rule.
        if isinstance(target, PathTarget) and not is_beneath(target.path, b"/dev"):
            for n, real in enumerate(_leads_to(target, links)):
                made = _moved(rule, real, f"{rule.id}.link{n}", layout)
                if made is not None:
                    yield made


def _moved(rule: Rule, real: bytes, name: str, layout: Layout) -> Rule | None:
    if is_beneath(layout.home, real) or is_beneath(layout.project, real):
        # A link to `/`, or up to the project itself: the rule would close (or open) everything.
        return None
    effect = rule.effect
    if effect is Effect.DENY and rule.why in STARTUP and is_beneath(real, layout.project):
        # Dotfiles kept in a repository: whoever runs the agent there means to work on them, one yes at a time.
        effect = Effect.ASK
    return replace(rule, effect=effect, target=PathTarget(real), id=name)


def _leads_to(target: PathTarget, links: _Links) -> list[bytes]:
    """Returns the real paths of what `target` names, where they differ."""
    if not target.glob:
        real = links.real(target.path)
        return [] if real == target.path else [real]
    parent, pattern = split(target.path)
    real_parent = links.real(parent)
    try:
        names = [name for name in os.listdir(real_parent) if fnmatch.fnmatchcase(name, pattern)]
    except OSError:
        return []
    entries = [os.path.join(parent, name) for name in names]
    return [real for entry in entries if (real := links.real(entry)) != entry]


class _Links:
    """Where paths lead to; each directory on the way is looked at once, and nothing in one that is not there."""

    def __init__(self) -> None:
        self._real: dict[bytes, bytes] = {b"/": b"/"}
        self._missing: set[bytes] = set()

    def real(self, path: bytes) -> bytes:
        """Returns the real path, as `os.path.realpath` does."""
        known = self._real.get(path)
        if known is None:
            known = self._real[path] = self._look(path)
        return known

    def _look(self, path: bytes) -> bytes:
        parent, name = split(path)
        real = self.real(parent).rstrip(b"/") + b"/" + name
        if parent in self._missing:
            self._missing.add(path)
            return real
        try:
            mode = os.lstat(real).st_mode
        except OSError:
            self._missing.add(path)
            return real
        return os.path.realpath(real) if stat.S_ISLNK(mode) else real
