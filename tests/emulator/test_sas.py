"""Shared access signatures, as the real client signs them."""

import logging

import pytest
from azure.servicebus._pyamqp.utils import generate_sas_token
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.sas import Keys, Unauthorized

NOW = 1_741_000_000_000
SOON = NOW // 1000 + 60
KEYS = Keys({"Root": "s3cret=", "Other": "0ther"})
HERE = "sb://localhost:5672/lane"


def token(
    resource: str = HERE, name: str = "Root", key: str = "s3cret=", expiry: int = SOON
) -> str:
    signed: str = generate_sas_token(resource, name, key, expiry)  # type: ignore[no-untyped-call]
    return signed


@pytest.mark.parametrize(
    ("granted", "asked"),
    [
        ("sb://localhost:5672/lane", "sb://localhost:5672/lane"),
        ("sb://localhost:5672", "sb://localhost:5672/lane/Subscriptions/ocr"),
        ("sb://localhost:5672/lane", "sb://localhost:5672/lane/Subscriptions/ocr/$DeadLetterQueue"),
        ("https://localhost:5672", "https://localhost:5672/$Resources/topics"),
        ("sb://LOCALHOST/Lane/", "sb://localhost/lane"),
        ("sb://localhost/lane", "sb://localhost:5672/lane"),
        ("amqps://localhost/lane", "sb://localhost/lane"),
        ("sb://localhost/lane", "lane/$management"),
        ("sb://localhost/a%2Fb", "sb://localhost/a/b/Subscriptions/c"),
        ("sb://[::1]:6000/lane", "sb://[::1]:6000/lane"),
    ],
)
def test_a_token_covers_its_resource_and_what_is_below(granted: str, asked: str) -> None:
    KEYS.check(token(granted), asked, NOW)


@pytest.mark.parametrize(
    ("granted", "asked"),
    [
        ("sb://localhost/lane", "sb://localhost/lanes"),
        ("sb://localhost/lane", "sb://localhost/"),
        ("sb://localhost/lane/Subscriptions/ocr", "sb://localhost/lane"),
        ("sb://elsewhere/lane", "sb://localhost/lane"),
        ("sb://[broken/lane", "sb://localhost/lane"),
    ],
)
def test_a_token_covers_nothing_else(granted: str, asked: str) -> None:
    with pytest.raises(Unauthorized):
        KEYS.check(token(granted), asked, NOW)


def test_each_key_of_the_namespace_signs() -> None:
    KEYS.check(token(name="Other", key="0ther"), HERE, NOW)


def test_the_name_of_a_key_may_be_encoded_twice() -> None:
    Keys({"my key": "s3cret="}).check(token(name="my key"), HERE, NOW)


@pytest.mark.parametrize(
    "wrong",
    [
        token(key="guess"),
        token(name="Nobody", key=""),
        token(name="Nobody"),
        token().replace("lane", "pane"),
        token().replace(f"se={SOON}", f"se={SOON + 9}"),
    ],
)
def test_a_token_must_be_signed_with_a_key_of_the_namespace(wrong: str) -> None:
    with pytest.raises(Unauthorized, match="not signed"):
        KEYS.check(wrong, HERE, NOW)


def test_a_token_ends_at_its_expiry() -> None:
    KEYS.check(token(expiry=SOON), HERE, SOON * 1000 - 1)
    with pytest.raises(Unauthorized, match="expired"):
        KEYS.check(token(expiry=SOON), HERE, SOON * 1000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Bearer abc",
        "SharedAccessSignature",
        "SharedAccessSignature sr=a&sig=b&se=c",
        token() + "&se=99999999999",
        token().replace(f"se={SOON}", "se=²"),
    ],
)
def test_what_is_not_a_token_is_refused(text: str) -> None:
    with pytest.raises(Unauthorized):
        KEYS.check(text, HERE, NOW)


@given(st.text())
def test_nothing_but_unauthorized_comes_of_any_text(text: str) -> None:
    with pytest.raises(Unauthorized):
        KEYS.check("SharedAccessSignature sr=" + text, HERE, NOW)


def test_without_keys_everything_passes() -> None:
    assert not Keys()
    Keys().check("", HERE, NOW)


def test_keys_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger(__name__).warning("%r %s", KEYS, KEYS)
    assert "s3cret" not in caplog.text
    with pytest.raises(Unauthorized) as refused:
        KEYS.check(token(key="guess"), HERE, NOW)
    assert "sig" not in refused.value.description.replace("signed", "")
