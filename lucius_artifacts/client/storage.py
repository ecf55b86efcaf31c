"""Bytes to and from signed addresses, which may be another server's: no key goes there."""

import re
from collections.abc import Iterator

import httpx

from lucius_artifacts.client.answers import Content, SignedPart
from lucius_artifacts.client.errors import Unavailable
from lucius_artifacts.client.exchange import check_answer, reached

CHUNK = 256 * 1024
_PARTIAL = 206
_RANGE = re.compile(r"bytes (\d+)-")


class Storage:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def put(self, part: SignedPart, length: int, body: Iterator[bytes]) -> None:
        """What `body` raises passes through, and the part does not count."""
        headers = {**part.headers, "Content-Length": str(length)}
        with reached("the storage"):
            response = self._http.request(part.method, part.url, headers=headers, content=body)
        check_answer(response)

    def read(self, content: Content, start: int) -> Iterator[bytes]:
        """From there on, as the storage sends it; it may end too early."""
        headers = {**content.headers, "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        with (
            reached("the storage"),
            self._http.stream("GET", content.url, headers=headers) as response,
        ):
            if not response.is_success:
                response.read()
            check_answer(response)
            yield from _without_first(response.iter_raw(), _surplus(response, start))


def _surplus(response: httpx.Response, start: int) -> int:
    """How many bytes come before the first that was asked for: all, from who knows no ranges."""
    if response.status_code != _PARTIAL:
        return start
    first = _RANGE.match(response.headers.get("content-range", ""))
    if first is None or int(first[1]) != start:
        raise Unavailable("the storage sent another range than was asked for")
    return 0


def _without_first(chunks: Iterator[bytes], skip: int) -> Iterator[bytes]:
    for chunk in chunks:
        kept = chunk[skip:]
        skip = max(0, skip - len(chunk))
        if kept:
            yield kept
