"""Fit the projection of token vectors: `python -m bench.projecting longmemeval_s.json MODELS_DIR`.

The directions in which the token vectors of conversations differ most, uncentred, the strongest
first: their products keep most of the full ones. No question and no gold takes part. Writes
`arctic-embed-s-tokens.npy` beside the embedder. A new projection needs a new model id.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import worlddb.embed.late as late
from worlddb.embed.catalog import ARCTIC_EMBED_S
from worlddb.embed.onnx import OnnxEmbedder
from worlddb.evaluate.cases import load_cases

TEXTS = 1_000


def main(path: str, models_dir: str) -> None:
    texts = sorted(
        {
            f"{turn.speaker}: {turn.text}"
            for case in load_cases(path, "longmemeval")
            for session in case.sessions
            for turn in session.turns
        }
    )
    chosen = texts[:: len(texts) // TEXTS][:TEXTS]
    model = OnnxEmbedder(ARCTIC_EMBED_S, models_dir=models_dir)
    products = np.zeros((model.dim, model.dim))
    for text in chosen:
        vectors = model.embed_tokens([text], "document")[0][1].astype(np.float64)
        products += vectors.T @ vectors
    values, directions = np.linalg.eigh(products)
    kept = directions[:, ::-1][:, : late.DIM]
    target = Path(late.__file__).with_name("arctic-embed-s-tokens.npy")
    np.save(target, kept.astype(np.float16))
    share = values[::-1][: late.DIM].sum() / values.sum()
    print(f"{len(chosen)} texts, {late.DIM} of {model.dim} dimensions keep {share:.1%}: {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
