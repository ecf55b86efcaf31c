"""Bodies that are sent."""

import pytest

from servicebus_emulator.administration.atom import ATOM, SERVICE_BUS, described, parse
from servicebus_emulator.administration.exchange import Refusal

QUEUE = f'<QueueDescription xmlns="{SERVICE_BUS}"/>'
ENTRY = f'<entry xmlns="{ATOM}"><content type="application/xml">{QUEUE}</content></entry>'


@pytest.mark.parametrize("head", ["", "\ufeff", "<?xml version='1.0' encoding='utf-8'?>\n"])
def test_the_description_is_found_in_the_entry(head: str) -> None:
    assert described((head + ENTRY).encode(), "QueueDescription").tag.endswith("QueueDescription")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"<a>",
        b"\xff\xfe<\x00a\x00/\x00>\x00",
        ENTRY.encode("utf-16"),
        b"<!DOCTYPE a><a/>",
        b'<!doctype a [<!ENTITY b "bb">]><a>&b;</a>',
        b"<a>&b;</a>",
    ],
)
def test_what_is_not_plain_xml_in_utf_8_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        parse(body)
    assert refused.value.status == 400


def test_entities_are_refused_before_they_can_grow() -> None:
    body = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]><a>&c;</a>'
    with pytest.raises(Refusal, match="document type"):
        parse(body.encode())


def test_deep_nesting_is_no_harm() -> None:
    with pytest.raises(Refusal):
        described(b"<a>" * 100_000 + b"</a>" * 100_000, "QueueDescription")


def test_another_description_is_refused() -> None:
    with pytest.raises(Refusal, match="TopicDescription"):
        described(ENTRY.encode(), "TopicDescription")
