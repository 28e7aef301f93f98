"""Secrets in a text: what is found, what is not, and what takes its place."""

from __future__ import annotations

import pytest

from worlddb.model.text_safety import secrets_in, without_secrets

# Made up, and put together here so that no scanner takes this file for a leak.
SECRETS = {
    "api key": [
        "sk-" + "ant-api03-" + "Ab1" * 12,
        "sk_" + "live_" + "Ab1" * 8,
        "gh" + "p_" + "Ab1" * 12,
        "github_" + "pat_" + "Ab1" * 10,
        "gl" + "pat-" + "Ab1" * 8,
        "xox" + "b-123456789012-" + "Ab1" * 5,
        "AK" + "IA" + "ABCDEFGHIJ234567",
        "AI" + "za" + "Ab1" * 11 + "xy",
        "hf" + "_" + "Ab1" * 12,
        "GOC" + "SPX-" + "Ab1" * 9,
        "shp" + "at_" + "ab1" * 11,
        "whs" + "ec_" + "Ab1" * 11,
        "xa" + "i-" + "Ab1" * 20,
        "lin" + "_api_" + "Ab1" * 13,
        "da" + "pi" + "0123456789abcdef" * 2,
        "AGE-" + "SECRET-KEY-1" + "QZ9" * 20,
        "123456789:" + "AA" + "Ab1" * 11,
        "hv" + "s." + "Ab1" * 30,
    ],
    "token": [
        "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NTYifQ." + "c2lnbmF0dXJlMTIz",
    ],
    "card number": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"],
}


@pytest.mark.parametrize(
    ("kind", "secret"), [(kind, one) for kind, all_ in SECRETS.items() for one in all_]
)
def test_a_secret_is_left_out_and_the_words_around_it_stay(kind: str, secret: str) -> None:
    text = f"We pay with {secret}, and the deploy runs at noon."
    assert without_secrets(text) == f"We pay with [secret: {kind}], and the deploy runs at noon."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=[secret: password]"),
        ('"client_secret": "abcdefghij"', '"client_secret": "[secret: password]"'),
        ("my password is tr0ub4dor&3", "my password is [secret: password]"),
        ("api key: 9f8e7d6c5b4a39", "api key: [secret: password]"),
        ("postgres://ada:s3cret@db/x", "postgres://ada:[secret: password]@db/x"),
        ("Authorization: Bearer abc123def456ghi789", "Authorization: Bearer [secret: token]"),
        ("Authorization: Basic YWRhOnMzY3JldA==", "Authorization: Basic [secret: password]"),
        ("postgres://ada:p@ss3cret@db/x", "postgres://ada:[secret: password]@db/x"),
        ("redis://:s3cretpass@host", "redis://:[secret: password]@host"),
        ('{"apiKey": "abcd1234efgh"}', '{"apiKey": "[secret: password]"}'),
        (r"{\"password\": \"abcd1234\"}", r"{\"password\": \"[secret: password]\"}"),
        ("AccountKey=Ab1Ab1Ab1+/==;x", "AccountKey=[secret: password];x"),
        ("PGPASSWORD=abc12345 psql", "PGPASSWORD=[secret: password] psql"),
        ("OPENAI_KEY=abc12345", "OPENAI_KEY=[secret: password]"),
        ("login --password abc12345", "login --password [secret: password]"),
        ("curl -u ada:abc12345 x", "curl -u ada:[secret: password] x"),
        ("Mein Passwort ist geheim123", "Mein Passwort ist [secret: password]"),
        ("\u5bc6\u7801\uff1aqwerty12345", "\u5bc6\u7801\uff1a[secret: password]"),
        ("https://x/y?sig=" + "Ab1" * 8, "https://x/y?sig=[secret: token]"),
    ],
)
def test_a_value_after_a_word_that_names_a_secret_is_left_out(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_a_private_key_is_left_out_whole_even_if_its_end_is_missing() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    assert without_secrets(f"a\n{begin}\nMIIE\nabc\n{end}\nb") == "a\n[secret: private key]\nb"
    assert without_secrets(f"a\n{begin}\nMIIE\nabc") == "a\n[secret: private key]"
    # The rest of it came in the next message.
    assert without_secrets(f"MIIEabcdefgh+/12\nabc=\n{end}\nb") == "[secret: private key]\nb"


@pytest.mark.parametrize(
    "text",
    [
        "The password is wrong, please reset it.",
        "Use the token bucket from the rate limiter: it refills slowly.",
        "secret: keep the birthday party from Ada",
        "Order 1234567890123456 is late.",  # The check digit is wrong.
        "commit 3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b",
        "The bearer instruments of 1923 were bonds.",
        "see https://example.org/a/b?token=1 and sk-learn, ask-me-anything",
        "1111111111111111",
        "pi is 3.14159265358979323",
        "sk-learn-is-a-library-for-learning, secret_key_of_the_whole_house",
        "password=${DB_PASSWORD_1} token: <your-token-1> api_key=YOUR_API_KEY_123",
        "token = tokenizer.encode(text1); the password is required!",
        "sha256:" + "3f2a9c1d" * 8 + " 6f1d0c5e-1c8b-4b8e-9a55-3a1c2b7d9e01",
        "post 286801234567890000 by 39911122233344455004",  # Valid check digits, of no issuer.
    ],
)
def test_prose_and_other_numbers_stay_as_they_are(text: str) -> None:
    assert secrets_in(text) == []
    assert without_secrets(text) == text


def test_several_secrets_are_told_by_their_place_and_none_twice() -> None:
    key = "sk-" + "Ab1" * 10
    found = secrets_in(f"token={key} then 4111111111111111")
    assert [one.kind for one in found] == ["api key", "card number"]
    assert [one.start for one in found] == sorted(one.start for one in found)


@pytest.mark.parametrize(
    "text", ["a-", "password: ", "1 ", "token=", "sk-", "A_KEY=", "://a:", "-----BEGIN PRIVATE KEY"]
)
def test_a_hostile_text_does_not_take_for_ever(text: str) -> None:
    assert len(secrets_in(text * 20_000)) <= 1
