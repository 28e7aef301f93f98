"""Installing a model: from a hub that behaves and one that does not, and from what a user has."""

from __future__ import annotations

import fcntl
import hashlib
import random
import resource
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from worlddb.embed import embedder_catalog as catalog
from worlddb.embed.embedder_catalog import (
    ARCTIC_EMBED_S,
    InstallableModel,
    ModelFile,
    installed,
    model_folder,
)
from worlddb.embed.model_installation import install
from worlddb.errors import ConflictError, InvalidInputError, ProviderError, StorageError

from .server import Answer, Seen, in_turn, serving

WORDS = b"".join(b"word%d\n" % number for number in range(100))
WEIGHTS = random.Random(5).randbytes(600_000)


def pinned(name: str, content: bytes, *, remote: str = "", text: bool = False) -> ModelFile:
    digest = hashlib.sha256(content).hexdigest()
    return ModelFile(name=name, remote=remote or name, size=len(content), sha256=digest, text=text)


TINY = InstallableModel(
    name="tiny",
    model_id="tiny-4",
    dim=4,
    licence="CC0-1.0",
    repository="someone/tiny",
    revision="abc123",
    files=(
        pinned("vocab.txt", WORDS, text=True),
        pinned("model.onnx", WEIGHTS, remote="onnx/model_quantized.onnx"),
    ),
)
PATHS = {
    "/someone/tiny/resolve/abc123/vocab.txt": WORDS,
    "/someone/tiny/resolve/abc123/onnx/model_quantized.onnx": WEIGHTS,
}
MODEL_PATH = "/someone/tiny/resolve/abc123/onnx/model_quantized.onnx"


def hub(seen: Seen) -> Answer:
    """Answer as a hub does, also for the rest of a file."""
    body = PATHS[seen.path]
    asked = seen.headers.get("Range")
    if asked is None:
        return Answer(body)
    start = int(asked.removeprefix("bytes=").removesuffix("-"))
    return Answer(body[start:], status=206)


def hub_but_for_the_model(answer: Callable[[Seen], Answer]) -> Callable[[Seen], Answer]:
    return lambda seen: answer(seen) if seen.path == MODEL_PATH else hub(seen)


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def assert_installed(folder: Path) -> None:
    assert names_in(folder) == ["tiny", "tiny/model.onnx", "tiny/vocab.txt"]
    assert (folder / "tiny/vocab.txt").read_bytes() == WORDS
    assert (folder / "tiny/model.onnx").read_bytes() == WEIGHTS


def test_from_the_hub_every_file_comes_from_the_pinned_revision(tmp_path: Path) -> None:
    steps: list[int] = []
    with serving(hub) as server:
        home = install(TINY, tmp_path, hub=server.url, on_progress=steps.append)
        assert [seen.path for seen in server.seen] == list(PATHS)
    assert home == model_folder(TINY, tmp_path)
    assert_installed(tmp_path)
    assert steps == sorted(steps)
    assert steps[-1] == TINY.size == len(WORDS) + len(WEIGHTS)
    assert len(steps) > 4


def test_installing_again_asks_for_nothing_and_mends_what_is_damaged(tmp_path: Path) -> None:
    with serving(hub) as server:
        install(TINY, tmp_path, hub=server.url)
        server.seen.clear()
        install(TINY, tmp_path, hub=server.url)
        assert server.seen == []
        weights = tmp_path / "tiny/model.onnx"
        weights.write_bytes(WEIGHTS[:-1] + b"\0")
        install(TINY, tmp_path, hub=server.url)
        assert [seen.path for seen in server.seen] == [MODEL_PATH]
    assert_installed(tmp_path)


