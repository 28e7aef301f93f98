"""Models of other libraries: the libraries themselves where they are installed, else the error."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from worlddb.embed.embedder import checked
from worlddb.embed.embedder_catalog import embedder_named
from worlddb.embed.external_embedders import fastembed, sentence_transformers
from worlddb.errors import ProviderError


@pytest.mark.parametrize(
    ("name", "module"),
    [("sentence-transformers:x", "sentence_transformers"), ("fastembed:x", "fastembed")],
)
def test_without_the_library_the_error_names_the_extra(name: str, module: str) -> None:
    program = f"""
import sys
sys.modules[{module!r}] = None
from worlddb.embed.embedder_catalog import embedder_named
embedder = embedder_named({name!r})
for use in (lambda: embedder.embed_queries(["text"]), lambda: embedder.dim):
    try:
        use()
    except Exception as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    library = name.partition(":")[0]
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"ProviderError {name}: needs {library} (")
        assert line.endswith(f'run: pip install "worlddb[{library}]"')


def test_the_name_is_the_model_id() -> None:
    for name in ("sentence-transformers:org/model", "fastembed:org/model"):
        assert embedder_named(name).model_id == name


def test_fastembed_runs_a_real_model(arctic_wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastembed", reason="fastembed is not installed")
    with zipfile.ZipFile(arctic_wheel) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "project_brain/model/int8"
    embedder = fastembed(
        "snowflake/snowflake-arctic-embed-s", settings={"specific_model_path": str(folder)}
    )
    one, same, other = checked(
        embedder, ["He could not sleep.", "He lay awake all night.", "Prices fell."], "document"
    )
    assert embedder.dim == 384
    assert one @ same > one @ other + 0.1
    assert checked(embedder, ["Who was awake?"], "query").shape == (1, 384)


def test_sentence_transformers_runs_a_real_model_with_its_prompts(tmp_path: Path) -> None:
    library = pytest.importorskip(
        "sentence_transformers", minversion="6", reason="sentence-transformers is not installed"
    )
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[UNK]", "ask", "ada", "zurich", "invoice"]
    tokenizer = Tokenizer(
        WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = Whitespace()
    table = np.eye(len(words), 8, dtype=np.float32)
    made = library.SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_weights=table)],
        prompts={"query": "ask ", "document": ""},
    )
    made.save(str(tmp_path / "model"))
    embedder = sentence_transformers(str(tmp_path / "model"), settings={"device": "cpu"})
    assert embedder.dim == 8
    asked = checked(embedder, ["ada"], "query")[0]
    stored = checked(embedder, ["ada"], "document")[0]
    assert stored.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(asked, [0, 0.5**0.5, 0.5**0.5, 0, 0, 0, 0, 0], atol=1e-5)


def test_a_model_that_cannot_be_loaded_is_told_with_its_name(tmp_path: Path) -> None:
    pytest.importorskip("fastembed", reason="fastembed is not installed")
    with pytest.raises(ProviderError, match=r"fastembed:no/such: cannot be loaded"):
        checked(embedder_named("fastembed:no/such"), ["text"], "query")
