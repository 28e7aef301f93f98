"""Train the projection of token vectors: PyTorch, on the GPU if there is one.

The model is read from its ONNX file, with its weights as whole numbers made floating point again:
so nothing but that file is needed, and a hundred thousand texts are read in a minute. A projection
is trained as it is used: token by token, with what else is known of each candidate beside it
(`worlddb.recall.ranker`), towards the gold turns and the gold sessions. A small pull keeps it near
where it began. Each is trained several times, and the mean is taken: what chance alone taught one
of them, the others did not learn. All are trained at once, so a batch has a dimension for them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize, softplus
from transformers import BertModel

from bench.onnx_weights import encoder
from worlddb import Weights
from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S
from worlddb.embed.onnx_embedder import DIM, SCALE, OnnxEmbedder, Tokens, WordPiece, says
from worlddb.index.ranking_numbers import SCALARS
from worlddb.recall.ranker import answers, cosines_standing_out, weigh

if TYPE_CHECKING:
    from bench.projection import Question

RATE = 1e-3
PULL = 1e-3
LEFT_OUT = 0.1
"""The share of token vectors that a step does not see."""
BATCH = 8
TIMES = 4
"""How often each projection is trained, with other vectors left out."""
KNOWN = 0.5
"""How much of what else is known counts in training: a projection should not lean on it."""
TOKENS_AT_ONCE = 65_536
COMPARED = 20
PRINCIPAL_OF = 200_000
NEVER = -1e9
WEIGHTS = Weights()


class Trainer:
    """The token vectors of all texts and questions, and what is trained on them."""

    def __init__(self, questions: Sequence[Question], texts: list[str], models_dir: str) -> None:
        torch.backends.cuda.matmul.allow_tf32 = True
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
        self._asked = [self._read_question(model, one) for one in questions]
        self._sets = [self._set_of(one) for one in questions]
        files = [one.file for one in questions]
        # Each file counts the same, however many questions it has.
        self._counts = [len(files) / len(set(files)) / files.count(file) for file in files]
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
        fixed = weigh(found, one.weighed.question.text, at, rest).scores
        near = cosines_standing_out(found.lanes["vector"], SCALARS.lane_company_min)
        meaning = WEIGHTS.vector * near
        sessions = [session for session, _ in one.weighed.places]
        spans = [np.arange(self._starts[n], self._starts[n + 1]) for n in one.texts]
        where = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
        turns = [
            n for n, place in enumerate(one.weighed.places) if place in one.weighed.question.turns
        ]
        given: dict[str, Any] = {
            "known": (KNOWN * fixed).astype(np.float32),
            "meaning": meaning.astype(np.float32),
            "sessions": sessions,
            "worlds": np.unique(sessions, return_inverse=True)[1],
            "before": found.before,
            "answers": answers(found),
            "read": one.read,
            "sizes": [len(span) for span in spans],
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

    def tokens_of(self, number: int, matrix: NDArray[np.float32]) -> tuple[Tokens, list[Tokens]]:
        """Return the token vectors of a question, and of what is read for it, by a projection."""
        asked, given = self._asked[number], self._sets[number]
        turning = torch.tensor(matrix, device=self._device)
        both = torch.cat((asked, self._flat[given["tokens"]].float()))
        rounded = torch.round(normalize(both @ turning, dim=-1) * SCALE).to(torch.int8)
        own, said = np.split(rounded.cpu().numpy(), [len(asked)])
        return own, np.split(said, given["sizes"].cumsum(0)[:-1].cpu().numpy())

    def fitted(self, left_out: Sequence[Set[int]], epochs: int) -> list[NDArray[np.float32]]:
        """Return for each set of questions a projection that was fitted on all the others."""
        torch.manual_seed(1)
        order = random.Random(1)
        start = torch.tensor(self.principal, device=self._device)
        # Every projection several times, side by side.
        turned = torch.zeros(len(left_out) * TIMES, *start.shape, device=self._device)
        turned.requires_grad_()
        optimizer = torch.optim.Adam([turned], lr=RATE)
        numbers = range(len(self._sets))
        steps, done = epochs * math.ceil(len(numbers) / BATCH), 0
        for _ in range(epochs):
            shuffled = order.sample(numbers, len(numbers))
            for at in range(0, len(shuffled), BATCH):
                optimizer.param_groups[0]["lr"] = RATE * (1 - done / steps)
                optimizer.zero_grad()
                for number in shuffled[at : at + BATCH]:
                    learns = [float(number not in unseen) for unseen in left_out]
                    share = torch.tensor(learns, device=self._device).repeat_interleave(TIMES)
                    losses = share * self._loss(number, start + turned)
                    (self._counts[number] / BATCH * losses.sum()).backward()
                (PULL * (turned**2).sum()).backward()
                optimizer.step()
                done += 1
        means = (start + turned).detach().unflatten(0, (len(left_out), TIMES)).mean(1)
        return list(means.cpu().numpy())

    def _loss(self, number: int, matrices: torch.Tensor) -> torch.Tensor:
        """Return for each projection how surprising the gold turns and sessions are."""
        given = self._sets[number]
        scores = _weighed(given, self._late(number, matrices))
        sessions = given["sessions"].expand(len(matrices), -1)
        worlds = torch.zeros(len(matrices), int(sessions.max()) + 1, device=self._device)
        # A session counts by its best turns, the very best most.
        above = torch.exp(2 * (scores - scores.max(-1, keepdim=True).values.detach()))
        worlds = torch.log(worlds.scatter_add(1, sessions, above) + 1e-20) / 2
        loss = _surprise(worlds, given["gold"])
        return loss + _surprise(scores, given["turns"]) if len(given["turns"]) else loss

    def _late(self, number: int, matrices: torch.Tensor) -> torch.Tensor:
        """Return what `late_interaction_scores` gives, before rounding; see there."""
        given = self._sets[number]
        asked = normalize(self._asked[number] @ matrices, dim=-1)
        said = normalize(self._flat[given["tokens"]].float() @ matrices, dim=-1)
        near = asked @ said.transpose(1, 2)
        unseen = torch.rand(len(near), 1, near.shape[2], device=self._device) < LEFT_OUT
        near = near.masked_fill(unseen, 0.0)
        best = torch.zeros(*near.shape[:2], len(given["read"]), device=self._device)
        best = best.scatter_reduce(2, given["where"].expand_as(near), near, "amax")
        above = best - best.mean(-1, keepdim=True)
        read = (above * above.max(-1, keepdim=True).values).sum(1)
        # What is not read is worth as little as the worst that is.
        everything = read.min(-1, keepdim=True).values.expand(-1, len(given["known"]))
        return everything.scatter(1, given["read"].expand_as(read), read)


def _surprise(scores: torch.Tensor, gold: torch.Tensor) -> torch.Tensor:
    """Return how far each that is gold falls short of all that is not, in the mean.

    One that is gold does not compete with another: where all have to be found, both may be first.
    """
    is_gold = torch.zeros(scores.shape[1], dtype=torch.bool, device=scores.device)
    is_gold[gold] = True
    others = torch.logsumexp(scores.masked_fill(is_gold, NEVER), -1, keepdim=True)
    return softplus(others - scores[:, gold]).mean(-1)


def _weighed(given: dict[str, torch.Tensor], late: torch.Tensor) -> torch.Tensor:
    """Return the scores of all candidates, as `weigh` combines them."""
    meaning = given["meaning"] + WEIGHTS.late * _standing_out(late, 0.0)
    stands_out = _standing_out(meaning)
    before, own = given["before"], torch.arange(late.shape[1], device=late.device)
    least = stands_out.min(-1, keepdim=True).values
    earlier = torch.where(before == own, least, stands_out[:, before])
    heard = torch.where(given["answers"], 0.0, _standing_out(earlier))
    worlds = _share_of_world(stands_out, given["worlds"])
    total = given["known"] + meaning + WEIGHTS.world * worlds
    return total - WEIGHTS.opening * heard


def _standing_out(scores: torch.Tensor, usual: float = 1.0) -> torch.Tensor:
    others = max(0, SCALARS.company_min - scores.shape[-1])
    count = scores.shape[-1] + others
    mean = scores.sum(-1, keepdim=True) / count
    squares = ((scores * scores).sum(-1, keepdim=True) + others * usual**2) / count
    return (scores - mean) / torch.sqrt((squares - mean * mean).clamp_min(1e-9))


def _share_of_world(scores: torch.Tensor, worlds: torch.Tensor) -> torch.Tensor:
    """Return for each how far the mean of the best scores in its world stands out."""
    order = torch.argsort(-scores.detach(), stable=True)
    order = order.gather(1, torch.argsort(worlds[order], stable=True))
    sorted_worlds = worlds[order]
    place = torch.arange(scores.shape[1], device=scores.device).expand_as(order)
    is_first = torch.ones_like(order, dtype=torch.bool)
    is_first[:, 1:] = sorted_worlds[:, 1:] != sorted_worlds[:, :-1]
    rank = place - torch.cummax(torch.where(is_first, place, 0), 1).values
    counted = torch.where(rank < SCALARS.world_best, scores.gather(1, order), 0.0)
    sums = torch.zeros(len(scores), int(worlds.max()) + 1, device=scores.device)
    means = sums.scatter_add(1, sorted_worlds, counted) / SCALARS.world_best
    return _standing_out(means)[:, worlds]
