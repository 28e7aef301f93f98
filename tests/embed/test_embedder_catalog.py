"""Names: what each stands for, and that making an embedder costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from worlddb.embed.embedder_catalog import CHOICES, DEFAULT, default_models_dir, embedder_named
from worlddb.embed.external_embedders import EndpointEmbedder
from worlddb.errors import InvalidInputError, ProviderError

from .server import serving
from .test_embedding_endpoint import good

URL = "http://localhost:11434/v1#nomic-embed-text"


@pytest.mark.parametrize(
    ("name", "model_id", "dim"),
    [
        ("wordllama", "wordllama-256", 256),
        ("wordllama-256", "wordllama-256", 256),
        ("arctic-embed-s", "arctic-embed-s-int8-384", 384),
        ("arctic-embed-s-int8-384", "arctic-embed-s-int8-384", 384),
        ("hash", "hash-64", 64),
        ("hash-64", "hash-64", 64),
        ("hash-128", "hash-128", 128),
        (f"{URL}?dimensions=256", f"{URL}?dimensions=256", 256),
    ],
)
def test_a_name_says_model_and_dimension_at_once(name: str, model_id: str, dim: int) -> None:
    embedder = embedder_named(name)
    assert (embedder.model_id, embedder.dim) == (model_id, dim)


@pytest.mark.parametrize(
    "name",
    [
        *("wordllama", "arctic-embed-s", "hash", "sentence-transformers:all-MiniLM-L6-v2"),
        *("fastembed:BAAI/bge-small-en-v1.5", URL, "https://h/v1#org/m:latest?dimensions=8"),
        "https://h/v1#m?document_prefix=passage%3A+&query_prefix=q",
    ],
)
def test_every_model_id_is_a_name_of_the_same_embedder(name: str) -> None:
    embedder = embedder_named(name)
    again = embedder_named(embedder.model_id)
    assert type(again) is type(embedder)
    assert again.model_id == embedder.model_id
    if isinstance(embedder, EndpointEmbedder):
        assert vars(again)["_endpoint"] == vars(embedder)["_endpoint"]


def test_the_default_is_one_of_the_choices() -> None:
    assert DEFAULT in CHOICES
    assert embedder_named(DEFAULT).model_id == "wordllama-256"


def test_making_any_embedder_loads_no_model_and_no_library() -> None:
    names = ["wordllama", "arctic-embed-s", "hash", "sentence-transformers:x", "fastembed:x", URL]
    program = (
        "import sys; from worlddb.embed.embedder_catalog import embedder_named; "
        f"[embedder_named(name).model_id for name in {names!r}]; "
        "heavy = {'wordllama', 'tokenizers', 'safetensors', 'onnxruntime', 'torch', 'fastembed'}; "
        "print(heavy & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"set()\n"


def test_the_key_and_the_options_of_an_endpoint_arrive() -> None:
    with serving(good) as server:
        embedder = embedder_named(
            f"{server.url}/v1#m:latest?dimensions=5&query_prefix=ask%3A+&document_prefix=doc%3A+",
            api_key="k",
        )
        assert isinstance(embedder, EndpointEmbedder)
        embedder.embed_queries(["a"])
        embedder.embed_documents(["b"])
    asked, stored = server.seen
    assert asked.headers["Authorization"] == "Bearer k"
    assert asked.data == {"model": "m:latest", "input": ["ask: a"], "dimensions": 5}
    assert stored.data["input"] == ["doc: b"]


def test_without_a_models_folder_the_users_own_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("HOME", "/nonexistent")
    with pytest.raises(ProviderError, match=str(default_models_dir())):
        embedder_named("arctic-embed-s").embed_queries(["text"])


def test_the_models_folder_stays_the_same_when_the_process_changes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    embedder = embedder_named("arctic-embed-s", models_dir="models")
    monkeypatch.chdir("/")
    with pytest.raises(ProviderError, match=str(tmp_path / "models")):
        embedder.embed_queries(["text"])


@pytest.mark.parametrize(
    "name",
    ["", "wordllama-512", "gpt-9", "hash-", "hash-x", "http://host/v1", "http://host/v1#", "x:y"],
)
def test_a_name_that_stands_for_nothing_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(InvalidInputError, match="no such embedder; choose one of wordllama") as it:
        embedder_named(name)
    assert all(choice in str(it.value) for choice in CHOICES)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("hash-0", "dim"),
        ("hash-999999", "dim"),
        ("fastembed:", "give the name of a model"),
        ("sentence-transformers: ", "give the name of a model"),
        ("http://host/v1#m?temperature=1", "unknown option temperature; known are dimensions"),
        ("http://host/v1#m?dimensions=many", "dimensions"),
        ("http://host/v1#m?dimensions=0", "dimensions"),
        ("http://user:pw@host/v1#m", "leave out user"),
    ],
)
def test_a_name_with_something_wrong_in_it_says_what(name: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        embedder_named(name)


@pytest.mark.parametrize("name", [None, 3, b"hash", ["hash"]])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInputError, match="give a name"):
        embedder_named(name)