def test_a_redirect_is_followed_as_hubs_send_to_their_storage(tmp_path: Path) -> None:
    def moved(seen: Seen) -> Answer:
        if seen.path.startswith("/storage"):
            return hub(Seen(seen.path.removeprefix("/storage"), seen.headers, b""))
        return Answer(status=302, headers={"Location": f"/storage{seen.path}"})

    with serving(moved) as server:
        install(TINY, tmp_path, hub=server.url)
    assert_installed(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [WEIGHTS[:-1] + bytes([WEIGHTS[-1] ^ 1]), bytes(len(WEIGHTS))],
    ids=["one bit", "all of it"],
)
def test_a_wrong_hash_is_refused_and_nothing_is_left(tmp_path: Path, wrong: bytes) -> None:
    with (
        serving(hub_but_for_the_model(in_turn(Answer(wrong)))) as server,
        pytest.raises(ProviderError, match=r"the sha256 is .* the pinned one is") as caught,
    ):
        install(TINY, tmp_path, hub=server.url)
    assert hashlib.sha256(wrong).hexdigest() in str(caught.value)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("status", [404, 401, 500, 503])
def test_a_hub_that_says_no_is_quoted_and_nothing_is_left(tmp_path: Path, status: int) -> None:
    with serving(hub_but_for_the_model(in_turn(Answer(status=status)))) as server:
        with pytest.raises(ProviderError, match=rf"model_quantized.onnx: HTTP {status} "):
            install(TINY, tmp_path, hub=server.url)
        assert len(server.seen) == 2
    assert names_in(tmp_path) == []


def test_a_page_in_place_of_the_file_is_refused_by_its_size(tmp_path: Path) -> None:
    page = Answer(b"<html>please log in to this network</html>")
    with (
        serving(in_turn(page)) as server,
        pytest.raises(ProviderError, match=r"sends 42 bytes instead of "),
    ):
        install(TINY, tmp_path, hub=server.url)
    assert names_in(tmp_path) == []


def test_an_answer_without_end_is_cut_off(tmp_path: Path) -> None:
    endless = Answer(WEIGHTS + WEIGHTS, headers={"Content-Length": ""})
    with (
        serving(hub_but_for_the_model(in_turn(endless))) as server,
        pytest.raises(ProviderError, match="sends more than 600,000 bytes"),
    ):
        install(TINY, tmp_path, hub=server.url)
    assert names_in(tmp_path) == []


def test_a_connection_that_breaks_off_is_taken_up_where_it_ended(tmp_path: Path) -> None:
    breaks = iter([True, True, False])

    def shaky(seen: Seen) -> Answer:
        whole = hub(seen)
        cut = 200_000 if next(breaks) else None
        return Answer(whole.body, status=whole.status, cut=cut)

    with serving(hub_but_for_the_model(shaky)) as server:
        install(TINY, tmp_path, hub=server.url)
        ranges = [seen.headers.get("Range") for seen in server.seen[1:]]
    assert ranges == [None, "bytes=200000-", "bytes=400000-"]
    assert_installed(tmp_path)


def test_what_came_before_giving_up_is_kept_for_the_next_time(tmp_path: Path) -> None:
    def shaky(seen: Seen) -> Answer:
        whole = hub(seen)
        return Answer(whole.body, status=whole.status, cut=100_000)

    with (
        serving(hub_but_for_the_model(shaky)) as server,
        pytest.raises(ProviderError, match="broke 3 times, after 300,000 of 600,000"),
    ):
        install(TINY, tmp_path, hub=server.url)
    assert not any(path.suffix != ".part" for path in (tmp_path / "tiny").iterdir())
    with serving(hub) as server:
        install(TINY, tmp_path, hub=server.url)
        assert server.seen[-1].headers["Range"] == "bytes=300000-"
    assert_installed(tmp_path)


@pytest.mark.parametrize("status", [200, 416])
def test_a_hub_that_knows_no_ranges_is_asked_for_the_whole_file_again(
    tmp_path: Path, status: int
) -> None:
    def simple(seen: Seen) -> Answer:
        if "Range" not in seen.headers:
            # The first time it breaks off.
            first = [it for it in server.seen if it.path == MODEL_PATH] == [seen]
            return Answer(WEIGHTS, cut=1_000 if first else None)
        return Answer(WEIGHTS) if status == 200 else Answer(status=416)

    with serving(hub_but_for_the_model(simple)) as server:
        install(TINY, tmp_path, hub=server.url)
    assert_installed(tmp_path)


