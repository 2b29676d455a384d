"""The policy a run starts with: the tables, in one place, and how they become rules.

Rule: what a person finds refused or open without having said anything is a line of this file, with the reason that
is shown. Paths are as they are spelled; `surroundings.py` adds what they lead to through symbolic links.
Owns: the default layer and the never-list. Pure.
Does not prove: that the tables are complete. A secret that no line names is readable, and a file in the project that
some program of yours runs by itself, unnamed here, is writable. Only the project's top is covered: a clone inside the
project, a submodule's `.git/modules/NAME/config`, a bare repository made out of plain files are not. A run inside a
bigger repository cannot write that repository's `.git` at all (it lies outside the project), and where `.git` is a
file (a worktree) git's directory is outside too: commits need a grant of that directory, and the grant then covers
its hooks.
"""

from __future__ import annotations

from nd7tui.engine.policy.rules import (
    Access,
    Effect,
    HostTarget,
    PathTarget,
    Policy,
    Rule,
    Scope,
    SocketTarget,
    Target,
)
from nd7tui.engine.records import dataclass

# ---- Refused for reading and writing, beneath home. The left side is the reason shown: "secret: …".
SECRETS: dict[str, tuple[str, ...]] = {
    "ssh keys": (".ssh",),
    "gpg private keys": (".gnupg/private-keys-v1.d", ".gnupg/secring.gpg"),
    "cloud credentials": (
        ".aws",
        ".azure",
        ".config/gcloud",
        ".config/doctl",
        ".config/hcloud",
        ".config/linode-cli",
        ".config/scw",
        ".config/flyctl",
        ".fly",
        ".oci",
        ".aliyun",
        ".bluemix",
        ".config/rclone",
        ".s3cfg",
        ".boto",
        ".config/netlify",
        ".config/.wrangler",
        ".wrangler",
        ".local/share/com.vercel.cli",
        ".config/configstore/firebase-tools.json",
        ".config/stripe",
        ".databrickscfg",
        ".terraform.d/credentials.tfrc.json",
        ".pulumi/credentials.json",
        ".vault-token",
        ".config/sops",
    ),
    "code forge credentials": (
        ".config/gh",
        ".config/hub",
        ".config/glab-cli",
        ".config/tea",
        ".netrc",
        ".git-credentials",
        ".config/git/credentials",
    ),
    "container credentials": (".kube", ".docker/config.json", ".config/containers/auth.json", ".config/helm/registry"),
    # ~/.npmrc: a publish token there is what npm worms take first, and 443 is open to send it anywhere. npm goes on
    # without the file (an unreadable one is only a verbose message), so public packages install as before; a private
    # registry needs `nd7 allow --read ~/.npmrc` or a line in the configuration. Files that a build stops without
    # (~/.m2/settings.xml, ~/.gradle/gradle.properties, ~/.yarnrc.yml, pip.conf) stay readable.
    "package registry token": (
        ".npmrc",
        ".pypirc",
        ".config/pypoetry/auth.toml",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".gem/credentials",
        ".local/share/gem/credentials",
        ".composer/auth.json",
        ".config/composer/auth.json",
        ".m2/settings-security.xml",
        ".huggingface/token",
        ".cache/huggingface/token",
    ),
    "database passwords": (".pgpass", ".my.cnf", ".mylogin.cnf"),
    "password store": (
        ".password-store",
        ".local/share/gopass",
        ".local/share/keyrings",
        ".local/share/kwalletd",
        ".config/Bitwarden",
        ".config/Bitwarden CLI",
        ".config/1Password",
        ".config/op",
        ".config/keepassxc",
    ),
    "wallet": (".bitcoin", ".ethereum", ".electrum", ".config/solana"),
    "private certificates": (".pki", ".local/share/mkcert"),
    "browser profile": (
        ".mozilla",
        ".config/mozilla",
        ".librewolf",
        ".thunderbird",
        "snap/firefox",
        "snap/thunderbird",
        ".var/app/org.mozilla.firefox",
        ".var/app/org.mozilla.Thunderbird",
        ".config/google-chrome",
        ".config/google-chrome-beta",
        ".config/google-chrome-unstable",
        ".var/app/com.google.Chrome",
        ".config/chromium",
        "snap/chromium",
        ".var/app/org.chromium.Chromium",
        ".config/BraveSoftware",
        "snap/brave",
        ".var/app/com.brave.Browser",
        ".config/microsoft-edge",
        ".config/microsoft-edge-beta",
        ".config/microsoft-edge-dev",
        ".var/app/com.microsoft.Edge",
        ".config/vivaldi",
        ".config/opera",
    ),
}

