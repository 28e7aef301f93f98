"""Train the projection of token vectors: PyTorch, on the GPU if there is one.

The model is read from its ONNX file, with its weights as whole numbers made floating point again:
so nothing but that file is needed, and a hundred thousand texts are read in a minute. A projection
is trained as it is used: token by token, with what else is known of each candidate beside it
(`worlddb.read.weigh`), towards the gold turns and the gold sessions. A small pull keeps it near
where it began.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel

from worlddb import Weights
from worlddb.embed.catalog import ARCTIC_EMBED_S
from worlddb.embed.late import DIM, SCALE, Tokens, says
from worlddb.embed.onnx import OnnxEmbedder
from worlddb.embed.wordpiece import WordPiece
from worlddb.read.weigh import (
    FOUND_COMPANY,
    SHARE_OF,
    USUAL_SPREAD,
    answers,
    standing_out,
    weigh,
)

if TYPE_CHECKING:
    from bench.projecting import Question

RATE = 1e-3
PULL = 1e-3
LEFT_OUT = 0.1
"""The share of token vectors that a step does not see."""
BATCH = 8
TOKENS_AT_ONCE = 65_536
COMPARED = 20
PRINCIPAL_OF = 200_000
WEIGHTS = Weights()


def encoder(home: Path) -> BertModel:
    """Return the model in an ONNX file of 8-bit weights, in floating point."""
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


class Trainer:
    """The token vectors of all texts and questions, and what is trained on them."""

    def __init__(self, questions: Sequence[Question], texts: list[str], models_dir: str) -> None:
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._exact = torch.float16 if self._device == "cuda" else torch.float32
        home = Path(models_dir) / ARCTIC_EMBED_S.name
        pieces = (home / "vocab.txt").read_bytes().decode().removesuffix("\n").split("\n")
        self._words = WordPiece(pieces, tokens_max=ARCTIC_EMBED_S.tokens_max)
        self._says = torch.tensor([says(piece) for piece in pieces], device=self._device)
        model = encoder(home).to(self._device, self._exact)
        vectors = self._read(model, [self._words.encode(text) for text in texts])
        self._starts = np.r_[0, np.cumsum([len(one) for one in vectors])]
        self._flat = torch.cat(vectors)
        self._asked = {id(one): self._read_question(model, one) for one in questions}
        self._sets = {id(one): self._set_of(one) for one in questions}
        files = [one.file for one in questions]
        self._counts = {file: len(files) / len(set(files)) / files.count(file) for file in files}
        self.likeness = self._likeness(texts, models_dir)

    def _read(self, model: BertModel, ids: list[list[int]]) -> list[torch.Tensor]:
        """Return the vectors of what says something in each text, the longest texts last."""
        out: list[torch.Tensor] = [torch.empty(0)] * len(ids)
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        while order:
            most = max(1, TOKENS_AT_ONCE // len(ids[order[min(len(order), 2_000) - 1]]))
            batch, order = order[:most], order[most:]
            longest = len(ids[batch[-1]])
            rows = torch.tensor([ids[n] + [0] * (longest - len(ids[n])) for n in batch])
            rows = rows.to(self._device)
            lengths = torch.tensor([len(ids[n]) for n in batch], device=self._device)[:, None]
            place = torch.arange(longest, device=self._device)[None]
            with torch.no_grad():
                states = model(input_ids=rows, attention_mask=(place < lengths).long())[0]
            states = normalize(states.float(), dim=-1).to(self._exact)
            kept = self._says[rows] & (place > 0) & (place < lengths - 1)
            for number, row, mask in zip(batch, states, kept, strict=True):
                out[number] = row[mask]
        return out

    def _read_question(self, model: BertModel, one: Question) -> torch.Tensor:
        prefix = ARCTIC_EMBED_S.query_prefix
        ids = self._words.encode(prefix + one.weighed.question.text)
        with torch.no_grad():
            states = model(input_ids=torch.tensor([ids], device=self._device))[0][0]
        return normalize(states.float(), dim=-1)[len(self._words.encode(prefix)) - 1 : -1]

    def _set_of(self, one: Question) -> dict[str, torch.Tensor]:
        """Return everything but the token vectors that a question is trained with."""
        found, at = one.weighed.found, one.weighed.asked_at
        rest = replace(WEIGHTS, vector=0.0, world=0.0, opening=0.0, late=0.0)
        fixed = weigh(found, one.weighed.question.text, None, at, rest).scores
        near = standing_out(found.lanes["vector"], USUAL_SPREAD["vector"], FOUND_COMPANY)
        meaning = WEIGHTS.vector * near
        sessions = [session for session, _ in one.weighed.places]
        spans = [np.arange(self._starts[n], self._starts[n + 1]) for n in one.texts]
        where = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
        turns = [
            n for n, place in enumerate(one.weighed.places) if place in one.weighed.question.turns
        ]
        given: dict[str, Any] = {
            "fixed": fixed.astype(np.float32),
            "meaning": meaning.astype(np.float32),
            "sessions": sessions,
            "worlds": np.unique(sessions, return_inverse=True)[1],
            "before": found.before,
            "answers": answers(found),
            "read": one.read,
            "tokens": np.concatenate(spans),
            "where": where,
            "turns": turns,
            "gold": sorted(one.weighed.question.sessions),
        }
        return {name: torch.tensor(value, device=self._device) for name, value in given.items()}

    def _likeness(self, texts: list[str], models_dir: str) -> float:
        """Return how near the vectors are to those that the engine makes of the same texts."""
        engine = OnnxEmbedder(ARCTIC_EMBED_S, models_dir=models_dir)
        cosines = []
        for number in random.Random(1).sample(range(len(texts)), COMPARED):
            said, vectors = engine.embed_tokens([texts[number]], "document")[0]
            kept = vectors[[place for place, piece in enumerate(said) if says(piece)]]
            mine = self._flat[self._starts[number] : self._starts[number + 1]]
            cosines.append((mine.float().cpu().numpy() * kept).sum(axis=1).mean())
        return float(np.mean(cosines))

    @cached_property
    def principal(self) -> NDArray[np.float32]:
        """The directions in which token vectors differ most, the strongest first."""
        step = max(1, len(self._flat) // PRINCIPAL_OF)
        some = self._flat[::step].double()
        directions: NDArray[np.float32] = (
            torch.linalg.eigh(some.T @ some).eigenvectors.flip(1)[:, :DIM].float().cpu().numpy()
        )
        return directions

    def tokens_of(self, one: Question, matrix: NDArray[np.float32]) -> tuple[Tokens, list[Tokens]]:
        """Return the token vectors of a question, and of what is read for it, by a projection."""
        given = self._sets[id(one)]
        turning = torch.tensor(matrix, device=self._device)
        both = torch.cat((self._asked[id(one)], self._flat[given["tokens"]].float()))
        rounded = torch.round(normalize(both @ turning, dim=-1) * SCALE).to(torch.int8)
        asked, said = np.split(rounded.cpu().numpy(), [len(self._asked[id(one)])])
        sizes = [self._starts[n + 1] - self._starts[n] for n in one.texts]
        return asked, np.split(said, np.cumsum(sizes)[:-1])

    def fitted(self, questions: Sequence[Question], epochs: int) -> NDArray[np.float32]:
        """Return a projection fitted on some questions; the same ones give the same."""
        torch.manual_seed(1)
        order = random.Random(1)
        start = torch.tensor(self.principal, device=self._device)
        turned = torch.zeros_like(start, requires_grad=True)
        optimizer = torch.optim.Adam([turned], lr=RATE)
        steps, done = epochs * math.ceil(len(questions) / BATCH), 0
        for _ in range(epochs):
            shuffled = order.sample(list(questions), len(questions))
            for at in range(0, len(shuffled), BATCH):
                optimizer.param_groups[0]["lr"] = RATE * (1 - done / steps)
                optimizer.zero_grad()
                for one in shuffled[at : at + BATCH]:
                    (self._counts[one.file] / BATCH * self._loss(one, start + turned)).backward()
                (PULL * (turned**2).sum()).backward()
                optimizer.step()
                done += 1
        found: NDArray[np.float32] = (start + turned).detach().cpu().numpy()
        return found

    def _loss(self, one: Question, matrix: torch.Tensor) -> torch.Tensor:
        """Return how surprising the gold turns and sessions are, given the scores."""
        given = self._sets[id(one)]
        scores = _weighed(given, self._late(one, matrix))
        sessions = given["sessions"]
        worlds = torch.zeros(int(sessions.max()) + 1, device=self._device)
        # A session counts by its best turns, the very best most.
        worlds = worlds.index_add(0, sessions, torch.exp(2 * (scores - scores.max().detach())))
        loss = -torch.log_softmax(torch.log(worlds + 1e-20) / 2, 0)[given["gold"]].mean()
        if len(given["turns"]):
            loss = loss - torch.log_softmax(scores, 0)[given["turns"]].mean()
        return loss

    def _late(self, one: Question, matrix: torch.Tensor) -> torch.Tensor:
        """Return what `read_closely` gives, before rounding; see there."""
        given = self._sets[id(one)]
        asked = normalize(self._asked[id(one)] @ matrix, dim=-1)
        said = normalize(self._flat[given["tokens"]].float() @ matrix, dim=-1)
        near = asked @ said.T
        unseen = torch.rand(near.shape[1], device=self._device) < LEFT_OUT
        near = near.masked_fill(unseen[None], 0.0)
        best = torch.zeros(len(asked), len(given["read"]), device=self._device)
        places = given["where"][None].expand(len(asked), -1)
        best = best.scatter_reduce(1, places, near, "amax", include_self=True)
        above = best - best.mean(1, keepdim=True)
        read = (above * above.max(1, keepdim=True).values).sum(0)
        # What is not read is worth as little as the worst that is.
        return read.min().expand(len(given["fixed"])).scatter(0, given["read"], read)


def _weighed(given: dict[str, torch.Tensor], late: torch.Tensor) -> torch.Tensor:
    """Return the scores of all candidates, as `weigh` combines them."""
    meaning = given["meaning"] + WEIGHTS.late * _standing_out(late, 0.0)
    stands_out = _standing_out(meaning)
    before, own = given["before"], torch.arange(len(meaning), device=meaning.device)
    earlier = torch.where(before == own, stands_out.min(), stands_out[before])
    heard = torch.where(given["answers"], 0.0, _standing_out(earlier))
    worlds = _share_of_world(stands_out, given["worlds"])
    total = given["fixed"] + meaning + WEIGHTS.world * worlds
    return total - WEIGHTS.opening * heard


def _standing_out(scores: torch.Tensor, usual: float = 1.0) -> torch.Tensor:
    others = max(0, 50 - len(scores))
    mean = scores.sum() / (len(scores) + others)
    squares = ((scores * scores).sum() + others * usual**2) / (len(scores) + others)
    return (scores - mean) / torch.sqrt((squares - mean * mean).clamp_min(1e-9))


def _share_of_world(scores: torch.Tensor, worlds: torch.Tensor) -> torch.Tensor:
    """Return for each how far the mean of the best scores in its world stands out."""
    order = torch.argsort(-scores.detach(), stable=True)
    order = order[torch.argsort(worlds[order], stable=True)]
    place = torch.arange(len(order), device=scores.device)
    is_first = torch.ones(len(order), dtype=torch.bool, device=scores.device)
    is_first[1:] = worlds[order][1:] != worlds[order][:-1]
    rank = place - torch.cummax(torch.where(is_first, place, 0), 0).values
    counted = torch.where(rank < SHARE_OF, scores[order], 0.0)
    sums = torch.zeros(int(worlds.max()) + 1, device=scores.device)
    return _standing_out(sums.index_add(0, worlds[order], counted) / SHARE_OF)[worlds]
