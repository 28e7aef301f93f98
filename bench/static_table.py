"""Train a static table of token vectors, and see whether it beats the one it began with.

    python -m bench.static_table gather FORMAT:FILE … [--wordnet DIR] --out PAIRS
    python -m bench.static_table train PAIRS --models MODELS [--steps 800] [--out TABLE]

`gather` needs no PyTorch. It takes pairs of texts that belong together: questions and their gold
turns, a turn and its answer, a sentence and the rest of its text, and, from the files of WordNet,
words and their glosses. `train` begins with the default table and moves it so that the texts of a
pair come closer than others (contrastive loss over a batch), and so that similarities follow those
of arctic-embed-s (distillation). Each set is left out once, with all its texts and questions, and
searched by the table that was trained on the others. Only those figures count: on its own set a
table of eight million numbers learns by heart. A new table should replace the default one only if
no set that was left out gets worse, and paraphrases get better.
"""

from __future__ import annotations

import argparse
import lzma
import pickle
import random
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from worlddb.evaluate.benchmark_cases import Case
from worlddb.evaluate.data_sets import load_cases

SEED = 7
CHARS_MAX = 1_800  # of a text; a transformer reads no more, and most turns are shorter
CASES_MAX = 70  # of a file: haystacks repeat the same sessions
TOKENS_MAX = 600
BATCH = 2_048
RATE = 1e-3
WARM_UP = 50
TEMPERATURE = 0.05
TEACHER_TEMPERATURE = 0.03
TEACHER = 3.0
"""How much following the teacher counts beside telling pairs apart."""
NEAR = 0.05
"""A text that the teacher finds this much nearer than the pair's own is no wrong answer."""
SPLIT = re.compile(r"(?<=[.!?])\s+")


