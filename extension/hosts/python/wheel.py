"""Puts the built library into the wheel and says for which platforms it is.

The library is the one that FENCE_PACKAGE_LIBRARY names, else what `make` builds. It is no Python extension module, so the wheel is for every Python 3 (py3-none) of one
platform. On Linux the platform's name carries the glibc that the library asks for, which is read from the library
itself: pip then refuses the wheel on an older system, where the library would not load.
"""

import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
MADE = Path(__file__).resolve().parents[3] / "dist" / f"fence{SUFFIX}"
LIBRARY = Path(os.environ.get("FENCE_PACKAGE_LIBRARY") or MADE)


class LibraryHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not LIBRARY.exists():
            raise SystemExit(f"{LIBRARY} is not there: run `make` first")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform(LIBRARY.read_bytes())}"
        build_data["force_include"][str(LIBRARY)] = f"sqlite_fence/fence{SUFFIX}"


def platform(library: bytes) -> str:
    """The platform as the tag of a wheel names it."""
    name = re.sub(r"[-.]", "_", sysconfig.get_platform())
    versions = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library)]
    if name.startswith("linux_") and versions:
        return name.replace("linux", f"manylinux_2_{max(17, *versions)}", 1)
    return name
