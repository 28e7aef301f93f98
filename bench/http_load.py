"""A hundred clients at once on a real server: no error, no lost write, and how long each waits.

python -m bench.http_load [--seconds 60] [--clients 100]

Each client is a user with a token of its own, and sends its next request when the last one is
answered. After the minute every write that was acknowledged is read back, counted, and the store is
checked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bench.percentiles import machine, percentile
from worlddb.faces.http.token_file import add_token

MIX = {"write": 25, "recall": 35, "list": 15, "read": 15, "mcp recall": 10}
"""Of a hundred requests, so many of each."""
PEOPLE = ("Anna Berg", "Tom Reed", "Sarah Chen", "Omar Haddad", "Mia Novak", "Ravi Patel")
PLACES = ("Lisbon", "Oslo", "Kyoto", "Graz", "Boston", "Lima", "Perth", "Riga")
THINGS = ("green tea", "old maps", "night trains", "chess", "ceramics", "long walks", "jazz")


class Client:
    """One connection that is kept open, with one user's memories."""

    def __init__(
        self,
        url: str,
        number: int,
        tally: Tally,
        mix: Mapping[str, int] = MIX,
        tokens: Sequence[str] = (),
    ) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 0
        self.user = f"client {number}"
        self.head = f"Authorization: Bearer {tokens[number]}\r\n" if tokens else ""
        self.rng = random.Random(number)
        self.tally = tally
        self.mix = mix
        self.written: dict[str, str] = {}

    async def connect(self) -> None:
        """Open the connection."""
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the JSON of one request."""
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"{self.head}Content-Length: {len(data)}\r\n\r\n"
        )
        self.writer.write(head.encode() + data)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(one[15:]) for one in lines if one.startswith(b"content-length:"))
        return int(lines[0].split()[1]), json.loads(await self.reader.readexactly(length))

    async def run(self, until: float) -> None:
        """Send one request after the other until it is time."""
        kinds, weights = list(self.mix), list(self.mix.values())
        while time.perf_counter() < until:
            kind = self.rng.choices(kinds, weights)[0] if self.written else "write"
            started = time.perf_counter()
            try:
                status, answer = await self.one(kind)
            except (OSError, ValueError, asyncio.IncompleteReadError) as error:
                self.tally.errors[f"{kind}: {error!r}"] += 1
                await self.connect()
                continue
            self.tally.taken[kind].append((time.perf_counter() - started) * 1000)
            if status != 200 or (kind == "mcp recall" and answer["result"]["isError"]):
                self.tally.errors[f"{kind}: {status} {json.dumps(answer)[:200]}"] += 1

    async def one(self, kind: str) -> tuple[int, Any]:
        """Send one request of a kind."""
        user = quote(self.user)
        if kind == "write":
            text = self.sentence()
            status, answer = await self.ask(
                "POST", "/v1/memories", {"text": text, "user_id": self.user}
            )
            if status == 200:
                self.written[answer["id"]] = text
            return status, answer
        if kind == "list":
            return await self.ask("GET", f"/v1/memories?limit=20&user_id={user}")
        if kind == "read":
            ident = self.rng.choice(list(self.written))
            return await self.ask("GET", f"/v1/memories/{ident[:24]}?user_id={user}")
        asked = {"query": f"What does {self.rng.choice(PEOPLE)} like?", "user_id": self.user}
        if kind == "recall":
            return await self.ask("POST", "/v1/recall", asked)
        params = {"name": "memory_recall", "arguments": asked}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return await self.ask("POST", "/mcp", call)

    def sentence(self) -> str:
        """Return something new to remember."""
        person, place = self.rng.choice(PEOPLE), self.rng.choice(PLACES)
        thing, number = self.rng.choice(THINGS), len(self.written)
        return f"{person} likes {thing} and told me so in {place}, note {number} of {self.user}"

    async def lost(self) -> list[str]:
        """Return what was acknowledged and is not there, and what is there and never was."""
        found: list[str] = []
        for ident, text in self.written.items():
            status, answer = await self.ask("GET", f"/v1/memories/{ident}")
            if status != 200 or answer["text"] != text:
                found.append(f"{ident}: {status}")
        listed: set[str] = set()
        path = f"/v1/memories?limit=1000&user_id={quote(self.user)}"
        cursor = ""
        while cursor is not None:
            _, page = await self.ask("GET", path + (f"&cursor={cursor}" if cursor else ""))
            listed |= {memory["id"] for memory in page["memories"]}
            cursor = page["next_cursor"]
        return found + [f"{ident}: not listed alike" for ident in listed ^ self.written.keys()]


@dataclass
class Tally:
    """What all clients saw."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)


def make_tokens(file: Path, clients: int) -> list[str]:
    """Write a file of tokens, one for each client and bound to its user; return the tokens."""
    users = [f"client {number}" for number in range(clients)]
    return [add_token(str(file), user, bounds={"user_id": [user]}, role="write") for user in users]


async def load(
    url: str, clients: int, seconds: float, tokens: Sequence[str] = ()
) -> tuple[Tally, int, list[str], float]:
    """Return the tally, how many writes were acknowledged, what was lost, and the time it took."""
    tally = Tally()
    crew = [Client(url, number, tally, tokens=tokens) for number in range(clients)]
    await asyncio.gather(*(one.connect() for one in crew))
    await crew[0].ask("POST", "/v1/recall", {"query": "warm up"})  # Loads the embedder.
    started = time.perf_counter()
    await asyncio.gather(*(one.run(started + seconds) for one in crew))
    took = time.perf_counter() - started
    lost = [what for one in crew for what in await one.lost()]
    return tally, sum(len(one.written) for one in crew), lost, took


def serve(store: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """Start a server of its own process and return it with its URL."""
    command = [sys.executable, "-m", "worlddb", "serve", "--db", str(store)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("}"):
            break
    return process, json.loads("".join(lines))["url"]


def report(tally: Tally, writes: int, took: float) -> None:
    total = sum(map(len, tally.taken.values()))
    print(f"  {total:,} requests in {took:.1f} s: {total / took:,.0f} per second", flush=True)
    for kind in MIX:
        taken = tally.taken[kind] or [0.0]
        p50, p95, p99 = (percentile(taken, share) for share in (0.5, 0.95, 0.99))
        print(
            f"  {kind:<12} P50/P95/P99 {p50:,.0f} / {p95:,.0f} / {p99:,.0f} ms (n={len(taken):,})"
        )
    print(f"  {writes:,} writes acknowledged, {sum(tally.errors.values())} errors")
    for error, count in tally.errors.most_common(5):
        print(f"    {count} x {error}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=100)
    args = parser.parse_args(argv)
    print(machine())
    print(f"{args.clients} clients for {args.seconds:.0f} s on one server with one store")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "memory.db"
        file = Path(folder) / "tokens.toml"
        tokens = make_tokens(file, args.clients)
        process, url = serve(store, "--tokens-file", str(file))
        try:
            tally, writes, lost, took = asyncio.run(load(url, args.clients, args.seconds, tokens))
        finally:
            process.terminate()
            code = process.wait(60)
        report(tally, writes, took)
        check = [sys.executable, "-m", "worlddb", "check", "--db", str(store)]
        sound = subprocess.run(check, capture_output=True, text=True, check=False)
    print(f"  {len(lost)} lost: {lost[:3]}" if lost else "  every one of them read back and listed")
    print(f"  the server left with {code}; check: {sound.stdout.strip() or sound.stderr.strip()}")
    return 1 if lost or tally.errors or code or sound.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
