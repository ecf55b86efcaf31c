"""What is signed cannot be changed, and ends."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_artifacts.objects.disposition import attachment
from lucius_artifacts.signing import Offered, SignatureRefused, UrlSigner

NOW = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
SOON = NOW + timedelta(minutes=5)
OLD, NEW, FOREIGN = b"o" * 32, b"n" * 32, b"f" * 32

cuts = st.tuples(st.integers(0, 4), st.integers(0, 4))


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def signer(*keys: bytes, clock: Clock | None = None) -> UrlSigner:
    return UrlSigner(keys or (NEW,), clock or Clock())


def test_what_was_signed_is_accepted() -> None:
    ours = signer()
    assert ours.accept_part("ob", 7, ours.sign_part("ob", 7, 30, SOON)) == 30
    query = ours.sign_read("ob", "text/plain", "Grüße.txt", SOON)
    assert ours.accept_read("ob", query) == Offered("text/plain", "Grüße.txt")


def test_keys_can_be_replaced_while_addresses_are_under_way() -> None:
    before, both, after = signer(OLD), signer(NEW, OLD), signer(NEW)
    old, new = before.sign_part("ob", 1, 3, SOON), both.sign_part("ob", 1, 3, SOON)
    assert both.accept_part("ob", 1, old) == both.accept_part("ob", 1, new) == 3
    assert after.accept_part("ob", 1, new) == 3
    for judge, query in [(after, old), (before, new)]:
        with pytest.raises(SignatureRefused):
            judge.accept_part("ob", 1, query)


def test_an_address_ends_at_its_second_and_not_later() -> None:
    clock = Clock()
    ours = signer(clock=clock)
    query = ours.sign_part("ob", 1, 3, SOON)
    clock.now = SOON.replace(microsecond=0) - timedelta(microseconds=1)
    assert ours.accept_part("ob", 1, query) == 3
    clock.now = SOON.replace(microsecond=0)
    with pytest.raises(SignatureRefused, match="expired"):
        ours.accept_part("ob", 1, query)


CHANGES = [
    {"expires": str(int(SOON.timestamp()) + 1)},
    {"expires": "9" * 16},
    {"expires": "-1"},
    {"expires": "١٢"},
    {"expires": ""},
    {"length": "4"},
    {"length": "03"},
    {"length": "3.0"},
    {"signature": ""},
    {"signature": "é" * 64},
    {"signature": "\udcff"},
    {"signature": "0" * 64},
]


@pytest.mark.parametrize("change", CHANGES)
def test_an_altered_address_is_refused(change: dict[str, str]) -> None:
    ours = signer()
    query = ours.sign_part("ob", 1, 3, SOON)
    if change == {"length": "03"}:
        assert ours.accept_part("ob", 1, query | change) == 3  # the same number
        return
    with pytest.raises(SignatureRefused):
        ours.accept_part("ob", 1, query | change)


@pytest.mark.parametrize("name", ["expires", "length", "signature"])
def test_an_address_that_lacks_something_is_refused(name: str) -> None:
    ours = signer()
    query = ours.sign_part("ob", 1, 3, SOON)
    del query[name]
    with pytest.raises(SignatureRefused):
        ours.accept_part("ob", 1, query)


@pytest.mark.parametrize("name", ["expires", "media_type", "file_name", "signature"])
def test_an_address_to_read_that_lacks_something_is_refused(name: str) -> None:
    ours = signer()
    query = ours.sign_read("ob", "text/plain", "a.txt", SOON)
    del query[name]
    with pytest.raises(SignatureRefused):
        ours.accept_read("ob", query)


def test_a_part_and_a_read_are_not_signed_alike() -> None:
    ours = signer()
    read, part = ours.sign_read("ob", "", "", SOON), ours.sign_part("ob", 1, 1, SOON)
    with pytest.raises(SignatureRefused):
        ours.accept_part("ob", 0, read | {"length": "0"})
    with pytest.raises(SignatureRefused):
        ours.accept_read("ob", part | {"media_type": "", "file_name": ""})
    for key, number in [("ob2", 1), ("ob", 2)]:
        with pytest.raises(SignatureRefused):
            ours.accept_part(key, number, part)


@given(st.text(max_size=4), cuts, cuts)
def test_no_two_addresses_share_a_signature(
    text: str, one: tuple[int, int], other: tuple[int, int]
) -> None:
    """Wherever a text is cut in three."""
    ours, first, second = signer(), _cut(text, *one), _cut(text, *other)
    signatures = [ours.sign_read(*words, SOON)["signature"] for words in (first, second)]
    assert (signatures[0] == signatures[1]) == (first == second)


def _cut(text: str, one: int, other: int) -> tuple[str, str, str]:
    first, last = sorted((one, other))
    return text[:first], text[first:last], text[last:]


def test_a_refusal_names_no_secret() -> None:
    ours, theirs = signer(NEW), signer(FOREIGN)
    query = theirs.sign_part("ob", 1, 3, SOON)
    right = ours.sign_part("ob", 1, 3, SOON)["signature"]
    with pytest.raises(SignatureRefused) as refused:
        ours.accept_part("ob", 1, query)
    said = f"{refused.value!r} {refused.value.reason}"
    assert right not in said
    assert query["signature"] not in said


@pytest.mark.parametrize("keys", [[], [b""], [b"k" * 31], [NEW, b"short"]])
def test_weak_keys_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        UrlSigner(keys, Clock())


@given(st.text())
def test_no_name_breaks_out_of_its_header(name: str) -> None:
    value = attachment(name)
    assert value.isascii()
    assert value.isprintable()
    assert value.count('"') == 2
    assert "/" not in value
    assert "\\" not in value
