"""Asking: the conformance suite's tools and prompt that ask the client something, in both eras."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

Asked = TextContent | InputRequiredResult
Given = Context[Any, Any]


def _form(message: str, **properties: dict[str, Any]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str, max_tokens: int) -> CreateMessageRequest:
    said = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=[said], max_tokens=max_tokens)
    )


def _ask(state: str | None = None, **requests: InputRequest) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=state)


def _answer(ctx: Given, key: str) -> Any:
    return (ctx.input_responses or {}).get(key)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


NAME = _form("What is your name?", name={"type": "string"})


def add_asking(server: MCPServer) -> None:
    """Add everything that asks."""
    _add_asking_in_a_session(server)
    _add_asking_once(server)
    _add_asking_with_state(server)
    _add_capabilities(server)


def _add_asking_in_a_session(server: MCPServer) -> None:
    async def elicited(ctx: Given, message: str, schema: dict[str, Any]) -> TextContent:
        told = await ctx.session.elicit_form(message, schema, ctx.request_id)
        return _text(f"Elicitation completed: action={told.action}, content={told.content}")

    @server.tool()
    async def test_sampling(prompt: str, ctx: Given) -> TextContent:
        """Ask the client's model."""
        said = SamplingMessage(role="user", content=_text(prompt))
        told = await ctx.session.create_message(
            [said], max_tokens=100, related_request_id=ctx.request_id
        )
        text = told.content.text if isinstance(told.content, TextContent) else ""
        return _text(f"LLM response: {text}")

    @server.tool()
    async def test_elicitation(message: str, ctx: Given) -> TextContent:
        """Ask the client's user."""
        words = {"username": "User's response", "email": "User's email address"}
        fields = {one: {"type": "string", "description": what} for one, what in words.items()}
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        return await elicited(ctx, message, schema)

    @server.tool()
    async def test_elicitation_sep1034_defaults(ctx: Given) -> TextContent:
        """Ask with a default for each."""
        states = ["active", "inactive", "pending"]
        fields = {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": states, "default": "active"},
            "verified": {"type": "boolean", "default": True},
        }
        return await elicited(ctx, "Who?", {"type": "object", "properties": fields})

    @server.tool()
    async def test_elicitation_sep1330_enums(ctx: Given) -> TextContent:
        """Ask to choose, in five ways."""
        plain = ["option1", "option2", "option3"]
        titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
        fields = {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        }
        return await elicited(ctx, "Which?", {"type": "object", "properties": fields})


def _add_asking_once(server: MCPServer) -> None:
    @server.tool()
    def test_input_required_result_elicitation(ctx: Given) -> Asked:
        """Ask for a name."""
        told = _answer(ctx, "user_name")
        if not isinstance(told, ElicitResult) or not told.content:
            return _ask(user_name=NAME)
        if not isinstance(told.content.get("name"), str):
            raise ToolError("the name has to be a text")
        return _text(f"Hello, {told.content['name']}!")

    @server.tool()
    def test_streaming_elicitation(ctx: Given) -> Asked:
        """Ask for a name on a stream."""
        return _text("heard") if _answer(ctx, "user_name") else _ask(user_name=NAME)

    @server.tool()
    def test_input_required_result_sampling(ctx: Given) -> Asked:
        """Ask the client's model."""
        told = _answer(ctx, "capital_question")
        if not isinstance(told, CreateMessageResult):
            return _ask(capital_question=_sample("What is the capital of France?", 100))
        return _text(str(told.content))

    @server.tool()
    def test_input_required_result_list_roots(ctx: Given) -> Asked:
        """Ask for the client's roots."""
        told = _answer(ctx, "client_roots")
        return _text(str(told)) if told else _ask(client_roots=ListRootsRequest())

    @server.prompt(description="Ask for the context")
    def test_input_required_result_prompt(ctx: Given) -> Any:
        told = _answer(ctx, "user_context")
        if isinstance(told, ElicitResult) and told.content:
            return f"In the context of {told.content['context']}"
        form = _form("What context should the prompt use?", context={"type": "string"})
        return _ask(user_context=form)


def _add_asking_with_state(server: MCPServer) -> None:
    @server.tool()
    def test_input_required_result_request_state(ctx: Given) -> Asked:
        """Ask, and want the state back."""
        if ctx.request_state == "asked" and _answer(ctx, "confirm"):
            return _text("state-ok")
        return _ask("asked", confirm=_form("Please confirm", ok={"type": "boolean"}))

    @server.tool()
    def test_input_required_result_tampered_state(ctx: Given) -> Asked:
        """Ask, and want the state back as it was; the server sees to that."""
        if ctx.request_state == "asked" and _answer(ctx, "confirm"):
            return _text("state-ok")
        return _ask("asked", confirm=_form("Please confirm", ok={"type": "boolean"}))

    @server.tool()
    def test_input_required_result_multiple_inputs(ctx: Given) -> Asked:
        """Ask three things at once."""
        if len(ctx.input_responses or {}) == 3:
            return _text("All three are here")
        greeting, roots = _sample("Generate a greeting", 50), ListRootsRequest()
        return _ask("asked", user_name=NAME, greeting=greeting, client_roots=roots)

    @server.tool()
    def test_input_required_result_multi_round(ctx: Given) -> Asked:
        """Ask twice."""
        if _answer(ctx, "step2"):
            return _text("Both are answered")
        if _answer(ctx, "step1"):
            color = _form("Step 2: What is your favorite color?", color={"type": "string"})
            return _ask("round 2", step2=color)
        return _ask("round 1", step1=_form("Step 1: What is your name?", name={"type": "string"}))


def _add_capabilities(server: MCPServer) -> None:
    @server.tool()
    def test_input_required_result_capabilities(ctx: Given) -> Asked:
        """Ask only what the client can do."""
        can = ctx.client_capabilities
        requests: dict[str, InputRequest] = {}
        if can is not None and can.sampling is not None:
            requests["greeting"] = _sample("Generate a greeting", 50)
        if can is not None and can.elicitation is not None:
            requests["user_name"] = NAME
        return InputRequiredResult(input_requests=requests) if requests else _text("nothing to ask")

    @server.tool()
    def test_missing_capability(ctx: Given) -> TextContent:
        """Need what the client has to declare."""
        can = ctx.client_capabilities
        if can is None or can.sampling is None:
            raise MCPError(
                code=MISSING_REQUIRED_CLIENT_CAPABILITY,
                message="this needs sampling",
                data={"requiredCapabilities": {"sampling": {}}},
            )
        return _text("declared")
