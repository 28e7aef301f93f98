"""Chat: a real endpoint in two dialects, well and ill."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from patience import PATIENCE_S, until
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.models.chat_client import (
    PROVIDERS,
    Chat,
    ChatSettings,
    Usage,
    ask_text,
    chat_from,
    parse_model_name,
)

from .server import KEY, Answer, Cut, Fault, Seen, chat_at, in_turn, serving

SAID = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi 日本 \ud800"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
DIALECTS = ["openai", "anthropic"]


def test_openai_is_spoken_as_such_servers_want_it() -> None:
    with serving(in_turn("Hello")) as server:
        assert chat_at(server, api_key=KEY)(SAID) == "Hello"
    (seen,) = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.data == {
        "model": "m",
        "messages": [SAID[0], {"role": "user", "content": "Hi 日本 ?"}],
        "max_tokens": 4096,
        "temperature": 0.0,
    }


def test_anthropic_is_spoken_as_it_wants_it() -> None:
    with serving(in_turn("Hello")) as server:
        assert chat_at(server, provider="anthropic", api_key=KEY)(SAID) == "Hello"
    (seen,) = server.seen
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == KEY
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen.headers
    assert seen.data == {
        "model": "m",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi 日本 ?"}],
        "max_tokens": 4096,
        "temperature": 0.0,
    }


@pytest.mark.parametrize("provider", DIALECTS)
def test_a_schema_is_asked_for_where_the_endpoint_has_them(provider: str) -> None:
    with serving(in_turn('{"a": 1}')) as server:
        reply = chat_at(server, provider=provider).ask(SAID, schema=SCHEMA)
    assert json.loads(reply.text) == {"a": 1}
    asked = server.seen[0].data
    if provider == "openai":
        assert asked["response_format"]["json_schema"]["schema"] == SCHEMA
    else:
        assert asked["tools"][0]["input_schema"] == SCHEMA
        assert asked["tool_choice"] == {"type": "tool", "name": "answer"}
    with serving(in_turn('{"a": 1}')) as server:
        chat_at(server, provider=provider, structured=False).ask(SAID, schema=SCHEMA)
    assert not server.seen[0].data.keys() & {"response_format", "tools", "tool_choice"}


@pytest.mark.parametrize(
    ("provider", "complaint", "without"),
    [
        ("openai", "Unsupported value: 'temperature' does not support 0.0", "temperature"),
        ("openai", "json_schema is not supported by this model", "response_format"),
        ("anthropic", "`temperature` is deprecated for this model.", "temperature"),
        ("anthropic", "tool_choice: not supported", "tools"),
    ],
)
def test_what_an_endpoint_refuses_and_can_do_without_is_left_out_from_then_on(
    provider: str, complaint: str, without: str
) -> None:
    def model(seen: Seen) -> Answer:
        if without in seen.data:
            return Fault(400, {"error": {"type": "invalid_request_error", "message": complaint}})
        return '{"a": 1}'

    with serving(model) as server:
        chat = chat_at(server, provider=provider)
        assert chat.ask(SAID, schema=SCHEMA).text == '{"a": 1}'
        assert chat.ask(SAID, schema=SCHEMA).text == '{"a": 1}'
    assert [without in seen.data for seen in server.seen] == [True, False, False]


def test_a_newer_name_for_the_limit_of_tokens_is_used_where_it_is_wanted() -> None:
    def model(seen: Seen) -> Answer:
        if "max_tokens" in seen.data:
            said = "'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
            return Fault(400, {"error": {"message": said}})
        return "fine"

    with serving(model) as server:
        assert chat_at(server, max_output_tokens=9)(SAID) == "fine"
    assert server.seen[-1].data["max_completion_tokens"] == 9


def test_tokens_are_counted_over_all_threads() -> None:
    for provider in DIALECTS:
        with serving(in_turn("ok")) as server:
            chat = chat_at(server, provider=provider)
            threads = [
                threading.Thread(target=lambda: [chat(SAID) for _ in range(5)])  # noqa: B023
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert chat.usage == Usage(requests=20, input_tokens=2000, output_tokens=140)


def test_an_answer_that_ran_into_its_limit_says_so() -> None:
    for provider in DIALECTS:
        with serving(in_turn(Cut("half of"))) as server:
            reply = chat_at(server, provider=provider).ask(SAID)
        assert (reply.text, reply.is_cut) == ("half of", True)


# -- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_tried_again(status: int) -> None:
    busy = Fault(status, {"error": {"message": "busy"}})
    for provider in DIALECTS:
        with serving(in_turn(busy, busy, "there")) as server:
            assert chat_at(server, provider=provider)(SAID) == "there"
        assert len(server.seen) == 3


def test_a_lost_connection_is_tried_again() -> None:
    broken = Fault(body=b'{"choices": [{"mess', cut=9)
    with serving(in_turn(Fault(reset=True), broken, "there")) as server:
        assert chat_at(server)(SAID) == "there"
    assert len(server.seen) == 3


def test_after_the_last_try_the_servers_reason_is_told() -> None:
    with serving(in_turn(Fault(529, {"error": {"message": "Overloaded"}}))) as server:
        with pytest.raises(ProviderError, match=r"#m: HTTP 529: Overloaded \(tried 3 times\)"):
            chat_at(server, provider="anthropic", retries_max=2)(SAID)
        assert len(server.seen) == 3


@pytest.mark.parametrize("status", [429, 503, 529])
def test_the_server_says_how_long_to_wait(status: int) -> None:
    with serving(in_turn(Fault(status, headers={"Retry-After": "0.3"}), "there")) as server:
        begun = time.monotonic()
        assert chat_at(server)(SAID) == "there"
        assert time.monotonic() - begun >= 0.3


def test_a_server_that_wants_a_long_pause_is_not_waited_for() -> None:
    with serving(in_turn(Fault(429, headers={"Retry-After": "3600"}))) as server:
        with pytest.raises(ProviderError, match="HTTP 429"):
            chat_at(server)(SAID)
        assert len(server.seen) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_does_not_pass_is_told_at_once(status: int) -> None:
    with serving(in_turn(Fault(status, {"error": {"message": "no such model"}}))) as server:
        with pytest.raises(ProviderError, match=f"HTTP {status}: no such model"):
            chat_at(server)(SAID)
        assert len(server.seen) == 1


def test_a_silent_server_is_given_up() -> None:
    with serving(in_turn(Fault(late=True))) as server:
        with pytest.raises(ProviderError, match=r"timed out \(tried 2 times\)"):
            chat_at(server, timeout_s=0.2, retries_max=1)(SAID)
        until(lambda: len(server.seen) == 2)


@pytest.mark.parametrize("provider", DIALECTS)
@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"\xff\xfe",
        b"[]",
        b"3",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": "  "}}]}',
        b'{"choices": [{"message": {"content": null, "refusal": "I will not"}}]}',
        b'{"content": []}',
        b'{"content": [7]}',
        b'{"content": [], "stop_reason": "refusal"}',
        b'{"content": 5}',
        b'{"error": {"message": "quota"}}',
        b"[" * 100_000,
    ],
)
def test_an_answer_that_is_none_is_refused_at_once(provider: str, body: bytes) -> None:
    with serving(in_turn(Fault(body=body))) as server:
        with pytest.raises(ProviderError, match="its response is not a chat reply"):
            chat_at(server, provider=provider)(SAID)
        assert len(server.seen) == 1


def test_the_key_is_nowhere_but_in_its_header() -> None:
    quoting = Fault(401, {"error": {"message": f"Incorrect API key: {KEY}"}})
    rubbish = Fault(body=f"you sent {KEY}".encode())
    for provider in DIALECTS:
        for fault in (quoting, rubbish):
            with serving(in_turn(fault)) as server:
                chat = chat_at(server, provider=provider, api_key=KEY)
                with pytest.raises(ProviderError, match=r"\*\*\*") as caught:
                    chat(SAID)
            shown = f"{caught.value!r} {caught.value.__dict__} {chat!r} {chat.settings!r}"
            assert KEY not in shown
            assert KEY not in json.dumps(server.seen[0].data)


def test_a_redirect_is_not_followed() -> None:
    with serving(in_turn("hello")) as other:
        away = Fault(307, headers={"Location": f"{other.url}/chat/completions"})
        with serving(in_turn(away)) as server, pytest.raises(ProviderError, match="redirects"):
            chat_at(server, api_key=KEY)(SAID)
        assert other.seen == []


# -- pace ------------------------------------------------------------------------------------------


def test_requests_keep_the_pace() -> None:
    with serving(in_turn("ok")) as server:
        chat = chat_at(server, requests_per_minute=600)
        begun = time.monotonic()
        for _ in range(4):
            chat(SAID)
        assert time.monotonic() - begun >= 0.3


def test_no_more_than_so_many_requests_run_at_once() -> None:
    arrived = threading.Semaphore(0)
    release = threading.Event()

    def model(_: Seen) -> Answer:
        arrived.release()
        release.wait(PATIENCE_S)
        return "ok"

    with serving(model) as server:
        chat = chat_at(server, requests_at_once_max=2)
        threads = [threading.Thread(target=chat, args=(SAID,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        assert arrived.acquire(timeout=PATIENCE_S)
        assert arrived.acquire(timeout=PATIENCE_S)
        # Both are held, so a third can only come if nothing keeps it back.
        assert not arrived.acquire(timeout=0.2)
        release.set()
        for thread in threads:
            thread.join()
    assert len(server.seen) == 6


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"provider": "gemini"}, "provider"),
        ({"base_url": "localhost"}, "base_url"),
        ({"base_url": "http://user:pw@h/v1"}, "base_url"),
        ({"model": " "}, "model"),
        ({"api_key": ""}, "api_key"),
        ({"api_key": "a\nb"}, "api_key"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"retries_max": -1}, "retries_max"),
        ({"rest_s": -1}, "rest_s"),
        ({"requests_at_once_max": 0}, "requests_at_once_max"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    settings: dict[str, Any] = {"provider": "openai", "base_url": "http://h/v1", "model": "m"}
    with pytest.raises(InvalidInputError, match=complaint):
        ChatSettings(**(settings | wrong))


@pytest.mark.parametrize("given", ["hi", [], [{}], [{"role": "user"}], [{"role": 3}], [7]])
def test_what_are_no_messages_is_refused(given: Any) -> None:
    chat = chat_from("ollama", model="m")
    with pytest.raises(InvalidInputError, match="messages"):
        chat(given)


def test_a_provider_is_known_by_its_name() -> None:
    for name, (dialect, url) in PROVIDERS.items():
        settings = chat_from(name, None, "m", "", timeout_s=5.0).settings
        assert (settings.provider, settings.base_url) == (dialect, url)
        assert (settings.api_key, settings.timeout_s) == (None, 5.0)
    assert chat_from("OpenAI", "http://h:1/v1", "m", "k").settings.base_url == "http://h:1/v1"
    with pytest.raises(InvalidInputError, match="openai, anthropic, ollama"):
        chat_from("gemini", model="m")
    with pytest.raises(InvalidInputError, match="model"):
        chat_from("openai")
    with pytest.raises(InvalidInputError, match="contains an address"):
        chat_from("openai", model="m@http://localhost:1/v1")


def test_a_model_is_named_with_its_provider_and_perhaps_an_address() -> None:
    assert parse_model_name("openai:m") == ("openai", "m", None)
    assert parse_model_name("vllm:org/m:7b@http://h:1/v1") == ("vllm", "org/m:7b", "http://h:1/v1")
    assert parse_model_name("openai:m@2@https://h/v1") == ("openai", "m@2", "https://h/v1")
    assert parse_model_name("ollama:m").address == "http://localhost:11434/v1"


@pytest.mark.parametrize(
    "spec", ["m", "openai:", ":m", "openai:@http://h/v1", "openai:m@h:1/v1", "openai:m@ftp://h"]
)
def test_what_is_no_address_is_not_taken_for_a_part_of_the_name(spec: str) -> None:
    with pytest.raises(InvalidInputError, match=r"provider:model|is not an address"):
        parse_model_name(spec)


# -- a function of the caller's own ----------------------------------------------------------------


def test_any_function_will_do_in_place_of_an_endpoint() -> None:
    assert ask_text(lambda messages: messages[-1]["content"].upper(), SAID).text.startswith("HI")


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda messages: 1 / 0, "ZeroDivisionError"),
        (lambda messages: None, "NoneType, not text"),
        (lambda messages: " ", "empty"),
    ],
)
def test_a_function_that_fails_in_whatever_way_is_a_model_that_failed(
    function: Any, complaint: str
) -> None:
    with pytest.raises(ProviderError, match=complaint):
        ask_text(function, SAID)


def test_a_chat_shows_its_settings_without_the_key() -> None:
    chat = Chat(ChatSettings(provider="openai", base_url="http://h/v1", model="m", api_key=KEY))
    assert "http://h/v1" in repr(chat)
    assert KEY not in repr(chat)
