"""A part on its way to the service, in one request, however large it is."""

from collections.abc import AsyncIterator

from lucius_artifacts.objects.keys import not_as_long


class Sending:
    """Content of which the last chunk is sent when it is known that there is no more: a request
    that is broken off before puts no block. Nothing is sent again, since it is there once."""

    def __init__(self, content: AsyncIterator[bytes], number: int, length: int) -> None:
        self._content = content
        self._number = number
        self._length = length
        self._has_begun = False
        self.failure: Exception | None = None
        """Why it was broken off, by us or by where the content comes from."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._has_begun:
            raise RuntimeError("content that was sent cannot be sent again")
        self._has_begun = True
        try:
            async for chunk in self._checked():
                yield chunk
        except Exception as error:
            self.failure = error
            raise

    async def _checked(self) -> AsyncIterator[bytes]:
        held, left = b"", self._length
        async for chunk in self._content:
            left -= len(chunk)
            if left < 0:
                break
            if chunk and held:
                yield held
            held = chunk or held
        if left:
            raise not_as_long(self._number, self._length)
        yield held
