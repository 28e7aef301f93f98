"""Start the real server as a client would, and talk to it by the SDK's client or line by line."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.types import (
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
    TextResourceContents,
)

from faces.command import COMMAND, environment
from patience import PATIENCE_S
from started_program import StartedProgram

Era = Literal["2026-07-28", "legacy"]
ERAS: tuple[Era, ...] = ("2026-07-28", "legacy")
"""How the client opens: without a handshake, as it prefers, or with the older one."""
DEADLINE_S = float(PATIENCE_S)
PATIENT = f"""
import sys
from worlddb.faces.mcp import stdio_transport
stdio_transport.LAST_ANSWERS_S = stdio_transport.ENDING_S_MAX = {DEADLINE_S / 2}
"""
"""What a program begins with that has time to end as it should on a machine that is busy."""
RUN = PATIENT + "from worlddb.faces.cli import run\nsys.exit(run(sys.argv[1:]))"


class Person:
    """Whom the client asks: answers as it was told to, and keeps the questions."""

    def __init__(self) -> None:
        self.answer = ElicitResult(action="cancel")
        self.questions: list[ElicitRequestFormParams] = []

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.questions.append(params)
        return self.answer


class Talk:
    """A connected client."""

    def __init__(self, client: Client, person: Person | None) -> None:
        self.client = client
        self.person = person or Person()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that has to succeed; return what it says, which its text says too."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        [block] = result.content
        assert isinstance(block, TextContent)
        assert json.loads(block.text) == result.structured_content
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that has to fail; return what the model is told."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        [block] = result.content
        assert isinstance(block, TextContent)
        return block.text

    async def page(self, uri: str) -> Any:
        """Return a resource's JSON."""
        [contents] = (await self.client.read_resource(uri)).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.mime_type == "application/json"
        return json.loads(contents.text)


def command(path: Path, *options: str) -> list[str]:
    """Return how the server is started."""
    return [*COMMAND, "mcp", "--db", str(path), *options]


@asynccontextmanager
async def talking(
    path: Path, *options: str, era: Era = "2026-07-28", person: Person | None = None
) -> AsyncIterator[Talk]:
    """Start a server over stdio, and talk to it."""
    program, *arguments = command(path, *options)
    server = StdioServerParameters(command=program, args=arguments, env=environment())
    async with Client(
        server, mode=era, elicitation_callback=person, read_timeout_seconds=DEADLINE_S
    ) as client:
        yield Talk(client, person)


class Lines:
    """A server that is spoken to line by line, also in ways no client would."""

    def __init__(self, process: StartedProgram) -> None:
        self.process = process
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout

    def say(self, line: bytes) -> None:
        self._in.write(line + b"\n")
        self._in.flush()

    def hear(self) -> Any:
        line = self._out.readline()
        assert line, "the server is gone"
        return json.loads(line)

    def ask(self, number: int, method: str, **params: Any) -> Any:
        """Send a request of the older era, and return the next answer."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.say(json.dumps(message).encode())
        return self.hear()

    def greet(self) -> Any:
        """Shake hands in the older era."""
        told = self.ask(
            0,
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "test", "version": "1"},
        )
        self.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return told

    def end(self) -> tuple[int, bytes, bytes]:
        """Close stdin; return the exit code and what was still to be heard."""
        self._in.close()
        self.process.stdin = None
        rest, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.wait(), rest, errors


@contextmanager
def lines(path: Path, *options: str, program: str | None = None) -> Iterator[Lines]:
    """Start a server to be spoken to line by line: the command, or a program that serves `path`."""
    arguments = [str(path)] if program else ["mcp", "--db", str(path), *options]
    process = StartedProgram(program or RUN, arguments, environment())
    # A test that waits for an answer that never comes has to fail, not to hang.
    alarm = threading.Timer(DEADLINE_S, process.kill)
    alarm.start()
    try:
        yield Lines(process)
    finally:
        alarm.cancel()
        process.kill()
        process.communicate()
        process.close()


assert sys.platform != "win32", "these tests send signals"
