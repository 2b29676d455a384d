"""Builds the native parts: the listener's hot loop (a CPython extension) and the two helper programs.

Rule: the metadata is pyproject.toml's; only what it cannot say is here. A machine without a C compiler still gets a
working package: the extension has a pure-Python twin, missing helpers are reported by `nd7 doctor`
(`nd7tui.engine.helpers`). `ND7_REQUIRE_NATIVE=1` turns both into errors, and warnings of the compiler too; CI sets it.
"""

from __future__ import annotations

import glob
import os
import shlex
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

# isort: split
# After setuptools, which then answers for this module (Python 3.12 has none of its own).
from distutils.command.build_scripts import build_scripts

SOURCE_DIR = "exec_helper"
HOT_LOOP = os.path.join(SOURCE_DIR, "hotloop")
# One program, two names: it looks at the name it was started by.
HELPERS = ("nd7-exec", "nd7-hook")

REQUIRE_NATIVE = os.environ.get("ND7_REQUIRE_NATIVE") == "1"
WARNINGS = ["-Wall", "-Wextra", *(["-Werror"] if REQUIRE_NATIVE else [])]
HARDENED = ["-O2", "-std=gnu11", "-D_GNU_SOURCE", "-fPIE", "-fstack-protector-strong"]
HARDENED += ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
LINKED = ["-pie", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]


def helper_sources() -> list[str]:
    """Returns the C files of the helper programs."""
    return sorted(glob.glob(os.path.join(SOURCE_DIR, "*.c")))


def extensions() -> list[Extension]:
    """Returns the hot loop on Linux, nothing elsewhere."""
    if not sys.platform.startswith("linux"):
        return []
    return [
        Extension(
            "nd7tui.engine.sandbox._hotloop",
            sorted(glob.glob(os.path.join(HOT_LOOP, "*.c"))),
            depends=sorted(glob.glob(os.path.join(HOT_LOOP, "*.h"))),
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            extra_compile_args=["-O2", "-std=gnu11", "-D_GNU_SOURCE", "-fvisibility=hidden", *WARNINGS],
            py_limited_api=True,
            optional=not REQUIRE_NATIVE,
        )
    ]


class BuildHelpers(build_scripts):
    """Compiles the helper programs into the directory of scripts, which pip puts on PATH beside `nd7`."""

    def get_source_files(self) -> list[str]:
        """Returns what an sdist needs to build the helpers."""
        return helper_sources() + sorted(glob.glob(os.path.join(SOURCE_DIR, "*.h")))

    def run(self) -> None:
        """Compiles; a failure is said aloud and is an error only with ND7_REQUIRE_NATIVE=1."""
        self.mkpath(self.build_dir)
        first = os.path.join(self.build_dir, HELPERS[0])
        compiler = shlex.split(os.environ.get("CC", "cc"))
        flags = shlex.split(os.environ.get("CFLAGS", ""))
        command = [*compiler, *HARDENED, *WARNINGS, *flags, "-o", first, *helper_sources(), *LINKED]
        print("building nd7's helpers:", shlex.join(command))
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            if REQUIRE_NATIVE:
                raise
            print(f"nd7: warning: helpers not built, `nd7 doctor` says what is missing then: {error}", file=sys.stderr)
            return
        for name in HELPERS[1:]:
            shutil.copy2(first, os.path.join(self.build_dir, name))


class PlatformWheel(bdist_wheel):
    """A wheel for this platform: the helpers are native even where the extension was left out."""

    def finalize_options(self) -> None:
        """Tags the wheel as not pure."""
        super().finalize_options()
        self.root_is_pure = not sys.platform.startswith("linux")


setup(
    # Said for editable installs: the plain .pth they then use costs nothing at start, the import hook a millisecond.
    package_dir={"": "."},
    ext_modules=extensions(),
    scripts=helper_sources() if sys.platform.startswith("linux") else [],
    cmdclass={"build_scripts": BuildHelpers, "bdist_wheel": PlatformWheel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