def test_rubbish_from_an_earlier_try_is_found_out_and_removed(tmp_path: Path) -> None:
    model = TINY.files[1]
    part = tmp_path / "tiny" / f".model.onnx.{model.sha256[:12]}.part"
    part.parent.mkdir()
    part.write_bytes(b"rubbish")
    with serving(hub) as server:
        with pytest.raises(ProviderError, match="the pinned one is"):
            install(TINY, tmp_path, hub=server.url)
        assert names_in(tmp_path) == []
        part.parent.mkdir()
        part.write_bytes(bytes(model.size + 1))
        install(TINY, tmp_path, hub=server.url)
    assert_installed(tmp_path)


def test_a_hub_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    with (
        serving(in_turn(Answer(late=True))) as server,
        pytest.raises(ProviderError, match="cannot be reached: timed out"),
    ):
        install(TINY, tmp_path, hub=server.url, timeout_s=0.2)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[::1", "no url", "http://a..b"])
def test_a_hub_that_is_not_there_is_told_in_words(tmp_path: Path, url: str) -> None:
    with pytest.raises(ProviderError, match=r"vocab.txt: cannot be reached"):
        install(TINY, tmp_path, hub=url)
    assert names_in(tmp_path) == []


def test_two_at_once_do_not_write_into_the_same_file(tmp_path: Path) -> None:
    part = tmp_path / "tiny" / f".vocab.txt.{TINY.files[0].sha256[:12]}.part"
    part.parent.mkdir()
    with open(part, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ConflictError, match="another process is installing"):
            install(TINY, tmp_path, source=tmp_path)


def files_under(folder: Path, *, vocabulary: bytes = WORDS, weights: bytes = WEIGHTS) -> Path:
    """A folder as a user may have it: other names, other places, and more besides."""
    (folder / "deep").mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(vocabulary)
    (folder / "deep/whatever.bin").write_bytes(weights)
    (folder / "deep/model.onnx").write_bytes(b"another model")
    (folder / "same size").write_bytes(bytes(len(WEIGHTS)))
    return folder


def zipped(folder: Path, archive: Path) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, Path("package") / path.relative_to(folder))
    return archive


def test_from_a_folder_files_are_known_by_their_hash(tmp_path: Path) -> None:
    source = files_under(tmp_path / "source")
    install(TINY, tmp_path / "models", source=source)
    assert_installed(tmp_path / "models")


def test_from_a_wheel_or_zip(tmp_path: Path) -> None:
    archive = zipped(files_under(tmp_path / "source"), tmp_path / "some-1.0-py3-none-any.whl")
    install(TINY, tmp_path / "models", source=str(archive))
    assert_installed(tmp_path / "models")


