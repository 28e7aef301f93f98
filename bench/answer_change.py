"""Fit the comparison of two texts, and judge it: does the later one answer the question anew?

    python -m bench.answer_change --blind              what is not fitted to, in whole stores
    python -m bench.answer_change --write              fits, and writes the numbers
    python -m bench.answer_change --prepare SAMPLES    writes what a fit elsewhere needs
    python -m bench.answer_change --take NUMBERS       writes the numbers of a fit elsewhere

The fit is that of `answer_trainer.py`. It needs PyTorch, and a graphics card to be done in minutes,
and the model arctic-embed-s (`worlddb models install arctic-embed-s`), from which the teacher
starts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.answer_samples import samples
from bench.answer_triples import BLIND, DATA, FITTED, Triple, blind, topics
from worlddb import Memory, RecallSettings
from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S, default_models_dir, model_folder
from worlddb.recall import answer_network

FOLDER = Path(answer_network.__file__).parent
SETTINGS, NUMBERS = FOLDER / "answer_network.json", FOLDER / "answer_network.npz"
COMMAND = "python -m bench.answer_change --write"
SEED = 7  # What is composed and drawn, and the resamples of the intervals.
ENOUGH = 0.5
"""From which probability on a pair counts, chosen with the first four blind files in sight."""
STORE_TRIPLES, STORE_FILLERS = 10, 20  # in each store of the measure
RESAMPLES = 1_000  # for intervals of 95 %

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def prepare(path: Path) -> None:
    """Write the samples to a file."""
    vocabulary = Path(model_folder(ARCTIC_EMBED_S, default_models_dir())) / "vocab.txt"
    samples(random.Random(SEED), vocabulary).save(path)


def fit(folder: Path) -> Path:
    """Fit to all samples; return the file of the numbers."""
    from bench.answer_trainer import main as train  # PyTorch is needed for the fit alone.

    prepare(folder / "samples")
    home = model_folder(ARCTIC_EMBED_S, default_models_dir())
    train([str(folder / "samples"), str(home), str(folder / "numbers.npz")])
    return folder / "numbers.npz"


def write(path: Path) -> None:
    """Write the numbers of a fit, and where they come from."""
    with np.load(path) as kept:
        numbers = dict(kept)
    np.savez(NUMBERS, allow_pickle=False, **{name: numbers[name] for name in sorted(numbers)})
    digest = hashlib.sha256()
    for name in FITTED:
        digest.update((DATA / name).read_bytes())
    content = {
        "data": FITTED,
        "data_sha256": digest.hexdigest(),
        "teacher": ARCTIC_EMBED_S.model_id,
        "seed": SEED,
        "command": COMMAND,
        "enough": ENOUGH,
    }
    SETTINGS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def shown(name: str, hits: Flags, labels: Floats) -> str:
    """Return the shares of updates and decoys of which something is true, with intervals."""
    chance = np.random.default_rng(SEED)
    cells = []
    for label, kind in ((1, "updates"), (0, "others")):
        of = hits[labels == label]
        if len(of):
            drawn = chance.choice(of, size=(RESAMPLES, len(of))).mean(axis=1)
            low, high = np.percentile(drawn, [2.5, 97.5])
            share = f"{of.mean():.3f} ({low:.3f}–{high:.3f})"
            cells.append(f"{kind} {int(of.sum()):4} of {len(of):4} = {share}")
    return f"{name:30} {'   '.join(cells)}"


class Asked(NamedTuple):
    """A question to a store: the triple, and its texts in the order of the hits.

    `plain` is the order without recency. `first` and `plain_first` are the first hits.
    """

    item: Triple
    order: tuple[str, ...]
    plain: tuple[str, ...]
    first: str
    plain_first: str
    marked: bool


def asked_in_stores(items: Sequence[Triple]) -> list[Asked]:
    """Return what `Memory.recall` makes of triples, several in each store with other texts."""
    fillers = {it.language: it.parts["f"] for it in topics() if it.topic == "fillers"}
    chance = random.Random(SEED)
    stores: list[list[Triple]] = []
    for it in items:
        fitting = (
            some
            for some in stores
            if len(some) < STORE_TRIPLES and it.topic not in {one.topic for one in some}
        )
        found = next(fitting, None)
        if found is None:
            stores.append([it])
        else:
            found.append(it)
    answers: list[Asked] = []
    for some in stores:
        older, newer = ([getattr(it, name) for it in some] for name in ("older", "newer"))
        others = chance.sample(fillers["en"], STORE_FILLERS)
        early, late = older + others[::2], newer + others[1::2]
        chance.shuffle(early)
        chance.shuffle(late)
        with Memory(":memory:") as memory:
            for day, text in enumerate(early + late):
                memory.write(text, at=datetime(2026, 1, 1, 9, tzinfo=UTC) + timedelta(days=day))
            for it in some:
                found_hits = memory.recall(it.question)
                plain = memory.recall(it.question, settings=RecallSettings(recency=False))
                marks = [hit for hit in found_hits if hit.maybe_outdated or hit.outdated]
                pair = it.older, it.newer
                told, bare = ([hit.node.content for hit in hits] for hits in (found_hits, plain))
                answers.append(
                    Asked(
                        it,
                        tuple(text for text in told if text in pair),
                        tuple(text for text in bare if text in pair),
                        told[0],
                        bare[0],
                        it.older in {hit.node.content for hit in marks},
                    )
                )
    return answers


def end_to_end(items: Sequence[Triple], *, told: bool = False) -> None:
    """Print which text is first, which is marked, and how often another one was moved up."""
    found = asked_in_stores(items)
    labels = np.array([one.item.label for one in found], dtype=np.float64)
    lines = {
        "the newer one is first": [one.first == one.item.newer for one in found],
        "  without recency": [one.plain_first == one.item.newer for one in found],
        "the newer one is before the older": [one.order[:1] == (one.item.newer,) for one in found],
        "  without recency ": [one.plain[:1] == (one.item.newer,) for one in found],
        "the older one is marked": [one.marked for one in found],
        "marked, or another order": [one.marked or one.order != one.plain for one in found],
        "another one was moved up": [
            one.first not in (one.item.newer, one.item.older) and one.first != one.plain_first
            for one in found
        ],
    }
    for name, hits in lines.items():
        print("  " + shown(name, np.array(hits), labels))
    for one in found:
        if told and (one.first == one.item.newer) != bool(one.item.label):
            print(f"{one.item.label} {one.item.question} | {one.item.older} | {one.item.newer}")
            print(f"    first: {one.first}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--blind", action="store_true", help="what is not fitted to, in stores")
    chosen.add_argument("--write", action="store_true", help="fit, and write the files")
    chosen.add_argument("--prepare", type=Path, metavar="SAMPLES", help="write what a fit needs")
    chosen.add_argument("--take", type=Path, metavar="NUMBERS", help="write the numbers of a fit")
    given = parser.parse_args(arguments)
    if given.prepare:
        prepare(given.prepare)
    elif given.take:
        write(given.take)
    elif given.write:
        with TemporaryDirectory() as folder:
            write(fit(Path(folder)))
    else:
        for name in BLIND:
            print(name)
            end_to_end(blind(name))


if __name__ == "__main__":
    main()