class PairGatherer:
    """Texts by number, pairs of numbers by source, and pools to search in, by set."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.pools: dict[str, list[tuple[list[int], int, list[int]]]] = defaultdict(list)
        self._random = random.Random(SEED)

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self.texts.setdefault(text.strip()[:CHARS_MAX], len(self.texts))

    def add_case(self, form: str, case: Case) -> None:
        """Take the pairs of a conversation, and its questions with what they are asked of."""
        pool: list[int] = []
        places: dict[tuple[int, int], int] = {}
        for session_place, session in enumerate(case.sessions):
            said = [self.number(f"{turn.speaker}: {turn.text}") for turn in session.turns]
            self.pairs[f"{form} turns"] += pairwise(said)
            for place, turn in enumerate(session.turns):
                places[session_place, place] = len(pool)
                pool.append(said[place])
                self._add_sentence(form, turn.text)
        for question in case.questions:
            gold = [places[place] for place in question.turns]
            if gold:
                asked = self.number(question.text)
                self.pools[form].append((pool, asked, gold))
                self.pairs[f"{form} questions"] += [(asked, pool[place]) for place in gold]

    def _add_sentence(self, form: str, text: str) -> None:
        """Pair a sentence with the rest of its text, for one text of four."""
        sentences = SPLIT.split(text)
        if len(sentences) > 1 and self._random.random() < 0.25:
            one = self._random.choice(sentences)
            rest = text.replace(one, "", 1).strip()
            if one.strip() and rest:
                self.pairs[f"{form} sentences"].append((self.number(one), self.number(rest)))

    def add_wordnet(self, folder: Path) -> None:
        """Pair a word of each synset with its gloss, and with another word of the synset."""
        for part in ("noun", "verb", "adj", "adv"):
            for line in (folder / f"data.{part}").read_text(encoding="latin-1").splitlines():
                head, _, gloss = line.partition("|")
                if line.startswith("  ") or not gloss.strip():
                    continue
                cells = head.split()
                names = (cells[4 + 2 * place] for place in range(int(cells[3], 16)))
                words = [name.replace("_", " ").split("(")[0] for name in names]
                self._random.shuffle(words)
                meaning = self.number(gloss.split(";")[0])
                self.pairs["wordnet glosses"].append((self.number(words[0]), meaning))
                if len(words) > 1:
                    pair = (self.number(words[0]), self.number(words[1]))
                    self.pairs["wordnet words"].append(pair)


def gather(files: list[str], wordnet: Path | None, out: Path) -> None:
    """Write the pairs of some benchmark files."""
    found = PairGatherer()
    for given in files:
        form, _, path = given.partition(":")
        for number, case in enumerate(load_cases(path, form)):
            if number == CASES_MAX and form == "longmemeval":
                break
            found.add_case(form, case)
    if wordnet is not None:
        found.add_wordnet(wordnet)
    with lzma.open(out, "wb") as file:
        pickle.dump((list(found.texts), dict(found.pairs), dict(found.pools)), file)


class TableTrainer:
    """The texts as tokens, the teacher's vectors of them, and what is trained on them."""

    def __init__(self, given: Path, models: Path) -> None:
        import torch

        from worlddb.embed import embedder

        with lzma.open(given) as file:
            texts, self.pairs, self.pools = pickle.load(file)
        self.torch, self.device = torch, "cuda" if torch.cuda.is_available() else "cpu"
        tokenizer, table = embedder.loaded_model()
        ids = [tokenizer.encode(text)[:TOKENS_MAX] for text in texts]
        self.lengths = torch.tensor([len(one) for one in ids], device=self.device)
        self.starts = torch.cumsum(self.lengths, 0) - self.lengths
        self.flat = torch.tensor(np.concatenate(ids).astype(np.int64), device=self.device)
        self.first = torch.tensor(table.astype(np.float32), device=self.device)
        self.asked, self.told = self._teach(texts, models)

    def _teach(self, texts: list[str], models: Path) -> tuple[Any, Any]:
        """Return the teacher's vector of each text as a question, and as an answer."""
        from bench.onnx_weights import encoder
        from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S
        from worlddb.embed.onnx_embedder import WordPiece

        torch, home = self.torch, models / ARCTIC_EMBED_S.name
        pieces = (home / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        words = WordPiece(pieces, tokens_max=ARCTIC_EMBED_S.tokens_max)
        exact = torch.float16 if self.device == "cuda" else torch.float32
        model = encoder(home).to(self.device, exact)
        out = []
        for prefix in (ARCTIC_EMBED_S.query_prefix, ""):
            ids = [words.encode(prefix + text) for text in texts]
            order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
            vectors = torch.zeros(len(ids), 384, dtype=exact, device=self.device)
            for at in range(0, len(order), 256):
                batch = order[at : at + 256]
                width = len(ids[batch[-1]])
                rows = torch.tensor([ids[n] + [0] * (width - len(ids[n])) for n in batch])
                length = torch.tensor([len(ids[n]) for n in batch])[:, None]
                mask = (torch.arange(width)[None] < length).long()
                with torch.no_grad():
                    said = model(rows.to(self.device), attention_mask=mask.to(self.device))
                heads = torch.nn.functional.normalize(said[0][:, 0].float(), dim=-1)
                vectors[batch] = heads.to(exact)
            out.append(vectors)
        return out[0], out[1]

    def vectors(self, table: Any, texts: Any) -> Any:
        """Return the unit vector of each text by a table."""
        torch, length = self.torch, self.lengths[texts]
        begins = torch.cumsum(length, 0) - length
        places = torch.arange(int(length.sum()), device=self.device)
        places = places - torch.repeat_interleave(begins - self.starts[texts], length)
        sums = torch.nn.functional.embedding_bag(self.flat[places], table, begins, mode="sum")
        return torch.nn.functional.normalize(sums, dim=-1)

    def train(self, left_out: str, steps: int, seed: int = SEED) -> Any:
        """Return a table that was trained without one set."""
        torch, rng = self.torch, np.random.default_rng(seed)
        given = {name: one for name, one in self.pairs.items() if not name.startswith(left_out)}
        names = list(given)
        # A source counts by the root of its size: none drowns the others.
        shares = np.array([len(given[name]) ** 0.5 for name in names])
        table = self.first.clone().requires_grad_(True)
        stepper = torch.optim.Adam([table], lr=RATE, betas=(0.9, 0.99))
        for step in range(steps):
            rate = RATE * min(1.0, (step + 1) / WARM_UP) * (1 - step / steps)
            stepper.param_groups[0]["lr"] = rate
            counts = rng.multinomial(BATCH, shares / shares.sum())
            pairs = [
                given[name][place]
                for name, count in zip(names, counts, strict=True)
                for place in rng.integers(0, len(given[name]), count)
            ]
            loss = self._loss(table, {told: asked for asked, told in pairs})
            stepper.zero_grad()
            loss.backward()
            stepper.step()
        return table.detach()

    def _loss(self, table: Any, asked_of: dict[int, int]) -> Any:
        torch, loss = self.torch, self.torch.nn.functional
        told = torch.tensor(list(asked_of), device=self.device)
        asked = torch.tensor(list(asked_of.values()), device=self.device)
        scores = self.vectors(table, asked) @ self.vectors(table, told).T / TEMPERATURE
        taught = self.asked[asked].float() @ self.told[told].float().T
        own = torch.eye(len(told), dtype=torch.bool, device=self.device)
        is_right = (asked[:, None] == asked[None]) | (taught > taught.diagonal()[:, None] + NEAR)
        apart = scores.masked_fill(is_right & ~own, -1e4)
        target = torch.arange(len(told), device=self.device)
        wanted = loss.softmax(taught / TEACHER_TEMPERATURE, 1)
        follows = loss.kl_div(loss.log_softmax(scores, 1), wanted, reduction="batchmean")
        pairs = loss.cross_entropy(apart, target) + loss.cross_entropy(apart.T, target)
        return pairs + TEACHER * follows

    def recall(self, table: Any, form: str, k: int = 10) -> float:
        """Return the share of gold among the first k by the cosine alone."""
        shares = []
        for pool, asked, gold in self.pools[form]:
            numbers = self.torch.tensor([asked, *pool], device=self.device)
            with self.torch.no_grad():
                vectors = self.vectors(table, numbers)
            best = (vectors[1:] @ vectors[0]).topk(min(k, len(pool))).indices.tolist()
            shares.append(np.mean([place in best for place in gold]))
        return float(np.mean(shares))


def train(given: Path, models: Path, steps: int, out: Path | None) -> None:
    """Print what each set gives when it is left out; write the table that was trained on all."""
    trainer = TableTrainer(given, models)
    print("| set | default table | trained on the other sets |\n|---|---|---|")
    for form in trainer.pools:
        made = trainer.train(form, steps)
        before, after = trainer.recall(trainer.first, form), trainer.recall(made, form)
        print(f"| {form}, recall@10 | {before:.3f} | {after:.3f} |", flush=True)
    if out is not None:
        np.save(out, trainer.train("(none)", steps).cpu().numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    gathers = steps.add_parser("gather")
    gathers.add_argument("files", nargs="+", metavar="FORMAT:FILE")
    gathers.add_argument("--wordnet", type=Path, help="the folder of WordNet's data.noun etc.")
    gathers.add_argument("--out", type=Path, required=True)
    trains = steps.add_parser("train")
    trains.add_argument("pairs", type=Path)
    trains.add_argument("--models", type=Path, required=True, help="the folder with arctic-embed-s")
    trains.add_argument("--steps", type=int, default=800)
    trains.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.step == "gather":
        gather(args.files, args.wordnet, args.out)
    else:
        train(args.pairs, args.models, args.steps, args.out)


if __name__ == "__main__":
    main()
