"""The fit of the network in `recall/answer_network.py`, with PyTorch, best on a graphics card.

    python -m bench.answer_trainer SAMPLES MODEL_FOLDER OUT.npz

Teachers (`answer_teacher.py`) are fitted to the triples with an answer, and answer all others. The
network learns from both. Samples are arrays (`answer_samples.py`), and nothing of WorldDB is
imported, so the fit can run on another machine.
"""

from __future__ import annotations

import argparse
import lzma
import time
from collections.abc import Iterator, Mapping, Sequence
from math import cos, pi
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import multiprocessing, nn
from torch.nn import functional

from bench.answer_teacher import draw, drawn, taught

SMALL, LAYERS, LAYER_HEADS, HEADS, TOLD, HIDDEN = 64, 1, 4, 2, 48, 64
WORDS = 20, 36, 36  # of a question, an older and a later text
FORMS, FLAGS = 256, 12  # numbers of the vector of a form, and marks of a word
TEACHERS = 2  # whose mean is taken
STEPS, BATCH, RATE, DECAY = 12_000, 512, 3e-3, 0.05
AGAIN = 1.2e-3  # the rate of a fit that goes on from an earlier one
SORTED = 8  # batches drawn at once, so that each has texts of one length
GIVEN = 0.25  # share of a batch: triples with an answer
WARMING, RATE_LEAST, NORM_MAX = 0.1, 1e-6, 1.0
DROPPED, WORDS_DROPPED = 0.1, 0.1  # shares of numbers and of words left out at random
EXCHANGED, NEIGHBOURS = 0.1, 8  # share of words read as one of those most similar to them
SHOWN = 1_000
FAR = -1e4

Array = NDArray[Any]


class _Words:
    """The words of all texts on the device of the fit."""

    def __init__(self, of: Mapping[str, Array], device: str) -> None:
        sizes = of["sizes"].astype(np.int64)
        table = np.zeros((len(sizes), max(WORDS)), np.int64)
        there = np.arange(max(WORDS)) < sizes[:, None]
        table[there] = of["ids"]

        def put(rows: Array) -> torch.Tensor:
            return torch.tensor(rows, device=device)

        self.sizes, known = put(sizes), put(there)
        self.forms = put(of["forms"].astype(np.int64)[table]) * known
        self.stems = put(of["stems"].astype(np.int64)[table]) * known
        self.flags = put(of["flags"].astype(np.float32)[table]) * known[:, :, None]
        vectors = put(of["vectors"].astype(np.float32) * of["scales"])
        lengths = vectors.norm(dim=1, keepdim=True)
        self.units, self.lengths = vectors / (lengths + 1e-6), (lengths / 10).clamp(0, 3)
        near = [(it @ self.units.T).topk(NEIGHBOURS + 1, dim=1) for it in self.units.split(1_000)]
        self.similar = torch.cat([it.indices[:, 1:] for it in near])


class _Read(NamedTuple):
    small: torch.Tensor
    units: torch.Tensor
    stems: torch.Tensor
    there: torch.Tensor


