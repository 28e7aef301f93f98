"""Endpoints: a real server, well and ill."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from patience import PATIENCE_S, until
from worlddb.embed.embedder import checked
from worlddb.embed.external_embedders import EmbeddingEndpoint, EndpointEmbedder
from worlddb.errors import InvalidInputError, ProviderError

from .server import Answer, Seen, Server, in_turn, serving

KEY = "sk-very-secret-0123"


def vector_of(text: str, dim: int) -> list[float]:
    return [float(len(text)), *(float(ord(text[0]) % (n + 2)) for n in range(dim - 1))]


def good(seen: Seen, *, dim: int = 4) -> Answer:
    """Answer as such servers do."""
    asked = seen.data
    dim = asked.get("dimensions", dim)
    rows = [
        {"object": "embedding", "index": place, "embedding": vector_of(text, dim)}
        for place, text in enumerate(asked["input"])
    ]
    return data({"object": "list", "data": rows, "model": asked["model"]})


def data(value: Any, **more: Any) -> Answer:
    return Answer(json.dumps(value).encode(), **more)


def at(server: Server, **options: Any) -> EndpointEmbedder:
    settings: dict[str, Any] = {"model": "m", "backoff_s": 0.001, "timeout_s": PATIENCE_S} | options
    return EndpointEmbedder(EmbeddingEndpoint(base_url=f"{server.url}/v1", **settings))


def first(*answers: Answer) -> Callable[[Seen], Answer]:
    """Give these answers first, then good ones."""
    left = list(answers)
    return lambda seen: left.pop(0) if left else good(seen)


def test_texts_are_posted_and_vectors_come_back_in_order() -> None:
    with serving(good) as server:
        vectors = checked(at(server, api_key=KEY), ["a", "bb", "ccc"], "document")
    (seen,) = server.seen
    assert seen.path == "/v1/embeddings"
    assert seen.data == {"model": "m", "input": ["a", "bb", "ccc"]}
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.headers["Content-Type"] == "application/json"
    expected = np.array([vector_of(text, 4) for text in ("a", "bb", "ccc")])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, rtol=1e-5)


def test_rows_are_ordered_by_their_index() -> None:
    def shuffled(seen: Seen) -> Answer:
        answer = json.loads(good(seen).body)
        answer["data"].reverse()
        return data(answer)

    with serving(good) as plain, serving(shuffled) as other:
        texts = ["a", "bb", "ccc"]
        assert np.array_equal(
            checked(at(plain), texts, "query"), checked(at(other), texts, "query")
        )


def test_rows_without_an_index_are_in_the_order_of_the_texts() -> None:
    def bare(seen: Seen) -> Answer:
        rows = [{"embedding": vector_of(text, 4)} for text in seen.data["input"]]
        return data({"data": rows})

    with serving(good) as plain, serving(bare) as other:
        assert np.array_equal(
            checked(at(plain), ["a", "bb"], "query"), checked(at(other), ["a", "bb"], "query")
        )


def test_many_texts_go_in_batches() -> None:
    with serving(good) as server:
        vectors = checked(at(server, batch_size=4), [f"t{n}" for n in range(10)], "document")
    assert [len(seen.data["input"]) for seen in server.seen] == [4, 4, 2]
    assert vectors.shape == (10, 4)


def test_without_a_key_no_authorization_is_sent_and_any_text_can_be() -> None:
    with serving(good) as server:
        checked(at(server), ["日本 \ud800 \0 \x1b\"'"], "document")
    assert "Authorization" not in server.seen[0].headers
    assert server.seen[0].data["input"] == ["日本 �   \x1b\"'"]


def test_the_dimension_is_learned_from_the_first_answer_or_asked_for() -> None:
    with serving(good) as server:
        embedder = at(server)
        checked(embedder, ["a"], "query")
        assert embedder.dim == 4
        assert len(server.seen) == 1
        assert at(server).dim == 4
        assert len(server.seen) == 2
        shorter = at(server, dimensions=3)
        assert shorter.dim == 3
        assert len(server.seen) == 2
        assert checked(shorter, ["a"], "query").shape == (1, 3)
        assert server.seen[-1].data["dimensions"] == 3


def test_prefixes_stand_before_what_is_sent() -> None:
    with serving(good) as server:
        embedder = at(server, query_prefix="query: ", document_prefix="passage: ")
        checked(embedder, ["a"], "query")
        checked(embedder, ["b"], "document")
    assert [seen.data["input"] for seen in server.seen] == [["query: a"], ["passage: b"]]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_passes_is_tried_again(status: int) -> None:
    bad = data({"error": {"message": "busy"}}, status=status)
    with serving(first(bad, bad)) as server:
        assert checked(at(server), ["a"], "query").shape == (1, 4)
    assert len(server.seen) == 3


def test_a_connection_that_breaks_off_is_tried_again() -> None:
    whole = json.dumps({"data": [{"index": 0, "embedding": [1, 2, 3, 4]}]}).encode()
    cut = Answer(whole, cut=20)
    chunked = Answer(b"20\r\nabc", headers={"Content-Length": "", "Transfer-Encoding": "chunked"})
    with serving(first(cut, chunked)) as server:
        assert checked(at(server), ["a"], "query").shape == (1, 4)
    assert len(server.seen) == 3


def test_after_the_last_try_the_servers_reason_is_told() -> None:
    with serving(in_turn(data({"error": {"message": "out\nof  cake"}}, status=503))) as server:
        with pytest.raises(ProviderError, match=r"HTTP 503: out of cake \(tried 3 times\)"):
            checked(at(server, retries=2), ["a"], "query")
        assert len(server.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_does_not_pass_is_told_at_once(status: int) -> None:
    with serving(in_turn(data({"error": "no such model"}, status=status))) as server:
        with pytest.raises(ProviderError, match=rf"#m: HTTP {status}: no such model"):
            checked(at(server), ["a"], "query")
        assert len(server.seen) == 1


@pytest.mark.parametrize("body", [b"", b"plain words", b"[]", b'{"error": {}}', b"\xff\xfe"])
def test_an_error_without_json_is_told_as_it_is(body: bytes) -> None:
    with (
        serving(in_turn(Answer(body, status=400))) as server,
        pytest.raises(ProviderError, match=r"HTTP 400: .+"),
    ):
        checked(at(server), ["a"], "query")


def test_the_server_says_how_long_to_wait() -> None:
    busy = Answer(status=429, headers={"Retry-After": "1"})
    with serving(first(busy)) as server:
        begun = time.monotonic()
        checked(at(server), ["a"], "query")
        assert time.monotonic() - begun >= 1


def test_a_date_to_wait_for_that_has_passed_means_now() -> None:
    busy = Answer(status=503, headers={"Retry-After": "Sat, 01 Jan 2000 00:00:00 GMT"})
    odd = Answer(status=503, headers={"Retry-After": "soon"})
    with serving(first(busy, odd)) as server:
        embedder = at(server, backoff_s=0.001)
        assert checked(embedder, ["a"], "query").shape == (1, 4)


@pytest.mark.parametrize("wait", ["3600", "Fri, 01 Jan 2100 00:00:00 GMT", "inf"])
def test_a_server_that_wants_a_long_pause_is_not_waited_for(wait: str) -> None:
    with serving(in_turn(Answer(status=429, headers={"Retry-After": wait}))) as server:
        with pytest.raises(ProviderError, match="HTTP 429"):
            checked(at(server), ["a"], "query")
        assert len(server.seen) == 1


def test_a_server_that_says_nothing_is_given_up() -> None:
    with serving(in_turn(Answer(late=True))) as server:
        with pytest.raises(ProviderError, match=r"no answer: timed out \(tried 2 times\)"):
            checked(at(server, timeout_s=0.2, retries=1), ["a"], "query")
        until(lambda: len(server.seen) == 2)


def test_a_server_that_lets_single_bytes_trickle_is_given_up() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                # Each byte would begin a new wait of the whole length.
                while True:
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return
                    gone.wait(0.02)

        gone = threading.Event()
        thread = threading.Thread(target=trickle)
        thread.start()
        port = listener.getsockname()[1]
        endpoint = EmbeddingEndpoint(
            base_url=f"http://127.0.0.1:{port}/v1", model="m", timeout_s=0.3, retries=0
        )
        with pytest.raises(ProviderError, match="timed out"):
            checked(EndpointEmbedder(endpoint), ["a"], "query")
        gone.set()
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (Answer(b'{"data": [{"embed'), "not a list of embeddings"),
        (Answer(b"<html>"), "not a list of embeddings.*<html>"),
        (Answer(b"\xff\xfe\xfd"), "not a list of embeddings"),
        (data([]), "not a list of embeddings"),
        (data({"data": None}), "not a list of embeddings"),
        (data({"data": [{"index": 0}]}), "not a list of embeddings"),
        (data({"data": [{"index": 0, "embedding": ["x"]}]}), "not a list of embeddings"),
        (data({"data": [{"index": 0, "embedding": "AAAA"}]}), "not a list of embeddings"),
        (data({"data": [{"index": 0, "embedding": 3}]}), "not lists of numbers"),
        (data({"data": [{"index": 0, "embedding": []}]}), "not lists of numbers"),
        (data({"data": []}), "returned 0 embeddings for 1 texts"),
        (data({"data": [{"index": 0, "embedding": [1]}] * 2}), "2 embeddings for 1 texts"),
        (data({"data": [{"index": 7, "embedding": [1]}]}), r"numbers its embeddings \[7\]"),
        (data({"data": [{"index": 0, "embedding": [1, float("nan")]}]}), "NaN or infinite"),
    ],
)
def test_an_answer_that_is_none_is_refused_at_once(answer: Answer, complaint: str) -> None:
    with serving(in_turn(answer)) as server:
        with pytest.raises(ProviderError, match=complaint):
            checked(at(server), ["a"], "query")
        assert len(server.seen) == 1


def test_vectors_of_another_length_are_refused() -> None:
    other = data({"data": [{"index": 0, "embedding": [1, 2]}]})
    with (
        serving(in_turn(other)) as server,
        pytest.raises(ProviderError, match="vectors of 2 numbers, expected 3"),
    ):
        checked(at(server, dimensions=3), ["a"], "query")
    with serving(in_turn(data({"data": [{"index": 0, "embedding": [1, 2, 3]}]}), other)) as server:
        embedder = at(server)
        assert embedder.dim == 3
        with pytest.raises(ProviderError, match="vectors of 2 numbers, expected 3"):
            checked(embedder, ["a"], "query")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_so_that_no_other_server_gets_the_key(status: int) -> None:
    with serving(good) as other:
        away = Answer(status=status, headers={"Location": f"{other.url}/v1/embeddings"})
        with (
            serving(in_turn(away)) as server,
            pytest.raises(ProviderError, match="redirects; give this address as base_url") as it,
        ):
            checked(at(server, api_key=KEY), ["a"], "query")
        assert other.url in str(it.value)
        assert other.seen == []


def test_no_error_and_no_representation_shows_the_key() -> None:
    quoting = data({"error": {"message": f"Incorrect API key: {KEY}"}}, status=401)
    rubbish = Answer(f"you sent {KEY}".encode())
    for answer in (quoting, rubbish):
        with serving(in_turn(answer)) as server:
            embedder = at(server, api_key=KEY)
            with pytest.raises(ProviderError, match=r"\*\*\*") as caught:
                checked(embedder, ["a"], "query")
        assert KEY not in str(caught.value)
    assert KEY not in repr(EmbeddingEndpoint(base_url="http://h/v1", model="m", api_key=KEY))
    with pytest.raises(InvalidInputError) as refused:
        EmbeddingEndpoint(base_url="http://h/v1", model="m", api_key=f"{KEY}\r\nX-Evil: 1")
    assert KEY not in str(refused.value)


def test_a_server_that_is_not_there_is_told_in_words() -> None:
    endpoint = EmbeddingEndpoint(
        base_url="http://127.0.0.1:1/v1", model="m", retries=1, backoff_s=0
    )
    with pytest.raises(ProviderError, match=r"no answer: .*refused.* \(tried 2 times\)"):
        checked(EndpointEmbedder(endpoint), ["a"], "query")


def test_no_proxy_stands_between_us_and_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(good) as server:
        assert checked(at(server), ["a"], "query").shape == (1, 4)


def test_the_model_id_has_all_that_vectors_depend_on_but_not_the_key() -> None:
    url = "http://localhost:11434/v1"
    plain = EmbeddingEndpoint(base_url=f"{url}/", model="nomic-embed-text", api_key=KEY, retries=9)
    assert plain.model_id == f"{url}#nomic-embed-text"
    asked = EmbeddingEndpoint(
        base_url=url, model="m", dimensions=512, query_prefix="q: ", document_prefix="d: "
    )
    assert asked.model_id == f"{url}#m?dimensions=512&query_prefix=q%3A+&document_prefix=d%3A+"


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "localhost:11434"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "http://"},
        {"base_url": "http://[::1/v1"},
        {"base_url": "http://host:99999/v1"},
        {"base_url": "http://user:pw@host/v1"},
        {"base_url": "http://host/v1?key=1"},
        {"model": " "},
        {"api_key": ""},
        {"api_key": "schlüssel"},
        {"dimensions": 0},
        {"retries": -1},
        {"batch_size": 0},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"backoff_s": -1},
    ],
)
def test_options_that_cannot_work_are_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        EmbeddingEndpoint(**{"base_url": "http://host/v1", "model": "m"} | wrong)
