"""`worlddb bench`: how fast writes and recalls are on this machine."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import EMBEDDER, command, number, option, wants_json
from worlddb.faces.cli.progress import Progress, amount
from worlddb.faces.cli.terminal import Cell, one_line, print_json, print_table

if TYPE_CHECKING:
    import random

SEED = 20_260_101  # Any fixed number: two runs write the same memories.
PEOPLE = ("Ada", "Sarah Chen", "Tom Baker", "Ines Duarte", "Yuki Mori", "Omar Haddad")
PLACES = ("Paris", "Lisbon", "Kyoto", "Oslo", "Nairobi", "Quito")
THINGS = ("green tea", "chess", "old maps", "sailing", "jazz", "sourdough", "cycling", "opera")
SHAPES = (
    "{person} moved to {place} in {year}",
    "{person} likes {thing} more than {other}",
    "In {year} {person} and I talked about {thing} in {place}",
    "Remember that {person} prefers {thing} on day {number}",
)


@command(
    "bench",
    number("--memories", "N", "memories to write (default: 1000)", default=1_000),
    number("--recalls", "N", "recalls to measure (default: 200)", default=200),
    option("--folder", "PATH", "folder of the temporary store (default: that of the system)"),
    EMBEDDER,
)
def run(args: argparse.Namespace) -> int:
    """Measure writes and recalls on this machine.

    Write made-up memories to a temporary store, one durable commit each, and recall
    them. Your own store is not touched. The first recall embeds everything, so it has
    a row of its own. --folder chooses the disk; in a folder in memory, writes look too
    fast.

    Examples:
      worlddb bench                              # a thousand memories, a few seconds
      worlddb bench --memories 10000 --folder ~  # more, on the disk of your home
      worlddb bench --embedder none --json       # without vectors, for a script
    """
    import platform
    import tempfile

    if not args.memories or not args.recalls:
        raise InvalidInputError("bench: give at least 1 of --memories and of --recalls")
    folder = None if args.folder is None else os.path.expanduser(args.folder)
    with tempfile.TemporaryDirectory(prefix="worlddb-bench-", dir=folder) as place:
        figures, size, model = _measure(args, os.path.join(place, "bench.db"))
        where = os.path.dirname(place)
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "folder": where,
        "embedder": model,
        "bytes": size,
    }
    if wants_json(args):
        print_json({"memories": args.memories, "machine": machine, "figures": figures})
        return 0
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            int(row["n"]),
            *(f"{row[key]:.2f}" for key in ("p50_ms", "p95_ms", "max_ms")),
            f"{row['per_s']:,.0f}",
        )
        for name, row in figures.items()
    ]
    print_table(("what", "n", "P50 ms", "P95 ms", "max ms", "per second"), rows)
    print(
        f"\n{args.memories:,} memories, {amount(size, 'bytes')} in {one_line(where)}; "
        f"{model}; {machine['system']}, {machine['cores']} cores, Python {machine['python']}"
    )
    return 0


def _measure(args: argparse.Namespace, path: str) -> tuple[dict[str, dict[str, float]], int, str]:
    import random

    from worlddb.faces.cli.command_store import chosen_embedder
    from worlddb.memory.memory import Memory

    chance = random.Random(SEED)
    total = args.memories + args.recalls + 1
    embedder = chosen_embedder(args)
    with (
        Progress("measuring", unit="calls", total=total) as progress,
        Memory(path, embedder=embedder, user_id="bench", recluster="off") as memory,
    ):

        def timed(work: Callable[[], Any]) -> float:
            began = time.perf_counter()
            work()
            took = time.perf_counter() - began
            progress.done += 1
            return took

        texts = [_sentence(chance) for _ in range(args.memories)]
        writes = [timed(partial(memory.write, text)) for text in texts]
        questions = [_question(chance) for _ in range(args.recalls + 1)]
        first = timed(partial(memory.recall, questions[0]))
        recalls = [timed(partial(memory.recall, query)) for query in questions[1:]]
        model = "no embedder" if embedder == "none" else memory.db.reindex()
    size = os.path.getsize(path)  # Once it is closed, and what was beside it is in it.
    found = {"write": writes, "first recall": [first], "recall": recalls}
    return {name: _figures(times) for name, times in found.items()}, size, model


def _sentence(chance: random.Random) -> str:
    thing, other = chance.sample(THINGS, 2)
    return chance.choice(SHAPES).format(
        person=chance.choice(PEOPLE),
        place=chance.choice(PLACES),
        thing=thing,
        other=other,
        year=chance.randint(1990, 2025),
        number=chance.randint(1, 100_000),
    )


def _question(chance: random.Random) -> str:
    person, thing = chance.choice(PEOPLE), chance.choice(THINGS)
    return chance.choice((f"Where does {person} live?", f"Who likes {thing}?", f"{thing} when?"))


def _figures(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "n": len(ordered),
        "p50_ms": 1000 * ordered[len(ordered) // 2],
        "p95_ms": 1000 * ordered[int(len(ordered) * 0.95)],
        "max_ms": 1000 * ordered[-1],
        "per_s": len(ordered) / sum(ordered),
    }
