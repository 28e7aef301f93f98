"""The model of an ONNX file with 8-bit weights, in floating point, for PyTorch to train.

Nothing but that file is needed. Another machine may fit without WorldDB, so nothing of WorldDB is
imported here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from transformers import BertConfig, BertModel


def encoder(home: Path) -> BertModel:
    """Return the model in a folder."""
    graph = onnx.load(str(home / "model.onnx")).graph
    kept = {item.name: numpy_helper.to_array(item) for item in graph.initializer}

    def restored(name: str) -> torch.Tensor:
        whole = kept[f"{name}_quantized"].astype(np.float32) - kept[f"{name}_zero_point"]
        return torch.tensor(whole * kept[f"{name}_scale"])

    config = BertConfig(
        vocab_size=30_522, hidden_size=384, num_attention_heads=12, intermediate_size=1_536
    )
    model = BertModel(config, add_pooling_layer=False)
    state = {name: torch.tensor(kept[name]) for name in model.state_dict() if name in kept}
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        state[f"embeddings.{name}.weight"] = restored(f"embeddings.{name}.weight")
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            # A product is named by the layer it belongs to, its weights only by a number.
            layer = node.output[0].strip("/").split("/MatMul")[0].replace("/", ".")
            state[f"{layer}.weight"] = restored(node.input[1].removesuffix("_quantized")).T
    model.load_state_dict(state, strict=True)
    return model.eval()
