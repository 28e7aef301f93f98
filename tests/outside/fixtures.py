"""Fixtures: the tools, resources and prompts that the conformance suite calls by name.

They are added to the real server for that suite alone, and say what it wants to hear.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Message, UserMessage
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

PAUSE_S = 0.05


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    + _chunk(b"IEND", b"")
)
WAV = (
    b"RIFF"
    + struct.pack("<I", 36)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data"
    + struct.pack("<I", 0)
)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _image() -> ImageContent:
    return ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png")


def _resource(uri: str, text: str, kind: str) -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, text=text, mime_type=kind)
    )


def add_fixtures(server: MCPServer) -> None:
    """Add everything that says something; what asks something is in the module beside."""
    _add_tools(server)
    _add_talking_tools(server)
    _add_resources(server)
    _add_prompts(server)


def _add_tools(server: MCPServer) -> None:
    @server.tool()
    def test_simple_text() -> TextContent:
        """Return a text."""
        return _text("This is a simple text response for testing.")

    @server.tool()
    def test_image_content() -> ImageContent:
        """Return an image."""
        return _image()

    @server.tool()
    def test_audio_content() -> AudioContent:
        """Return a sound."""
        data = base64.b64encode(WAV).decode()
        return AudioContent(type="audio", data=data, mime_type="audio/wav")

    @server.tool()
    def test_embedded_resource() -> EmbeddedResource:
        """Return a resource."""
        text = "This is an embedded resource content."
        return _resource("test://embedded-resource", text, "text/plain")

    @server.tool()
    def test_multiple_content_types() -> list[ContentBlock]:
        """Return one of each."""
        data = json.dumps({"test": "data", "value": 123}, separators=(",", ":"))
        return [
            _text("Multiple content types test:"),
            _image(),
            _resource("test://mixed-content-resource", data, "application/json"),
        ]

    @server.tool()
    def test_error_handling() -> TextContent:
        """Fail."""
        raise ToolError("This tool intentionally returns an error for testing")


def _add_talking_tools(server: MCPServer) -> None:
    @server.tool()
    async def test_tool_with_logging(ctx: Context[Any, Any]) -> TextContent:
        """Tell what it does."""
        for said in ("started", "", "completed"):
            told = f"Tool execution {said}" if said else "Tool processing data"
            await ctx.session.send_log_message("info", told, related_request_id=ctx.request_id)
            await anyio.sleep(PAUSE_S)
        return _text("logged")

    @server.tool()
    async def test_logging_tool(ctx: Context[Any, Any]) -> TextContent:
        """Tell something to who wants to hear it."""
        await ctx.session.send_log_message("info", "said", related_request_id=ctx.request_id)
        return _text("logged")

    @server.tool()
    async def test_tool_with_progress(ctx: Context[Any, Any]) -> TextContent:
        """Tell how far it is."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await anyio.sleep(PAUSE_S)
        return _text("done")

    @server.tool()
    async def test_trigger_tool_change(ctx: Context[Any, Any]) -> TextContent:
        """Tell that there are other tools."""
        await ctx.notify_tools_changed()
        return _text("told")

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context[Any, Any]) -> TextContent:
        """Tell that there are other prompts."""
        await ctx.notify_prompts_changed()
        return _text("told")


def _add_resources(server: MCPServer) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return PNG

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _add_prompts(server: MCPServer) -> None:
    @server.prompt(description="A text")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="Two arguments")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="A resource")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803
        text = "Embedded resource content for testing."
        return [
            UserMessage(_resource(resourceUri, text, "text/plain")),
            UserMessage("Please process the embedded resource above."),
        ]

    @server.prompt(description="An image")
    def test_prompt_with_image() -> list[Message]:
        return [UserMessage(_image()), UserMessage("Please analyze the image above.")]