# ---- The same, anywhere, when the run is root's: for everybody else the file's own mode says no already, and each
# line costs the floor a rule for every sibling. Kernel memory (/proc/kcore) takes a capability that is dropped.
ROOT_SECRETS: dict[str, tuple[str, ...]] = {
    "password hashes": ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"),
    "who may become root": ("/etc/sudoers", "/etc/sudoers.d"),
    "host keys": ("/etc/ssl/private", "/etc/krb5.keytab"),
    "network passwords": ("/etc/NetworkManager/system-connections", "/etc/wpa_supplicant"),
}
ROOT_SECRET_GLOBS: dict[str, tuple[str, ...]] = {"host keys": ("/etc/ssh/ssh_host_*_key",)}

# ---- Refused for writing, beneath home, even where home as a whole was granted or is the project: programs outside
# run these without being asked.
STARTUP: dict[str, tuple[str, ...]] = {
    "your shell runs it": (
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshenv",
        ".zprofile",
        ".zshrc",
        ".zlogin",
        ".zlogout",
        ".config/fish",
        ".config/direnv",
        ".inputrc",
        ".pam_environment",
        ".tmux.conf",
        ".config/tmux",
    ),
    "programs you run": (".local/bin", "bin", ".cargo/bin"),
    "git runs what it names": (".gitconfig", ".config/git"),
    "your session runs it": (
        ".config/autostart",
        ".config/systemd",
        ".local/share/systemd",
        ".config/environment.d",
        ".local/share/applications",
        ".local/share/dbus-1",
        ".xprofile",
        ".xsession",
        ".xsessionrc",
        ".xinitrc",
    ),
    "your editor runs it": (".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs"),
    "gpg trusts it": (".gnupg",),
}

# ---- Open for writing beneath home: the agents' own state. The pattern covers lock, temp and backup names.
AGENT_STATE = (".claude", ".codex")
AGENT_STATE_GLOBS = (".claude.json*",)

# ---- Package managers' caches, by the variable that moves them. The user's own are read and never written: what is put
# there is run by the next install outside. Without one, npm and go stop and pip and uv are slow. So confined runs share
# caches of their own, one directory each beneath `Layout.caches`.
# Source: npm-config(7) "cache"; pip "Caching"; uv "Environment variables"; go help environment.
PACKAGE_CACHES = {"npm_config_cache": "npm", "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "GOCACHE": "go-build"}

# ---- Never writable: what would switch nd7 off in the next session.
AGENT_CONFIGURATION = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
)

# ---- Writing asks: beneath the agents' state, what they run or obey without asking.
AGENT_ASK: dict[str, tuple[str, ...]] = {
    "claude runs these as hooks": (".claude/hooks",),  # scripts that settings.json names
    "codex runs what they allow": (".codex/rules",),  # which commands need no approval
}

