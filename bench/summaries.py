"""Reading a world summary first, against reading all of it: 1,000 facts in 100 topics.

python -m bench.summaries [--topics 100] [--facts 10] [--count 200]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import worlddb
from bench.percentiles import line, percentile, timed
from worlddb import Id, NodeDraft, WorldDB

PEOPLE = ("Sarah Chen", "Tom Baker", "Ines Duarte", "Kofi Mensah", "Mara Lindt")
PLACES = ("Lisbon", "Oslo", "Accra", "Kyoto", "Quito", "Turin")


def filled(db: WorldDB, topics: int, facts: int) -> Id:
    """Make a world of topics, each with some facts."""
    with db.transaction(bulk=True) as tx:
        world = tx.create_node(type="Scope", name="everything").id
        for topic in range(topics):
            inside = tx.create_node(type="Topic", name=f"topic {topic}", parent=world).id
            tx.create_nodes(
                NodeDraft(
                    type="Fact",
                    content=(
                        f"{PEOPLE[(topic + fact) % len(PEOPLE)]} paid ${topic * 31 + fact * 7} in "
                        f"{PLACES[(topic * fact) % len(PLACES)]} on 2025-03-{fact % 28 + 1:02d}."
                    ),
                    parent=inside,
                )
                for fact in range(facts)
            )
    return world


def detail_is_there(db: WorldDB, world: Id, before: dict[Id, str]) -> bool:
    """Return whether every fact can be reached from the summary, and is as it was written."""
    (top,) = db.query().in_world(world).prefer_summaries().execute().nodes
    reached = db.query().seeds(top.id).traverse("derived_from", hops=9).execute()
    return {node.id: node.content for node in reached if node.type != "Summary"} == before


def ratios(slow: list[float], fast: list[float]) -> str:
    """Return how much faster one is: by the medians, and by the best of each.

    A busy machine interrupts long calls more often than short ones, so the second is the fairer.
    """
    middle = percentile(slow, 0.5) / percentile(fast, 0.5)
    return f"ratio of P50 {middle:.1f}, of the fastest calls {min(slow) / min(fast):.1f},"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--facts", type=int, default=10)
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        worlddb.open(Path(folder) / "store.db", embedder="none") as db,
    ):
        world = filled(db, args.topics, args.facts)
        plain = db.query().in_world(world)
        first = plain.prefer_summaries()
        before = {node.id: node.content for node in plain.execute()}
        bare = timed(lambda _: plain.execute(), args.count)
        began = time.perf_counter()
        report = db.consolidate()
        took = time.perf_counter() - began
        print(
            f"{args.topics * args.facts:,} facts in {args.topics} topics: {report.written} "
            f"summaries written in {took:.2f} s, {len(report.commits)} commits"
        )
        began = time.perf_counter()
        assert db.consolidate().commits == ()
        print(
            f"  a second run finds nothing to do in {1000 * (time.perf_counter() - began):.0f} ms"
        )
        full = timed(lambda _: plain.execute(), args.count)
        short = timed(lambda _: first.execute(), args.count)
        print(line(f"full detail, before there were summaries ({len(before):,} nodes)", bare))
        print(line(f"full detail, summaries among it ({len(plain.execute()):,} nodes)", full))
        print(line(f"summary first ({len(first.execute())} node)", short))
        for what, taken in (("before", bare), ("with", full)):
            print(f"  {ratios(taken, short)} to full detail {what} summaries")
        print(f"  every detail reachable and equal: {detail_is_there(db, world, before)}")
        with db.transaction() as tx:
            tx.create_node(type="Fact", content="something new", parent=db.children(world)[0].id)
        stale = timed(lambda _: first.execute(), args.count)
        print(line(f"summary first, with a fact it lacks ({len(first.execute())} nodes)", stale))
        print(f"  {ratios(full, stale)} to full detail")
        ids = [node.id for node in db.query().in_world(world).limit(10).execute()]
        print(
            line(
                "counting ten hits as recalled", timed(lambda _: db.engine.recalls.note(ids), 5_000)
            )
        )


if __name__ == "__main__":
    main()
