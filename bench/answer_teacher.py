"""The teacher of the answer network: a model that reads question and both texts as one sentence.

    [CLS] Where do I live? [SEP] I live in Hamburg. [SEP] Finally settled in Lisbon! [SEP]

It starts from the encoder of arctic-embed-s, with which a question is read word by word, and is
fitted to the triples with an answer. It is far too slow for a recall; it answers the triples
without one, and the answer network learns from them (`answer_trainer.py`). Needs PyTorch, and a
graphics card to be done in minutes. Nothing of WorldDB is imported.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from bench.onnx_weights import encoder

CLS, SEP = 101, 102
STEPS, BATCH, RATE, DECAY = 1_800, 512, 1.3e-4, 0.01
WARMING, NORM_MAX, DROPPED = 0.1, 1.0, 0.1
AT_ONCE, SHOWN = 4_096, 300

Array = NDArray[Any]


class Sentences:
    """The tokens of all texts, put together for each triple."""

    def __init__(self, of: Mapping[str, Array], device: str) -> None:
        sizes = of["token_sizes"].astype(np.int64)
        table = np.zeros((len(sizes), sizes.max()), np.int64)
        table[np.arange(sizes.max()) < sizes[:, None]] = of["tokens"]
        self._tokens, self._sizes = (torch.tensor(it, device=device) for it in (table, sizes))
        self._device = device

    def sizes(self, triples: Array) -> Array:
        """Return how many tokens the texts of each triple have."""
        found: Array = self._sizes.cpu().numpy()[triples].sum(axis=1)
        return found

    def put(self, triples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return tokens, which of them are of the later text, and which are there."""
        sizes = self._sizes[triples]
        whole = sizes.sum(1) + 4
        shape = len(triples), int(whole.max())
        tokens = torch.zeros(shape, dtype=torch.long, device=self._device)
        later = torch.zeros_like(tokens)
        rows = torch.arange(len(triples), device=self._device)
        places = torch.arange(self._tokens.shape[1], device=self._device)
        tokens[:, 0] = CLS
        start = torch.ones_like(rows)
        for text in range(3):
            there = places < sizes[:, text, None]
            row, place = rows[:, None].expand_as(there)[there], (start[:, None] + places)[there]
            end = start + sizes[:, text]
            tokens[row, place] = self._tokens[triples[:, text]][there]
            tokens[rows, end] = SEP
            if text == 2:
                later[row, place] = later[rows, end] = 1
            start = end + 1
        return tokens, later, torch.arange(shape[1], device=self._device) < whole[:, None]


class _Teacher(nn.Module):  # type: ignore[misc]  # PyTorch need not be installed.
    def __init__(self, home: Path) -> None:
        super().__init__()
        self.encoder = encoder(home)
        width = self.encoder.config.hidden_size
        self.out = nn.Sequential(
            nn.Linear(2 * width, width), nn.Tanh(), nn.Dropout(DROPPED), nn.Linear(width, 1)
        )

    def forward(
        self, tokens: torch.Tensor, later: torch.Tensor, there: torch.Tensor
    ) -> torch.Tensor:
        found = self.encoder(input_ids=tokens, token_type_ids=later, attention_mask=there.long())
        states = found.last_hidden_state
        mean = (states * there[:, :, None]).sum(1) / there.sum(1, keepdim=True)
        return self.out(torch.cat([states[:, 0], mean], 1))[:, 0]


def drawn(shares: Array, device: str) -> torch.Tensor:
    """Return bounds from which triples are drawn, each with its share."""
    bounds = torch.cumsum(torch.tensor(shares, dtype=torch.float64, device=device), 0)
    return bounds / bounds[-1]


def draw(bounds: torch.Tensor, count: int) -> torch.Tensor:
    """Return some positions by chance."""
    chance = torch.rand(count, dtype=torch.float64, device=bounds.device)
    return torch.searchsorted(bounds, chance).clamp(max=len(bounds) - 1)


def taught(of: Mapping[str, Array], home: Path, seed: int) -> Array:
    """Fit a teacher, and return its sums for all triples, those with an answer first."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    sentences, teacher = Sentences(of, device), _Teacher(home).to(device).train()
    triples = torch.tensor(of["triples"].astype(np.int64), device=device)
    labels = torch.tensor(of["labels"].astype(np.float32), device=device)
    bounds = drawn(of["shares"], device)
    descent = torch.optim.AdamW(teacher.parameters(), lr=RATE, weight_decay=DECAY)
    rates = torch.optim.lr_scheduler.OneCycleLR(descent, RATE, total_steps=STEPS, pct_start=WARMING)
    began = time.time()
    for step in range(1, STEPS + 1):
        at = draw(bounds, BATCH)
        with torch.autocast(device, dtype=torch.bfloat16):
            sums = teacher(*sentences.put(triples[at]))
        loss = functional.binary_cross_entropy_with_logits(sums.float(), labels[at])
        descent.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(teacher.parameters(), NORM_MAX)
        descent.step()
        rates.step()
        if step % SHOWN == 0:
            print(f"teacher {seed}, step {step}: {time.time() - began:.0f} s", flush=True)
    return _answered(teacher.eval(), sentences, np.concatenate([of["triples"], of["compared"]]))


def _answered(teacher: _Teacher, sentences: Sentences, triples: Array) -> Array:
    """Return the sums for some triples; those of one length are read at once."""
    found = np.zeros(len(triples), np.float16)
    order = np.argsort(-sentences.sizes(triples), kind="stable")
    device = next(teacher.parameters()).device
    with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16):
        for at in np.array_split(order, max(1, len(order) // AT_ONCE)):
            some = torch.tensor(triples[at].astype(np.int64), device=device)
            found[at] = teacher(*sentences.put(some)).float().cpu().numpy()
    return found
