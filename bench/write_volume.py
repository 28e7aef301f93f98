"""How much a small memory writes: pages of the log by table, and what of them stays.

python -m bench.write_volume [--memories 2000] [--measured 300]

A store is filled, then memories are written one by one with a log that is never cut, and the log is
read frame by frame: each frame is a page that a commit wrote. `dbstat` says whose page it is.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from bench.percentiles import machine
from worlddb import Memory
from worlddb.store.sqlite import gate

LOG_HEADER_BYTES = 32
FRAME_HEADER = struct.Struct(">II16x")  # Page number, pages of the database after a commit or 0.
PAGE_SIZE_AT = 8  # In the header of a log.
USERS = 20  # So that worlds are neither one nor as many as memories.
PEOPLE = ("Anna Berg", "Tom Reed", "Sarah Chen", "Omar Haddad", "Mia Novak", "Ravi Patel")
PLACES = ("Lisbon", "Oslo", "Kyoto", "Graz", "Boston", "Lima", "Perth", "Riga")
THINGS = ("green tea", "old maps", "night trains", "chess", "ceramics", "long walks", "jazz")


def sentences(seed: int) -> Iterator[str]:
    """Yield memories of about 92 bytes."""
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        person, place, thing = rng.choice(PEOPLE), rng.choice(PLACES), rng.choice(THINGS)
        text = f"{person} likes {thing} and told me so in {place}, in note {number} of the year"
        yield f"{text:.<91}."


def page_bytes(header: bytes) -> int:
    """Return the size of a page by the header of a log."""
    return int(struct.unpack_from(">I", header, PAGE_SIZE_AT)[0])


def frames(log: Path) -> Iterator[tuple[int, bool]]:
    """Yield the page of each frame of a log, and whether a commit ends with it."""
    with log.open("rb") as file:
        size = page_bytes(file.read(LOG_HEADER_BYTES))
        while head := file.read(FRAME_HEADER.size):
            page, pages_after = FRAME_HEADER.unpack(head)
            file.seek(size, 1)
            yield page, bool(pages_after)


def owners(path: Path) -> dict[int, str]:
    """Return the table or index of each page."""
    con = apsw.Connection(str(path))
    found: dict[int, str] = dict(con.execute("SELECT pageno, name FROM dbstat"))
    con.close()
    return found


def measure(path: Path, memories: int, measured: int) -> None:
    """Fill a store, write on, and print what the log got."""
    gate.LOG_BYTES_MIN = 1 << 40  # The log is to hold everything that is measured.
    texts = sentences(7)
    with Memory(path, embedder="none", durability="normal") as memory:
        for number in range(memories):
            memory.write(next(texts), user_id=f"user {number % USERS}")
    before = path.stat().st_size
    with Memory(path, embedder="none", durability="normal") as memory:
        memory.write(next(texts), user_id="user 0")
        memory.db.engine.background.wait()
        log = path.with_name(f"{path.name}-wal")
        skipped = sum(1 for _ in frames(log))
        for number in range(measured):
            memory.write(next(texts), user_id=f"user {number % USERS}")
        memory.db.engine.background.wait()
        written = list(frames(log))[skipped:]
        log_header = log.read_bytes()[:LOG_HEADER_BYTES]
    whose = owners(path)
    by_table = Counter(whose.get(page, "freed") for page, _ in written)
    commits = sum(1 for _, is_end in written if is_end)
    stays = (path.stat().st_size - before) / (measured + 1)
    pages = len(written) / measured
    kib = pages * (page_bytes(log_header) + FRAME_HEADER.size) / 1024
    print(
        f"  {pages:.1f} pages a memory ({kib:.0f} KiB) in {commits / measured:.2f} commits; "
        f"{stays / 1024:.2f} KiB of it stay"
    )
    for name, count in by_table.most_common():
        print(f"    {count / measured:6.2f}  {name}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=2000)
    parser.add_argument("--measured", type=int, default=300)
    args = parser.parse_args(argv)
    print(machine())
    print(
        f"{args.measured} memories of 92 bytes, written one by one to a store of {args.memories:,}"
    )
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder) / "memory.db", args.memories, args.measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
