"""A receiver can tell what is ours and new."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from lucius_orchestrator.webhooks import InvalidSignature, signature_header, verify

NOW = datetime(2026, 1, 27, 10, 2, 0, 900000, tzinfo=UTC)
OLD, NEW, BODY = b"o" * 32, b"n" * 32, b'{"event_id":"e"}'


def test_the_header_is_the_time_and_the_mac_of_time_and_body() -> None:
    mac = hmac.new(NEW, b"1769508120." + BODY, hashlib.sha256).hexdigest()
    assert signature_header(BODY, NOW, [NEW]) == f"t=1769508120,v1={mac}"


def test_while_keys_are_rotated_receivers_may_have_either() -> None:
    header = signature_header(BODY, NOW, [NEW, OLD])
    assert header.count(",v1=") == 2
    for keys in ([OLD], [NEW], [OLD, NEW]):
        verify(header, BODY, keys, NOW)


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_clocks_may_differ_within_the_tolerance(seconds: int) -> None:
    sent = NOW.replace(microsecond=0)
    verify(signature_header(BODY, sent, [NEW]), BODY, [NEW], sent + timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [-301, 301])
def test_an_old_header_cannot_be_used_again(seconds: int) -> None:
    sent = NOW.replace(microsecond=0)
    header = signature_header(BODY, sent, [NEW])
    with pytest.raises(InvalidSignature, match="too long ago"):
        verify(header, BODY, [NEW], sent + timedelta(seconds=seconds))


def test_another_body_or_key_or_time_is_refused() -> None:
    header = signature_header(BODY, NOW, [NEW])
    later = header.replace("t=1769508120", "t=1769508121")
    for given, body, keys in [(header, BODY + b" ", [NEW]), (header, BODY, [OLD])]:
        with pytest.raises(InvalidSignature, match="no signature"):
            verify(given, body, keys, NOW)
    with pytest.raises(InvalidSignature, match="no signature"):
        verify(later, BODY, [NEW], NOW)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "v1=00",
        "t=,v1=00",
        "t=now,v1=00",
        "t=1,t=2,v1=00",
        "t=-1,v1=00",
        "t=1769508120",
        "t=1769508120,v1=",
        "t=1769508120,v0=00",
        "t=1769508120,v1=\N{SNOWMAN}",
    ],
)
def test_a_header_of_another_form_is_refused(header: str) -> None:
    with pytest.raises(InvalidSignature):
        verify(header, BODY, [NEW], NOW)


def test_a_time_that_no_clock_shows_is_refused() -> None:
    mac = hmac.new(NEW, b"9" * 30 + b"." + BODY, hashlib.sha256).hexdigest()
    with pytest.raises(InvalidSignature, match="no time"):
        verify(f"t={'9' * 30},v1={mac}", BODY, [NEW], NOW)
