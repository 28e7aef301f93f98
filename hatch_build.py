"""Puts the files of the default embedder into the wheel.

WordLlama's table and tokenizer are two data files in the package `wordllama` (MIT). The package
itself, and the two dozen packages that it needs, are wanted only here, while the wheel is built:
pip and uv install them into the build environment and throw them away.
"""

from __future__ import annotations

import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = (
    "weights/l2_supercat_256.safetensors",
    "tokenizers/l2_supercat_tokenizer_config.json",
)
LICENCE = "LICENSE"
TARGET = "src/worlddb/embed/wordllama"


class CustomBuildHook(BuildHookInterface[Any]):
    """Copies the files beside the sources; `artifacts` in pyproject.toml takes them along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy what is missing."""
        target = Path(self.root) / TARGET
        if all((target / name).is_file() for name in (*FILES, LICENCE)):
            return
        package = distribution("wordllama")
        held = {str(path): path.locate() for path in package.files or ()}
        licence = next(path for name, path in held.items() if name.endswith("/" + LICENCE))
        sources = {name: held[f"wordllama/{name}"] for name in FILES} | {LICENCE: licence}
        for name, source in sources.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(source), target / name)
