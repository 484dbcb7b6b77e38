"""Build hook: compile the C files if there is a compiler; without one NumPy does the work.

The libraries are plain C called through ctypes, so one build serves every Python version of a
platform and nothing but a C compiler is needed.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# After $CC: with -ffast-math in it what is meant to round, or to be no number, would not.
FLAGS = ["-O3", "-fno-fast-math", "-fno-math-errno", "-fno-trapping-math", "-shared"]
# Files in src/exactk/native, each compiled to a library of its own.
NATIVE_SOURCES = ("search", "distances", "sparse", "losses", "proof")


def compiler() -> list[str] | None:
    """The C compiler of this machine: $CC, or the first of cc, gcc and clang."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    return None


def compile_source(root: Path, name: str) -> tuple[Path | None, str]:
    """Compile one C file; return the library, or None and the reason."""
    source = root / "src" / "exactk" / "native" / f"{name}.c"
    windows = sys.platform == "win32"
    library = source.with_name(f"_{name}{'.dll' if windows else '.so'}")
    command = compiler()
    if command is None:
        return None, "no C compiler found"
    system = [] if windows else ["-fPIC"]
    libraries = [] if windows else ["-lm"]
    # Written beside and then moved: a process that has the old library open keeps it whole.
    fresh = library.with_suffix(".new")
    try:
        done = subprocess.run(
            [*command, *FLAGS, *system, "-o", str(fresh), str(source), *libraries],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return None, f"{command[0]}: {error.strerror}"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or [f"{command[0]} failed"])[0]
    fresh.replace(library)
    return library, ""


def platform_tag() -> str:
    """The platform part of the wheel's name: what the compiler built for."""
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    # A universal Python still compiles for the machine at hand only.
    return name.replace("universal2", platform.machine()) if sys.platform == "darwin" else name


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # generic in its own stubs
    """Adds the compiled libraries to wheels and to editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and mark the wheel as one for this platform."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        with ThreadPoolExecutor() as pool:
            compiled = list(pool.map(lambda name: compile_source(root, name), NATIVE_SOURCES))
        for name, (library, reason) in zip(NATIVE_SOURCES, compiled, strict=True):
            if library is None:
                self.app.display_warning(
                    f"exactk: native/{name}.c was not compiled ({reason}); exactk uses NumPy "
                    "instead"
                )
                continue
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"
            build_data["artifacts"].append(library.relative_to(root).as_posix())
