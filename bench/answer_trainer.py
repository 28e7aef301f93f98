"""The fit of the networks in `recall/answer_network.py`, with PyTorch, on a graphics card if any.

Samples are arrays (`Samples`), so a fit needs neither a store nor the text. `fitted` returns the
numbers of one network; `answer_network.npz` has those of some, stacked.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

SMALL, TOLD, HIDDEN = 32, 24, 32  # numbers of a word, of a compared word, of a pair
EPOCHS, BATCH, RATE, DECAY = 12, 512, 4e-3, 0.1
DROPPED, WORDS_DROPPED = 0.4, 0.2  # shares of numbers and of words left out at random
EXCHANGED, NEIGHBOURS = 0.2, 8  # share of words read as one of those most similar to them
KIND_SHARE = 0.5  # of the loss: why a later text is no update, which is not used afterwards
LAST_STEPS, LAST_RATE, LAST_DROPPED = 5_000, 3e-3, 0.2  # of the second fit, of the last layers
WARMING = 0.15  # share of the steps in which the rate rises


class Samples(NamedTuple):
    """Texts as words, and triples as texts; the kinds of triples as numbers.

    `words`, `stems` and `flags` have a row a text, filled up with zeros behind `sizes` words.
    `vectors` are those of the words. The `unrelated` triples are for the
    second fit only.
    """

    vectors: NDArray[np.float32]
    words: NDArray[np.int64]
    stems: NDArray[np.int64]
    flags: NDArray[np.float32]
    sizes: NDArray[np.int64]
    triples: NDArray[np.int64]
    signs: NDArray[np.float32]
    labels: NDArray[np.float32]
    kinds: NDArray[np.int64]
    shares: NDArray[np.float32]
    unrelated: NDArray[np.bool_]


class _Data:
    """Samples on the device of the fit."""

    def __init__(self, samples: Samples, device: str) -> None:
        put = {name: torch.tensor(it, device=device) for name, it in samples._asdict().items()}
        self.words, self.stems, self.flags, self.sizes = (
            put[name] for name in ("words", "stems", "flags", "sizes")
        )
        self.triples, self.signs, self.labels = (
            put[name] for name in ("triples", "signs", "labels")
        )
        self.kinds, self.shares, self.unrelated = (
            put[name] for name in ("kinds", "shares", "unrelated")
        )
        lengths = put["vectors"].norm(dim=1, keepdim=True)
        self.units = put["vectors"] / (lengths + 1e-6)
        self.lengths = (lengths / 10).clamp(0, 3)
        rows = [(it @ self.units.T).topk(NEIGHBOURS + 1, dim=1) for it in self.units.split(1_000)]
        self.similar = torch.cat([it.indices[:, 1:] for it in rows])


class _Read(NamedTuple):
    small: torch.Tensor
    units: torch.Tensor
    stems: torch.Tensor
    there: torch.Tensor


class _Network(nn.Module):  # type: ignore[misc]  # PyTorch need not be installed.
    """The network of `recall/answer_network.py`, with an output for the kind of a triple."""

    def __init__(self, flags: int, signs: int, kinds: int) -> None:
        super().__init__()
        self.project = nn.Linear(256, SMALL, bias=False)
        nn.init.normal_(self.project.weight, 0, 1 / 16)
        self.flags = nn.Linear(flags + 1, SMALL)
        self.around = nn.Linear(3 * SMALL, SMALL)
        self.asking = nn.Linear(SMALL, SMALL, bias=False)
        self.asked = nn.Linear(SMALL, SMALL, bias=False)
        self.nearness = nn.Parameter(torch.full((6,), 4.0))
        self.tell = nn.ModuleList(nn.Linear(5 * SMALL + 4, TOLD) for _ in range(3))
        self.hidden = nn.Linear(6 * TOLD + signs, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        self.kind = nn.Linear(HIDDEN, kinds)
        self.drop = nn.Dropout(DROPPED)

    def _read(self, data: _Data, texts: torch.Tensor, drawn: torch.Tensor | None) -> _Read:
        sizes = data.sizes[texts]
        size = int(sizes.max())
        words = data.words[texts][:, :size]
        there = torch.arange(size, device=words.device)[None] < sizes[:, None]
        if drawn is not None:  # Equal words of a triple are exchanged alike.
            mixed = (words * 7_919 + drawn[:, None] * 104_729) % 10_007
            other = data.similar[words, mixed % NEIGHBOURS]
            words = torch.where(mixed < EXCHANGED * 10_007, other, words)
        units, lengths = data.units[words], data.lengths[words]
        small = self.project(units * 16) * lengths.clamp(0.2, 1.5)
        if drawn is not None:
            kept = torch.rand(small.shape[:2], device=small.device) > WORDS_DROPPED
            small = small * kept[..., None]
        flags = torch.cat([data.flags[texts][:, :size], lengths], -1)
        small = torch.tanh(small + self.flags(flags)) * there[..., None]
        wide = functional.pad(small, (0, 0, 1, 1))
        wide = self.drop(torch.cat([wide[:, :-2], wide[:, 1:-1], wide[:, 2:]], -1))
        small = (small + torch.relu(self.around(wide))) * there[..., None]
        return _Read(small, units * there[..., None], data.stems[texts][:, :size], there)

    def _aligned(self, one: _Read, other: _Read, at: int) -> tuple[torch.Tensor, ...]:
        near = one.units @ other.units.transpose(1, 2)
        equal = (one.stems[:, :, None] == other.stems[:, None, :]) & other.there[:, None, :]
        equal = equal & one.there[:, :, None]
        score = self.asking(one.small) @ self.asked(other.small).transpose(1, 2) / sqrt(SMALL)
        score = score + self.nearness[at] * near
        score = score.masked_fill(~other.there[:, None, :], -1e4)
        near = near.masked_fill(~other.there[:, None, :], 0)
        kernels = near.max(-1).values.clamp(0, 1), equal.float().max(-1).values
        return score.softmax(-1) @ other.small, *kernels

    def told(self, data: _Data, at: torch.Tensor) -> torch.Tensor:
        """Return what the words of each triple say, and its signs."""
        drawn = None
        if self.training:
            drawn = torch.randint(0, 1_000_000, (len(at),), device=at.device)
        asked, old, new = (self._read(data, data.triples[at, place], drawn) for place in range(3))
        found = []
        sides = (new, old, asked), (old, new, asked), (asked, old, new)
        for number, (tell, (one, left, right)) in enumerate(zip(self.tell, sides, strict=True)):
            first, *first_marks = self._aligned(one, left, 2 * number)
            second, *second_marks = self._aligned(one, right, 2 * number + 1)
            products = one.small * first, one.small * second
            marks = torch.stack([*first_marks, *second_marks], -1)
            every = torch.cat([one.small, first, second, *products, marks], -1)
            told = torch.relu(tell(self.drop(every))) * one.there[..., None]
            count = one.there.sum(1, keepdim=True) + 3
            found += [told.max(1).values, told.sum(1) / count]
        return torch.cat([*found, data.signs[at]], -1)

    def forward(self, told: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.tanh(self.hidden(self.drop(told)))
        return self.out(hidden)[:, 0], self.kind(hidden)

    def numbers(self) -> dict[str, NDArray[np.float16]]:
        """Return the numbers as `AnswerNetwork` takes them, of one network."""
        tell = [(it.weight.T, it.bias) for it in self.tell]
        found = {
            "project": self.project.weight.T,
            "flags": self.flags.weight.T,
            "flags_bias": self.flags.bias[None],
            "around": self.around.weight.T,
            "around_bias": self.around.bias[None],
            "asking": self.asking.weight.T / sqrt(SMALL),
            "asked": self.asked.weight.T,
            "nearness": self.nearness,
            "tell": torch.stack([weight for weight, _ in tell]),
            "tell_bias": torch.stack([bias for _, bias in tell]),
            "hidden": self.hidden.weight.T,
            "hidden_bias": self.hidden.bias[None],
            "out": self.out.weight.T,
            "out_bias": self.out.bias,
        }
        return {name: it.detach().cpu().numpy().astype(np.float16) for name, it in found.items()}


def fitted(samples: Samples, used: NDArray[np.bool_], seed: int) -> dict[str, NDArray[np.float16]]:
    """Return the numbers of a network that was fitted to some samples."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    data = _Data(samples, device)
    network = _Network(samples.flags.shape[2], samples.signs.shape[1], int(samples.kinds.max()) + 1)
    network.to(device).train()
    places = torch.tensor(np.flatnonzero(used), device=device)
    shares = data.shares[places] * ~data.unrelated[places]
    steps = EPOCHS * max(1, int((shares > 0).sum()) // BATCH)
    descent = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    rates = torch.optim.lr_scheduler.OneCycleLR(descent, RATE, total_steps=steps, pct_start=WARMING)
    for _ in range(steps):
        at = places[torch.multinomial(shares, BATCH, replacement=True)]
        sums, kinds = network(network.told(data, at))
        loss = functional.binary_cross_entropy_with_logits(sums, data.labels[at])
        loss = loss + KIND_SHARE * functional.cross_entropy(kinds, data.kinds[at])
        descent.zero_grad(set_to_none=True)
        loss.backward()
        descent.step()
        rates.step()
    weigh_again(network, data, places)
    return network.numbers()


def weigh_again(network: _Network, data: _Data, places: torch.Tensor) -> None:
    """Fit the last two layers again, with updates of other lines as later texts, too.

    The words are read as before: with these triples from the start, they would be learned by heart.
    """
    network.eval()
    with torch.no_grad():
        told = torch.cat([network.told(data, at) for at in places.split(BATCH)])
    network.train()
    network.drop.p = LAST_DROPPED
    last = [*network.hidden.parameters(), *network.out.parameters()]
    descent = torch.optim.AdamW(last, lr=LAST_RATE, weight_decay=DECAY)
    rates = torch.optim.lr_scheduler.OneCycleLR(descent, LAST_RATE, total_steps=LAST_STEPS)
    shares, labels = data.shares[places], data.labels[places]
    for _ in range(LAST_STEPS):
        at = torch.multinomial(shares, 2 * BATCH, replacement=True)
        loss = functional.binary_cross_entropy_with_logits(network(told[at])[0], labels[at])
        descent.zero_grad(set_to_none=True)
        loss.backward()
        descent.step()
        rates.step()
    network.eval()
