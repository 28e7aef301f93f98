"""WordPiece: the ids that the reference tokenizer gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece as ReferenceModel
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S, model_folder
from worlddb.embed.onnx_embedder import WordPiece

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("un", "##aff", "##able", "want", "##want", "##ed", "wa", "run", "##n", "##ing", "low", "est"),
    *(chr(code) for code in range(33, 127)),
    *(f"##{chr(code)}" for code in range(97, 123)),
    *("e", "é", "日", "本", "に", "ᄀ", "##ᅡ", "σ", "##σ", "ß", "i", "。", "“", "€", "##€", "½"),
]


def reference(pieces: list[str]) -> Tokenizer:
    """The same tokenizer, put together from the library's parts."""
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(ReferenceModel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def ids_of(tokenizer: Tokenizer, pieces: list[str], text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text).ids
    return [pieces.index("[CLS]"), *ids, pieces.index("[SEP]")]


def random_texts(count: int) -> list[str]:
    blocks = ((32, 127), (160, 592), (880, 1024), (1536, 1563), (0x1100, 0x1200), (0x2000, 0x2070))
    more = ((0x3000, 0x30FF), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0x1F300, 0x1F600))
    characters = [chr(code) for block in blocks + more for code in range(*block)]
    rng = random.Random(7)
    return ["".join(rng.choices(characters, k=rng.randint(1, 60))) for _ in range(count)]


@pytest.mark.parametrize(
    "text",
    [
        "UNwantéd,running",
        "unaffable lowest",
        "日本に wanted",
        "가 Σίσυφος ΣΣ İ ß",
        "a\u200bb\u00adc\x00d\x85e\ufffdf",
        "tabs\tand\r\nlines\u2028and\u3000spaces",
        "“quotes” 1,234.56€ ½ x^2 a_b `c` $5",
        "cafe\u0301 caf\u00e9",
        "w" * 100,
        "w" * 101,
        "😀 wanted",
        "",
        "   ",
    ],
)
def test_a_text_has_the_ids_of_the_reference(text: str) -> None:
    assert WordPiece(PIECES).encode(text) == ids_of(reference(PIECES), PIECES, text)


def test_random_texts_have_the_ids_of_the_reference() -> None:
    ours, theirs = WordPiece(PIECES), reference(PIECES)
    texts = random_texts(3_000)
    assert [ours.encode(text) for text in texts] == [ids_of(theirs, PIECES, t) for t in texts]


def test_with_the_real_vocabulary_it_agrees_as_well(arctic_models: Path) -> None:
    file = model_folder(ARCTIC_EMBED_S, arctic_models) / "vocab.txt"
    pieces = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    ours, theirs = WordPiece(pieces, tokens_max=10_000), reference(pieces)
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))[:40]
    texts = random_texts(1_000)
    texts += [part for path in sources for part in path.read_text("utf-8").split("\n\n")]
    assert [ours.encode(text) for text in texts] == [ids_of(theirs, pieces, t) for t in texts]


def test_a_control_token_in_a_text_is_text() -> None:
    brackets = [PIECES.index(sign) for sign in "[]"]
    ids = WordPiece(PIECES).encode("[SEP]")
    assert [ids[1], ids[-2]] == brackets
    assert ids.count(PIECES.index("[SEP]")) == 1


def test_a_long_text_is_cut_and_still_closed() -> None:
    ids = WordPiece(PIECES, tokens_max=16).encode("run " * 1_000)
    assert len(ids) == 16
    assert ids[0] == PIECES.index("[CLS]")
    assert ids[-1] == PIECES.index("[SEP]")
    # A word of several pieces may be cut in the middle, as in the reference.
    assert len(WordPiece(PIECES, tokens_max=4).encode("unaffable")) == 4


def test_more_words_than_are_kept_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worlddb.embed.onnx_embedder.WORDS_CACHED_MAX", 3)
    text = "unaffable running wanted lowest run " * 3
    assert WordPiece(PIECES).encode(text) == ids_of(reference(PIECES), PIECES, text)


def test_a_vocabulary_without_control_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no \[CLS\], \[SEP\]"):
        WordPiece(["[UNK]", "a"])
