"""Addresses allow what they were made for, and nothing else."""

import logging
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from lucius_artifacts.ports.objects import Objects
from tests.artifacts.objects.stages import KEY, Stage, content_of, frozen, now, put, soon

LATER_ON = timedelta(seconds=1, microseconds=500_000)


async def test_a_part_is_brought_through_its_address_as_often_as_one_likes(stage: Stage) -> None:
    await stage.objects.begin(KEY)
    address = await stage.objects.sign_part(KEY, 1, 3, soon())
    assert address.method == "PUT"
    assert await stage.put(address, b"old")
    assert await stage.put(address, b"new")
    assert await stage.objects.parts(KEY) == {1: 3}
    await stage.objects.freeze(KEY, 1)
    assert await content_of(stage.objects) == b"new"


async def test_an_address_says_until_when_it_is_good(objects: Objects) -> None:
    until = soon()
    for address in (
        await objects.sign_part(KEY, 1, 3, until),
        await objects.sign_read(KEY, until, "text/plain", "a.txt"),
    ):
        assert address.expires_at == until.replace(microsecond=0)


async def test_an_address_that_has_expired_is_refused(stage: Stage) -> None:
    await frozen(stage.objects, b"one", key="other")
    await stage.objects.begin(KEY)
    past = now() - LATER_ON
    assert not await stage.put(await stage.objects.sign_part(KEY, 1, 3, past), b"one")
    assert await stage.objects.parts(KEY) == {}
    assert await stage.get(await stage.objects.sign_read("other", past, "a/b", "c")) is None


async def test_an_address_is_of_one_key(stage: Stage) -> None:
    for key in (KEY, "ob_2"):
        await stage.objects.begin(key)
    address = await stage.objects.sign_part(KEY, 1, 3, soon())
    assert not await stage.put(replace(address, url=address.url.replace(KEY, "ob_2")), b"one")
    assert await stage.objects.parts("ob_2") == {}
    await frozen(stage.objects, b"one", key="ob_3")
    await frozen(stage.objects, b"two", key="ob_4")
    reading = await stage.objects.sign_read("ob_3", soon(), "text/plain", "a.txt")
    assert await stage.get(replace(reading, url=reading.url.replace("ob_3", "ob_4"))) is None


async def test_an_address_is_of_one_part_and_its_length(stage: Stage) -> None:
    if not stage.knows_the_part:
        return
    await stage.objects.begin(KEY)
    address = await stage.objects.sign_part(KEY, 1, 3, soon())
    other = replace(address, url=address.url.replace("/parts/1", "/parts/2"))
    longer = replace(address, url=address.url.replace("length=3", "length=4"))
    for request, content in [(other, b"one"), (longer, b"four"), (address, b"four")]:
        assert not await stage.put(request, content)
    assert await stage.objects.parts(KEY) == {}


async def test_an_address_of_a_part_does_not_read_and_one_to_read_does_not_write(
    stage: Stage,
) -> None:
    await frozen(stage.objects, b"one")
    await stage.objects.begin("ob_2")
    reading = await stage.objects.sign_read(KEY, soon(), "text/plain", "a.txt")
    query = reading.url.partition("?")[2]
    putting = await stage.objects.sign_part("ob_2", 1, 3, soon())
    path = putting.url.partition("?")[0]
    assert not await stage.put(replace(putting, url=f"{path}?{query}"), b"new")
    assert await stage.objects.parts("ob_2") == {}
    assert await content_of(stage.objects) == b"one"


@pytest.mark.parametrize("name", ["notes.txt", 'a"b\\c.txt', "Grüße & Küsse 💌.pdf", "a;b\r\nX: y"])
async def test_an_object_is_offered_for_saving_under_its_name(stage: Stage, name: str) -> None:
    content = await frozen(stage.objects, b"one", b"two")
    address = await stage.objects.sign_read(KEY, soon(), "text/html", name)
    assert address.method == "GET"
    fetched = await stage.get(address)
    assert fetched is not None
    assert fetched.content == content
    assert fetched.media_type == "text/html"
    assert fetched.disposition.startswith("attachment; ")
    assert fetched.disposition.isascii()
    assert fetched.disposition.isprintable()


async def test_nothing_prints_an_address(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await stage.objects.begin(KEY)
    await put(stage.objects, 1, b"one")
    putting = await stage.objects.sign_part(KEY, 1, 3, soon())
    reading = await stage.objects.sign_read(KEY, soon(), "text/plain", "a.txt")
    await stage.objects.freeze(KEY, 1)
    for address in (putting, reading):
        signature = re.search(r"[?&]sig(?:nature)?=([^&]+)", address.url)
        assert signature is not None
        assert signature[1] not in repr(address)
        assert signature[1] not in caplog.text
