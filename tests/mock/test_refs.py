"""Refs that the mock serves: reads are counted, can be held, and can fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256

import aiohttp
import pytest

from orchestrator_mock import Fault, Mock, ServedRef, What
from tests.mock.scene import recorded, until, whats
from tests.runner.deadlines import DEADLINE

CONTENT = bytes(range(256)) * 40
JOB = "job_1"


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=DEADLINE)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        yield http


def served(mock: Mock, *, job_id: str = JOB, held: bool = False) -> ServedRef:
    return mock.serve("input.bin", CONTENT, job_id=job_id, media_type="application/pdf", held=held)


async def got(http: aiohttp.ClientSession, ref: ServedRef, wanted: str = "") -> tuple[int, bytes]:
    """Status and content of a read, of a part if one is wanted."""
    headers = {"Range": wanted} if wanted else {}
    async with http.get(ref.uri, headers=headers) as answer:
        return answer.status, await answer.read()


async def test_a_ref_is_read_with_its_type_and_size(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref = served(mock)
    async with http.get(ref.uri) as answer:
        assert answer.status == 200
        assert answer.content_type == "application/pdf"
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert answer.content_length == len(CONTENT)
        assert await answer.read() == CONTENT


async def test_reads_are_counted_and_recorded(mock: Mock, http: aiohttp.ClientSession) -> None:
    ref, other = served(mock), served(mock, job_id="job_2")
    for _ in range(3):
        await got(http, ref)
    await got(http, other)
    assert (ref.reads, other.reads) == (3, 1)
    assert whats(mock, JOB) == [What.READ, What.READ_ENDED] * 3
    assert [entry.detail for entry in mock.recording.of(JOB, What.READ)] == ["of input.bin"] * 3


async def test_to_ask_for_the_head_is_no_read(mock: Mock, http: aiohttp.ClientSession) -> None:
    ref = served(mock, held=True)
    async with http.head(ref.uri) as answer:
        assert (answer.status, answer.content_length) == (200, len(CONTENT))
    assert (ref.reads, whats(mock, JOB)) == (0, [])


async def test_a_download_in_ranges_is_one_read(mock: Mock, http: aiohttp.ClientSession) -> None:
    ref = served(mock)
    parts = [await got(http, ref, f"bytes={at}-{at + 3999}") for at in range(0, len(CONTENT), 4000)]
    assert [status for status, _ in parts] == [206, 206, 206]
    assert b"".join(content for _, content in parts) == CONTENT
    assert ref.reads == 1
    assert len(mock.recording.of(JOB, What.READ)) == 3


async def test_a_download_that_begins_anew_is_another_read(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref = served(mock)
    for wanted in ("bytes=0-", "bytes=0-99", ""):
        await got(http, ref, wanted)
    assert ref.reads == 3


@pytest.mark.parametrize(
    ("wanted", "shown", "content"),
    [
        ("bytes=0-", "bytes 0-10239/10240", CONTENT),
        ("bytes=10000-", "bytes 10000-10239/10240", CONTENT[10000:]),
        ("bytes=5-9", "bytes 5-9/10240", CONTENT[5:10]),
        ("bytes=-16", "bytes 10224-10239/10240", CONTENT[-16:]),
        ("bytes=10000-99999", "bytes 10000-10239/10240", CONTENT[10000:]),
    ],
)
async def test_a_part_says_where_it_belongs(
    mock: Mock, http: aiohttp.ClientSession, wanted: str, shown: str, content: bytes
) -> None:
    async with http.get(served(mock).uri, headers={"Range": wanted}) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"] == shown
        assert await answer.read() == content


@pytest.mark.parametrize("wanted", ["bytes=10240-", "bytes=99999-", "lines=1-2", "bytes=x-y"])
async def test_a_part_that_is_not_there_is_refused(
    mock: Mock, http: aiohttp.ClientSession, wanted: str
) -> None:
    async with http.get(served(mock).uri, headers={"Range": wanted}) as answer:
        assert answer.status == 416
        assert answer.headers["Content-Range"] == f"bytes */{len(CONTENT)}"
    assert mock.defects == []


async def test_what_is_not_served_is_not_found(mock: Mock, http: aiohttp.ClientSession) -> None:
    ref = served(mock)
    async with http.get(ref.uri + "x") as answer:
        assert answer.status == 404
    assert ref.reads == 0


async def test_refs_of_the_same_name_are_kept_apart(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    one = mock.serve("a", b"one", job_id=JOB, media_type="text/plain")
    other = mock.serve("a", b"other", job_id=JOB, media_type="text/plain")
    assert (await got(http, one), await got(http, other)) == ((200, b"one"), (200, b"other"))
    assert list(mock.refs.refs.values()) == [one, other]


async def test_as_an_artifact_a_ref_tells_its_digest(mock: Mock) -> None:
    ref = served(mock)
    assert ref.artifact() == {
        "name": "input.bin",
        "uri": ref.uri,
        "sha256": sha256(CONTENT).hexdigest(),
        "size": len(CONTENT),
        "media_type": "application/pdf",
    }


async def test_a_held_read_waits_until_it_is_released(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref = served(mock, held=True)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        reading = [tasks.create_task(got(http, ref)) for _ in range(2)]
        await recorded(mock, JOB, What.READ, times=2)
        assert (ref.reads, ref.open_reads) == (2, 2)
        assert What.READ_ENDED not in whats(mock, JOB)
        ref.release()
    assert [each.result() for each in reading] == [(200, CONTENT)] * 2
    assert (ref.reads, ref.open_reads) == (2, 0)
    assert await got(http, ref) == (200, CONTENT)


async def test_a_ref_can_be_held_again(mock: Mock, http: aiohttp.ClientSession) -> None:
    ref = served(mock)
    await got(http, ref)
    ref.hold()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(got(http, ref))
        await recorded(mock, JOB, What.READ, times=2)
        assert not reading.done()
        ref.release()


async def test_a_reader_that_leaves_has_ended_its_read(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref = served(mock, held=True)
    reading = asyncio.ensure_future(got(http, ref))
    await recorded(mock, JOB, What.READ)
    reading.cancel()
    await recorded(mock, JOB, What.READ_ENDED)
    assert (ref.reads, ref.open_reads) == (1, 0)


async def test_storage_503_refuses_so_many_reads(mock: Mock, http: aiohttp.ClientSession) -> None:
    ref = served(mock)
    await mock.add_fault(Fault("storage-503", count=2))
    answers = [await got(http, ref) for _ in range(3)]
    assert answers == [(503, b""), (503, b""), (200, CONTENT)]
    assert ref.reads == 3
    struck = [e.detail for e in mock.recording.of(JOB, What.FAULT)]
    assert struck == ["storage-503"] * 2


async def test_storage_cut_breaks_off_in_the_middle(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref = served(mock)
    await mock.add_fault(Fault("storage-cut"))
    with pytest.raises(aiohttp.ClientError):
        await got(http, ref)
    assert await got(http, ref) == (200, CONTENT)
    assert mock.defects == []


async def test_storage_cut_promises_more_than_it_gives(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref, received = served(mock), b""
    await mock.add_fault(Fault("storage-cut"))
    async with http.get(ref.uri) as answer:
        assert (answer.status, answer.content_length) == (200, len(CONTENT) + 1024)
        with suppress(aiohttp.ClientError):
            async for part in answer.content.iter_any():
                received += part
    assert CONTENT[: len(CONTENT) // 2].startswith(received)


async def test_storage_slow_answers_only_after_its_time(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref = served(mock)
    began = asyncio.get_running_loop().time()
    await mock.add_fault(Fault("storage-slow", seconds=0.2))
    assert await got(http, ref) == (200, CONTENT)
    assert asyncio.get_running_loop().time() - began >= 0.2


@pytest.mark.parametrize("name", ["storage-503", "storage-cut", "storage-slow"])
async def test_a_fault_of_storage_is_for_the_job_that_it_names(
    mock: Mock, http: aiohttp.ClientSession, name: str
) -> None:
    ref, other = served(mock), served(mock, job_id="job_2")
    fault = Fault(name, count=None, job_id=JOB)
    await mock.add_fault(fault)
    assert await got(http, other) == (200, CONTENT)
    assert mock.faults.is_on(fault)
    await mock.clear_faults(name)
    assert await got(http, ref) == (200, CONTENT)
    assert not mock.faults.is_on(fault)


async def test_a_held_read_meets_the_faults_of_the_time_when_it_is_released(
    mock: Mock, http: aiohttp.ClientSession
) -> None:
    ref = served(mock, held=True)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(got(http, ref))
        await until(mock, lambda: ref.open_reads or None)
        await mock.add_fault(Fault("storage-503"))
        ref.release()
    assert reading.result() == (503, b"")