def test_from_a_file_with_the_others_beside_it(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(WEIGHTS)
    (tmp_path / "words").write_bytes(WORDS)
    install(TINY, tmp_path / "models", source=tmp_path / "weights")
    assert_installed(tmp_path / "models")


def test_a_text_with_the_line_ends_of_another_system_is_the_same_text(tmp_path: Path) -> None:
    source = files_under(tmp_path / "source", vocabulary=WORDS.replace(b"\n", b"\r\n"))
    install(TINY, tmp_path / "a", source=source)
    assert_installed(tmp_path / "a")
    install(TINY, tmp_path / "b", source=zipped(source, tmp_path / "it.zip"))
    assert_installed(tmp_path / "b")


@pytest.mark.parametrize("wrong", [WEIGHTS[:-1], WEIGHTS[:-1] + b"!", b""])
def test_a_source_without_the_right_file_installs_nothing(tmp_path: Path, wrong: bytes) -> None:
    source = files_under(tmp_path / "source", weights=wrong)
    with pytest.raises(ProviderError, match=r"has no model.onnx of tiny \(600,000 bytes"):
        install(TINY, tmp_path / "models", source=source)
    assert names_in(tmp_path / "models") == []


def test_a_file_of_the_right_name_that_is_another_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/vocab.txt").write_bytes(WORDS)
    (tmp_path / "source/model_quantized.onnx").write_bytes(b"short")
    with pytest.raises(ProviderError, match=r"model_quantized.onnx is another file \(5 bytes\)"):
        install(TINY, tmp_path / "models", source=tmp_path / "source")


def test_an_archive_that_claims_one_size_and_has_another_is_refused(tmp_path: Path) -> None:
    source = files_under(tmp_path / "source", weights=bytes(3_000_000))
    archive = zipped(source, tmp_path / "it.zip")
    claims = archive.read_bytes().replace(
        struct.pack("<L", 3_000_000), struct.pack("<L", len(WEIGHTS))
    )
    archive.write_bytes(claims)
    with pytest.raises(ProviderError, match="cannot be unpacked"):
        install(TINY, tmp_path / "models", source=archive)
    assert names_in(tmp_path / "models") == []


def test_a_damaged_archive_is_told_in_words(tmp_path: Path) -> None:
    archive = zipped(files_under(tmp_path / "source"), tmp_path / "it.zip")
    data = bytearray(archive.read_bytes())
    middle = data.index(WEIGHTS[1_000:1_016])
    data[middle] ^= 1
    archive.write_bytes(data)
    with pytest.raises(ProviderError, match="cannot be unpacked"):
        install(TINY, tmp_path / "models", source=archive)
    assert names_in(tmp_path / "models") == []


def test_a_source_that_is_missing_and_a_folder_that_cannot_be_made_are_storage_errors(
    tmp_path: Path,
) -> None:
    with pytest.raises(StorageError, match="no such file or folder"):
        install(TINY, tmp_path / "models", source=tmp_path / "typo")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file"):
        install(TINY, tmp_path / "file", source=tmp_path)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    """The limit on file sizes stands for the disk: writing beyond it fails in the same places."""
    files_under(tmp_path / "source")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(WEIGHTS) // 2, before[1]))
    try:
        with pytest.raises(StorageError, match="File too large"):
            install(TINY, tmp_path / "models", source=tmp_path / "source")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names_in(tmp_path / "models") == []
    install(TINY, tmp_path / "models", source=tmp_path / "source")
    assert_installed(tmp_path / "models")


def test_a_model_that_is_not_in_the_catalogue_is_refused_with_those_that_are(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidInputError, match="available are arctic-embed-s"):
        install("gpt-9", tmp_path)
    with pytest.raises(InvalidInputError, match="available are arctic-embed-s"):
        installed("gpt-9", tmp_path)


def test_the_real_model_is_in_the_wheel_and_is_known_as_installed(
    arctic_models: Path, tmp_path: Path
) -> None:
    assert installed("arctic-embed-s", arctic_models)
    assert not installed("arctic-embed-s", tmp_path)
    home = model_folder(ARCTIC_EMBED_S, tmp_path)
    home.mkdir()
    (home / "vocab.txt").write_bytes(b"")
    (home / "model.onnx").write_bytes(b"")
    assert not installed("arctic-embed-s", tmp_path)


def test_the_pinned_addresses_are_those_of_the_hub() -> None:
    urls = [ARCTIC_EMBED_S.url(file) for file in ARCTIC_EMBED_S.files]
    start = (
        "https://huggingface.co/Snowflake/snowflake-arctic-embed-s/resolve/"
        "e596f507467533e48a2e17c007f0e1dacc837b33"
    )
    assert urls == [f"{start}/vocab.txt", f"{start}/onnx/model_quantized.onnx"]
    assert ARCTIC_EMBED_S.url(ARCTIC_EMBED_S.files[0], "http://mirror/").startswith(
        "http://mirror/S"
    )


def test_the_users_models_lie_in_their_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr("sys.platform", "linux")
    assert catalog.default_models_dir() == Path("/home/ada/.local/share/worlddb/models")
    monkeypatch.setattr("sys.platform", "darwin")
    assert catalog.default_models_dir() == Path(
        "/home/ada/Library/Application Support/worlddb/models"
    )
