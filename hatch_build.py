"""Build hook: compile the moves in C if there is a compiler; without one NumPy does the work.

The library is plain C called through ctypes, so one build serves every Python version of a
platform and nothing but a C compiler is needed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]


def compiler() -> list[str] | None:
    """The C compiler of this machine: $CC, or the first of cc, gcc and clang."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    return None


def compile_moves(root: Path) -> Path | None:
    """Compile ``search/_native.c`` beside its source; None when that cannot be done."""
    source = root / "src" / "exactk" / "search" / "_native.c"
    library = source.with_suffix(".dll" if sys.platform == "win32" else ".so")
    command = compiler()
    if command is None:
        return None
    flags = [flag for flag in FLAGS if not (sys.platform == "win32" and flag == "-fPIC")]
    # Written beside and then moved: a process that has the old library open keeps it whole.
    fresh = library.with_suffix(".new")
    done = subprocess.run(
        [*command, *flags, "-o", str(fresh), str(source), "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return None
    fresh.replace(library)
    return library


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled moves to wheels and to editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and mark the wheel as one for this platform."""
        if self.target_name != "wheel":
            return
        library = compile_moves(Path(self.root))
        if library is None:
            self.app.display_warning(
                "exactk: no C compiler found; installed without compiled moves, NumPy will do"
            )
            return
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(str(library.relative_to(self.root)))
