"""Put prebuilt kernels into a wheel, and tag it for the Python and the processors that they are for.

`./dev wheel` names their directory in HEADGATE_PREBUILT. Without it the wheel is one for all, and kernels are
compiled where they are used.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PrebuiltKernels(BuildHookInterface[Any]):
    """Add the directory of prebuilt kernels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Change what hatchling is about to build."""
        folder = os.environ.get("HEADGATE_PREBUILT")
        if not folder or version == "editable":
            return
        build_data["force_include"][folder] = "headgate/core/jit/prebuilt"
        build_data["pure_python"] = False
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        # Kernels link to nothing but what numba finds for them, so they ask for no newer C library than it.
        build_data["tag"] = f"{python}-{python}-manylinux_2_17_{platform.machine()}"
