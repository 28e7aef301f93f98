"""What the memory costs a model: tokens of the tools, of a write and of a recall, as they are sent.

python -m bench.prompt_tokens

Counted twice: by `worlddb.model.text_safety`, which counts rather too many, and by the tokenizer
of Llama 2, which comes with the default embedder. Its vocabulary of 32,000 is small, so the models
of today count fewer. Of `tools/list` a model reads names, descriptions and input schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import tokenizers

import worlddb
from worlddb.embed.embedder import TOKENIZER, model_folder
from worlddb.faces.mcp.mcp_server import make_server
from worlddb.model.text_safety import tokens_at_most

READ_BY_MODELS = ("name", "description", "inputSchema")
TEXTS = (
    "Sarah likes green tea in the morning.",
    "The dog Bruno weighs nine kilos.",
    "We meet at the station on Friday.",
    "The budget for Rome is 900 euros.",
    "My sister Anna lives in Oslo.",
    "The car needs new tires in May.",
    "Kai plays the cello on Sundays.",
    "The wifi password is on the fridge.",
    "Our offsite is in Lisbon in June.",
    "The plumber comes at noon.",
    "I prefer window seats on trains.",
)
QUESTION = "What do we plan in June, and where are the dog, Sarah, Anna, the car and Kai?"


def llama_tokens() -> Callable[[str], int]:
    """Return the count of the tokenizer that comes with the default embedder."""
    folder = model_folder()
    assert folder is not None
    made = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
    return lambda text: len(made.encode(text).ids)


async def texts_sent() -> dict[str, str]:
    """Return what a server sends, by what it is."""
    with worlddb.Memory(":memory:") as memory:
        server = make_server(lambda: memory)
        tools = [
            tool.model_dump(by_alias=True, exclude_none=True, mode="json")
            for tool in await server.list_tools()
        ]
        read = [{key: tool[key] for key in READ_BY_MODELS} for tool in tools]

        async def call(tool: str, arguments: dict[str, Any]) -> str:
            result: Any = await server.call_tool(tool, arguments)
            text: str = result.content[0].text
            return text

        written = [await call("memory_write", {"text": text}) for text in TEXTS]
        return {
            f"the {len(tools)} default tools, as a model reads them": _json(read),
            "the same with titles, output schemas and annotations": _json(tools),
            "a write": max(written, key=len),
            "a recall of ten short hits": await call("memory_recall", {"query": QUESTION}),
            "the same with explain": await call(
                "memory_recall", {"query": QUESTION, "explain": True}
            ),
            "the same with max_tokens=200": await call(
                "memory_recall", {"query": QUESTION, "max_tokens": 200}
            ),
            "context with max_tokens=300": memory.context(QUESTION, max_tokens=300).text,
            "the ten texts alone": "\n".join(TEXTS[:10]),
        }


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def main() -> None:
    """Print the figures."""
    count = llama_tokens()
    print(f"{'':<54} estimate  Llama 2  characters")
    for what, text in anyio.run(texts_sent).items():
        print(f"{what:<54} {tokens_at_most(text):8,} {count(text):8,} {len(text):11,}")


if __name__ == "__main__":
    main()