# ---- Writing asks, at the project's top: run by a trusted program outside without anybody naming the file: at the next
# git command, `cd`, or opening of an editor. What a person starts by name (Makefile, package.json) is not here.
PROJECT_ASK: dict[str, tuple[str, ...]] = {
    "git runs it": (".git/hooks",),  # at commit, checkout, merge
    # core.fsmonitor, core.pager, filters, aliases, hooksPath run programs. `git init` in the project's top, adding a
    # remote and setting an upstream therefore ask too.
    "git runs what it names": (".git/config", ".git/config.worktree"),
    "git follows it to another config": (".git/commondir",),
    # .git/info/attributes is not here: it only chooses among the filters that a config defines.
    "git hooks run it": (".husky", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"),
    "agents start the servers it names": (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"),
    "agents run what it names": (
        ".claude/hooks",
        ".codex/config.toml",
        ".codex/hooks.json",
        ".gemini/settings.json",
    ),
    "your shell runs it": (".envrc", ".mise.toml", "mise.toml"),  # direnv and mise, on entering the directory
    "your editor runs it": (
        ".vscode/tasks.json",  # tasks that run when the folder opens
        ".vscode/settings.json",  # paths of interpreters, linters and shells
        ".vscode/launch.json",  # programs of the next debug session
        ".idea",  # run configurations and startup tasks; only the IDE writes there
        ".zed",
        ".devcontainer",  # initializeCommand runs on the host
        ".devcontainer.json",
    ),
}
PROJECT_ASK_GLOBS: dict[str, tuple[str, ...]] = {"agents run what it names": (".claude/settings*.json",)}

# ---- Devices: these for reading and writing, the rest of /dev for neither.
DEVICES = (
    "null",
    "zero",
    "full",
    "random",
    "urandom",
    "tty",
    "ptmx",
    "pts/ptmx",  # the terminals themselves: those of the run, told by who holds them (sandbox/terminals.py)
    "shm",
    "fd",
    "stdin",
    "stdout",
    "stderr",
)

# ---- Unix sockets.
RESOLVER_SOCKETS = (
    "/run/nscd/socket",
    "/var/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/var/run/systemd/resolve/io.systemd.Resolve",
)
GPG_SOCKETS = ("/run/user/{uid}/gnupg/S.gpg-agent.extra", "{home}/.gnupg/S.gpg-agent.extra")


@dataclass(frozen=True)
class Layout:
    """Where things are for one run; every path canonical.

    Attributes:
        home: The user's home directory, from the password database.
        project: The directory the run was started in.
        tmp: Temporary directories.
        scratch: Further directories of the agent's own.
        run_dir: This run's directory beneath `~/.nd7/sessions`.
        state_dir: Where logs are kept.
        nameservers: Addresses of the configured DNS servers.
        uid: The user's id; 0 brings the system's own secrets in.
        programs: Directories of nd7's own programs (nd7-exec), never writable.
        protected: Further files never writable, which the agent's adapter relies on.
        caches: Where confined runs keep packages, empty when there is no such place.
    """

    home: bytes
    project: bytes
    tmp: tuple[bytes, ...]
    scratch: tuple[bytes, ...]
    run_dir: bytes
    state_dir: bytes
    nameservers: tuple[str, ...]
    uid: int
    programs: tuple[bytes, ...] = ()
    protected: tuple[bytes, ...] = ()
    caches: bytes = b""


class _Rules:
    """Collects rules of one layer and numbers them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.rules: list[Rule] = []

    def add(self, effect: Effect, why: str, target: Target, *accesses: Access) -> None:
        for access in accesses:
            name = f"{self.scope}{len(self.rules) + 1}"
            self.rules.append(Rule(effect, access, target, self.scope, "nd7", 0, name, why))

    def under(
        self, effect: Effect, top: bytes, table: dict[str, tuple[str, ...]], *accesses: Access, glob: bool = False
    ) -> None:
        for why, names in table.items():
            for name in names:
                self.add(effect, why, PathTarget(join(top, name), glob), *accesses)


BOTH = (Access.READ, Access.WRITE)


def join(top: bytes, name: str) -> bytes:
    """Returns `name` beneath `top`; a name that is absolute already is taken as it is."""
    return name.encode() if name.startswith("/") else top.rstrip(b"/") + b"/" + name.encode()


def policy_for(layout: Layout) -> Policy:
    """Builds the policy that a run in these surroundings starts with; it has no live rules yet."""
    rules = _Rules(Scope.DEFAULT)
    _reading(rules, layout)
    _writing(rules, layout)
    _devices(rules)
    _network(rules, layout)
    return Policy(default=tuple(rules.rules), never=_never(layout))


def _reading(rules: _Rules, layout: Layout) -> None:
    rules.add(Effect.ALLOW, "everything but secrets may be read", PathTarget(b"/"), Access.READ)
    homes = {layout.home, b"/root"} if layout.uid == 0 else {layout.home}
    secrets = {f"secret: {why}": names for why, names in SECRETS.items()}
    for home in sorted(homes):
        rules.under(Effect.DENY, home, secrets, *BOTH)
    if layout.uid == 0:
        for table, glob in ((ROOT_SECRETS, False), (ROOT_SECRET_GLOBS, True)):
            named = {f"secret: {why}": names for why, names in table.items()}
            rules.under(Effect.DENY, b"/", named, *BOTH, glob=glob)
    rules.add(Effect.DENY, "logs of other sessions", PathTarget(layout.state_dir), Access.READ)


def _writing(rules: _Rules, layout: Layout) -> None:
    rules.add(Effect.ALLOW, "the project", PathTarget(layout.project), *BOTH)
    for why, paths in (("temporary files", layout.tmp), ("the agent's scratch directory", layout.scratch)):
        for path in paths:
            rules.add(Effect.ALLOW, why, PathTarget(path), *BOTH)
    if layout.caches:
        rules.add(Effect.ALLOW, "package caches of confined runs", PathTarget(layout.caches), *BOTH)
    state = "the agent's own state"
    rules.under(Effect.ALLOW, layout.home, {state: AGENT_STATE}, Access.WRITE)
    rules.under(Effect.ALLOW, layout.home, {state: AGENT_STATE_GLOBS}, Access.WRITE, glob=True)
    rules.under(Effect.ASK, layout.home, AGENT_ASK, Access.WRITE)
    rules.under(Effect.ASK, layout.project, PROJECT_ASK, Access.WRITE)
    rules.under(Effect.ASK, layout.project, PROJECT_ASK_GLOBS, Access.WRITE, glob=True)
    startup = _Rules(Scope.DEFAULT)
    startup.under(Effect.DENY, layout.home, STARTUP, Access.WRITE)
    for rule in startup.rules:
        # Who starts a run in ~/.config/nvim means to work on it.
        if rule.target != PathTarget(layout.project):
            rules.add(rule.effect, rule.why, rule.target, rule.access)


def _devices(rules: _Rules) -> None:
    rules.add(Effect.DENY, "a device", PathTarget(b"/dev"), *BOTH)
    rules.under(Effect.ALLOW, b"/dev", {"a harmless device": DEVICES}, *BOTH)


def _network(rules: _Rules, layout: Layout) -> None:
    def connect(why: str, target: Target) -> None:
        rules.add(Effect.ALLOW, why, target, Access.CONNECT)

    connect("tcp 443", HostTarget("*", 443, "tcp"))
    connect("loopback", HostTarget("loopback", None, None))
    for server in layout.nameservers:
        connect("dns", HostTarget(server, 53, None))
    for path in RESOLVER_SOCKETS:
        connect("name lookup", SocketTarget(path.encode()))
    for path in GPG_SOCKETS:
        filled = path.encode().replace(b"{uid}", b"%d" % layout.uid).replace(b"{home}", layout.home.rstrip(b"/"))
        connect("gpg's restricted socket", SocketTarget(filled))
    connect("hooks", SocketTarget(join(layout.run_dir, "hook.sock")))


def _never(layout: Layout) -> tuple[Rule, ...]:
    rules = _Rules(Scope.NEVER)
    rules.add(Effect.DENY, "nd7's own files", PathTarget(join(layout.home, ".nd7")), *BOTH)
    # nd7-exec and the hook client read the live rules of their own run.
    rules.add(Effect.ALLOW, "this run's own directory", PathTarget(layout.run_dir), Access.READ)
    # Who can open a file can hold its lock for ever, and no rule could be changed any more.
    for lock in (join(layout.run_dir, "record.lock"), join(layout.home, ".config/nd7/config.toml.lock")):
        rules.add(Effect.DENY, "who holds nd7's locks stops it", PathTarget(lock), Access.READ)
    rules.add(Effect.DENY, "nd7's configuration", PathTarget(join(layout.home, ".config/nd7")), Access.WRITE)
    rules.add(Effect.DENY, "nd7's logs", PathTarget(layout.state_dir), Access.WRITE)
    rules.under(Effect.DENY, layout.home, {"the agent's configuration": AGENT_CONFIGURATION}, Access.WRITE)
    for path in layout.programs:
        rules.add(Effect.DENY, "nd7's programs", PathTarget(path), Access.WRITE)
    for path in layout.protected:
        rules.add(Effect.DENY, "nd7 relies on it in this run", PathTarget(path), Access.WRITE)
    return tuple(rules.rules)