class _Layer(nn.Module):  # type: ignore[misc]  # PyTorch need not be installed.
    """Mixes the words of one text by attention, with what their distance counts."""

    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(SMALL), nn.LayerNorm(SMALL)
        self.qkv, self.o = nn.Linear(SMALL, 3 * SMALL), nn.Linear(SMALL, SMALL)
        self.i, self.f = nn.Linear(SMALL, 2 * SMALL), nn.Linear(2 * SMALL, SMALL)
        self.pos = nn.Parameter(torch.zeros(LAYER_HEADS, 2, max(WORDS)))
        self.drop = nn.Dropout(DROPPED)

    def forward(self, small: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        text, size, width = small.shape
        rows = self.qkv(self.n1(small)).view(text, size, 3, LAYER_HEADS, -1).permute(2, 0, 3, 1, 4)
        place = torch.arange(size, device=small.device)
        apart = place[None] - place[:, None]
        behind, before = (self.pos[:, it][:, apart.abs()] for it in range(2))
        bias = torch.where(apart >= 0, behind, before)[None]
        bias = bias.masked_fill(~there[:, None, None, :], FAR)
        mixed = functional.scaled_dot_product_attention(*rows, attn_mask=bias)
        small = small + self.drop(self.o(mixed.transpose(1, 2).reshape(text, size, width)))
        return small + self.drop(self.f(torch.relu(self.i(self.n2(small)))))


class _Network(nn.Module):  # type: ignore[misc]  # PyTorch need not be installed.
    """The network of `recall/answer_network.py`; its parts have the names of the numbers there."""

    def __init__(self) -> None:
        super().__init__()
        self.pr = nn.Linear(FORMS, SMALL, bias=False)
        nn.init.normal_(self.pr.weight, 0, 1 / 16)
        self.fl = nn.Linear(FLAGS + 1, SMALL)
        self.conv = nn.Linear(3 * SMALL, SMALL)
        self.L = nn.ModuleList(_Layer() for _ in range(LAYERS))
        self.qk = nn.ModuleList(
            nn.ModuleList(nn.Linear(SMALL, SMALL, bias=False) for _ in range(2)) for _ in range(1)
        )
        self.nr = nn.Parameter(torch.full((6, HEADS), 4.0))
        self.tell = nn.ModuleList(nn.Linear(5 * SMALL + 4, TOLD) for _ in range(3))
        self.hid = nn.Linear(6 * TOLD, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        self.drop = nn.Dropout(DROPPED)

    def _read(self, of: _Words, texts: torch.Tensor, most: int, drawn: torch.Tensor) -> _Read:
        size = min(most, int(of.sizes[texts].max()))
        forms = of.forms[texts][:, :size]
        if self.training:  # Equal words of a triple are exchanged alike.
            mixed = (forms * 7_919 + drawn * 104_729) % 10_007
            forms = torch.where(
                mixed < EXCHANGED * 10_007, of.similar[forms, mixed % NEIGHBOURS], forms
            )
        place = torch.arange(size, device=texts.device)
        there = place < of.sizes[texts].clamp(max=size)[:, None]
        lengths, seen = of.lengths[forms], there[:, :, None]
        small = self.pr(of.units[forms] * seen * 16) * lengths.clamp(0.2, 1.5)
        if self.training:
            kept = torch.rand(small.shape[:2], device=texts.device) > WORDS_DROPPED
            small = small * kept[:, :, None]
        flags = torch.cat([of.flags[texts][:, :size], lengths], 2)
        small = torch.tanh(small + self.fl(flags)) * seen
        wide = functional.pad(small, (0, 0, 1, 1))
        wide = self.drop(torch.cat([wide[:, :-2], small, wide[:, 2:]], 2))
        small = (small + torch.relu(self.conv(wide))) * seen
        for layer in self.L:
            small = layer(small, there)
        return _Read(small * seen, of.units[forms] * seen, of.stems[texts][:, :size], there)

    def _aligned(self, one: _Read, other: _Read, at: int) -> tuple[torch.Tensor, ...]:
        text, size, width = one.small.shape

        def by_head(values: torch.Tensor) -> torch.Tensor:
            return values.view(text, values.shape[1], HEADS, -1).transpose(1, 2)

        near = one.units @ other.units.transpose(1, 2)
        equal = (one.stems[:, :, None] == other.stems[:, None, :]) & other.there[:, None, :]
        equal = equal & one.there[:, :, None]
        bias = self.nr[at][None, :, None, None] * near[:, None]
        bias = bias.masked_fill(~other.there[:, None, None, :], FAR)
        asking, asked = self.qk[0]
        rows = by_head(asking(one.small)), by_head(asked(other.small)), by_head(other.small)
        aligned = functional.scaled_dot_product_attention(*rows, attn_mask=bias)
        near = near.masked_fill(~other.there[:, None, :], 0).max(2).values.clamp(0, 1)
        aligned = aligned.transpose(1, 2).reshape(text, size, width)
        return aligned, near, equal.any(2).float()

    def forward(self, of: _Words, triples: torch.Tensor) -> torch.Tensor:
        drawn = torch.randint(0, 1_000_000, (len(triples), 1), device=triples.device)
        asked, old, new = (
            self._read(of, triples[:, at], most, drawn) for at, most in enumerate(WORDS)
        )
        found = []
        sides = (new, old, asked), (old, new, asked), (asked, old, new)
        for number, (tell, (one, left, right)) in enumerate(zip(self.tell, sides, strict=True)):
            first, *first_marks = self._aligned(one, left, 2 * number)
            second, *second_marks = self._aligned(one, right, 2 * number + 1)
            products = one.small * first, one.small * second
            marks = torch.stack([*first_marks, *second_marks], 2)
            every = self.drop(torch.cat([one.small, first, second, *products, marks], 2))
            told = torch.relu(tell(every)) * one.there[:, :, None]
            count = one.there.sum(1, keepdim=True) + 3
            found += [told.max(1).values, told.sum(1) / count]
        return self.out(torch.tanh(self.hid(self.drop(torch.cat(found, 1)))))[:, 0]


def numbers(network: nn.Module) -> dict[str, Array]:
    """Return the numbers as `AnswerNetwork` takes them."""
    found = {}
    for name, it in network.state_dict().items():
        values = it.detach().float().cpu().numpy()
        is_matrix = name.endswith(".weight") and values.ndim == 2
        found[name] = (values.T if is_matrix else values).astype(np.float16)
    return found


def _state(name: str, values: Array) -> torch.Tensor:
    """Return numbers as `_Network` takes them."""
    is_matrix = name.endswith(".weight") and values.ndim == 2
    return torch.tensor((values.T if is_matrix else values).astype(np.float32))


class _Draws:
    """Batches of triples: some with an answer, the others with those of the teachers."""

    def __init__(self, of: Mapping[str, Array], sums: Array, device: str) -> None:
        def put(rows: Array) -> torch.Tensor:
            return torch.tensor(rows, device=device)

        chances = 1 / (1 + np.exp(-sums.astype(np.float32)))
        count = len(of["labels"])
        every = np.concatenate([of["triples"], of["compared"]]).astype(np.int64)
        shares = np.concatenate([of["shares"] > 0, of["compared_shares"]])
        self._given = put(every[:count]), put(of["labels"].astype(np.float32))
        self._every = put(every), put(chances.astype(np.float32))
        self._bounds = drawn(of["shares"], device), drawn(shares, device)
        self._sizes = put(of["sizes"].astype(np.float32))

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        given = int(BATCH * SORTED * GIVEN)
        while True:
            one, other = draw(self._bounds[0], given), draw(self._bounds[1], BATCH * SORTED - given)
            triples = torch.cat([self._given[0][one], self._every[0][other]])
            labels = torch.cat([self._given[1][one], self._every[1][other]])
            sizes = self._sizes[triples[:, 1:]].sum(1)
            parts = torch.argsort(sizes + torch.rand_like(sizes)).split(BATCH)
            for at in torch.randperm(len(parts)).tolist():
                yield triples[parts[at]], labels[parts[at]]


def fitted(
    of: Mapping[str, Array], sums: Array, seed: int, start: Mapping[str, Array] | None = None
) -> nn.Module:
    """Return a network that was fitted to samples, and to the mean `sums` of the teachers.

    With `start`, the numbers of an earlier fit, it goes on from there.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    words, network = _Words(of, device), _Network()
    if start is not None:
        network.load_state_dict({name: _state(name, it) for name, it in start.items()})
    network.to(device).train()
    descent = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    began, highest = time.time(), RATE if start is None else AGAIN
    for number, (triples, labels) in enumerate(_Draws(of, sums, device)):
        if number == STEPS:
            break
        for group in descent.param_groups:
            group["lr"] = _rate(number, highest)
        loss = functional.binary_cross_entropy_with_logits(network(words, triples), labels)
        descent.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), NORM_MAX)
        descent.step()
        if (number + 1) % SHOWN == 0:
            print(f"network {seed}, step {number + 1}: {time.time() - began:.0f} s", flush=True)
    return network.eval()


def _rate(number: int, highest: float) -> float:
    warm = WARMING * STEPS
    if number < warm:
        return highest * (number + 1) / warm
    return RATE_LEAST + highest * (1 + cos(pi * (number - warm) / (STEPS - warm))) / 2


def judged(network: nn.Module, of: Mapping[str, Array]) -> None:
    """Print how well the pairs of the blind files are told apart."""
    device = next(network.parameters()).device
    words = _Words(of, device.type)
    for name in sorted(set(of["sources"].tolist()) - {""}):
        at = of["sources"] == name
        triples = torch.tensor(of["triples"][at].astype(np.int64), device=device)
        with torch.no_grad():
            shown(name, network(words, triples).cpu().numpy(), of["labels"][at])


def shown(name: str, sums: Array, labels: Array) -> None:
    """Print the share of updates that are likelier than all but a few decoys."""
    decoys = np.sort(sums[labels == 0])
    cells = []
    for share in (0.01, 0.025, 0.05, 0.1):
        least = decoys[min(len(decoys) - 1, int(np.ceil(len(decoys) * (1 - share))) - 1)]
        cells.append(f"{share:.1%}: {(sums[labels == 1] > least).mean():.3f}")
    print(f"{name:30} updates beside so many decoys: {'  '.join(cells)}", flush=True)


def _teach(job: tuple[Path, Path, int]) -> Array:
    path, home, seed = job
    return taught(loaded(path), home, seed)


def loaded(path: Path) -> dict[str, Array]:
    """Return the arrays of a file of samples."""
    with lzma.open(path) as file, np.load(file) as kept:
        return dict(kept)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("samples", type=Path)
    parser.add_argument("home", type=Path, help="folder with the ONNX file of arctic-embed-s")
    parser.add_argument("out", type=Path)
    parser.add_argument("--sums", type=Path, help="file in which the teachers' answers are kept")
    parser.add_argument("--start", type=Path, help="numbers of an earlier fit, to go on from")

    chosen = parser.parse_args(arguments)
    of = loaded(chosen.samples)
    if chosen.sums and chosen.sums.is_file():
        sums = np.load(chosen.sums)
    else:
        jobs = [(chosen.samples, chosen.home, seed) for seed in range(TEACHERS)]
        with multiprocessing.get_context("spawn").Pool(TEACHERS) as pool:
            sums = np.mean([it.astype(np.float32) for it in pool.map(_teach, jobs)], axis=0)
        if chosen.sums:
            np.save(chosen.sums, sums.astype(np.float16))
    for name in sorted(set(of["sources"].tolist()) - {""}):
        at = np.flatnonzero(of["sources"] == name)
        shown(f"teachers: {name}", sums[at], of["labels"][at])
    start = None
    if chosen.start:
        with np.load(chosen.start) as kept:
            start = dict(kept)
    network = fitted(of, sums, 1, start)
    judged(network, of)
    np.savez(chosen.out, allow_pickle=False, **numbers(network))


if __name__ == "__main__":
    main()
