"""Hooks as clients run them: a prompt with a running server, and without one.

python -m bench.hooks

The time of a whole process, from its start to its end; beside it, the processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import worlddb
from bench.percentiles import line, machine

WARM_MS_MAX = 100
COLD_MS_MAX = 1_000
PROGRAM = [sys.executable, "-m", "worlddb"]
PLACES = ("Oslo", "Lima", "Kyoto", "Accra", "Quito", "Turin")
EVENT = {"prompt": "Which server runs in Kyoto, and who looks after it?"}


def filled(path: Path, memories: int) -> None:
    with worlddb.Memory(path, embedder="none", recluster="off") as memory:
        for number in range(memories):
            text = f"Server {number} runs in {PLACES[number % 6]}, and team {number % 40} owns it."
            memory.write(text, user_id="default", app_id="ada/shop")


def run(path: Path, folder: Path, env: dict[str, str]) -> tuple[float, float, bool]:
    """Return the seconds and the processor seconds of one hook, and whether it told anything."""
    told = json.dumps(EVENT | {"cwd": str(folder), "session_id": str(time.monotonic_ns())})
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [*PROGRAM, "hook", "UserPromptSubmit", "--db", str(path)],
        input=told.encode(),
        stdout=subprocess.PIPE,
        env=env,
        check=True,
    )
    taken, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return taken, used, b"additionalContext" in done.stdout


def report(name: str, found: list[tuple[float, float, bool]], budget_ms: int) -> None:
    print(f"{name}: {sum(one[2] for one in found)} of {len(found)} told something", end="; ")
    print(f"at most {budget_ms:,} ms are allowed")
    print(line("whole process", [one[0] * 1e6 for one in found]))
    print(line("processor time", [one[1] * 1e6 for one in found]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=500)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "memory.db"
        (folder / ".git").mkdir()
        (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = x:ada/shop\n')
        filled(path, args.memories)
        env = os.environ | {"XDG_DATA_HOME": name, "WORLDDB_CONFIG": os.devnull}
        report("hook, cold", [run(path, folder, env) for _ in range(args.runs)], COLD_MS_MAX)
        server = subprocess.Popen(
            [*PROGRAM, "serve", "--port", "0", "--db", str(path), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        try:
            assert server.stdout
            while server.stdout.readline() not in (b"", b"}\n"):
                pass
            run(path, folder, env)
            report("hook, server", [run(path, folder, env) for _ in range(args.runs)], WARM_MS_MAX)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
