"""A token of Azure's, for those who have no time to wait for it."""

import asyncio
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from lucius_azure.identity import SharedCredential


class SlowCredential:
    """Answers when it may."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.may_answer = asyncio.Event()
        self.is_refusing = False
        self.is_closed = False

    async def get_token(self, *scopes: str, claims: str | None = None, **_: Any) -> AccessToken:
        self.asked.append(scopes)
        await self.may_answer.wait()
        if self.is_refusing:
            raise ClientAuthenticationError("not you")
        return AccessToken(f"token for {claims}", 0)

    async def close(self) -> None:
        self.is_closed = True

    async def __aenter__(self) -> "SlowCredential":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def impatient(credential: SharedCredential, claims: str = "all") -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await credential.get_token("scope", claims=claims)


async def test_a_token_is_fetched_to_the_end_although_everybody_gave_up() -> None:
    slow = SlowCredential()
    credential = SharedCredential(slow)
    await impatient(credential)
    await impatient(credential)
    assert slow.asked == [("scope",)]
    slow.may_answer.set()
    assert (await credential.get_token("scope", claims="all")).token == "token for all"  # noqa: S105
    assert slow.asked == [("scope",)]
    await credential.get_token("scope", claims="all")
    assert len(slow.asked) == 2
    await credential.close()


async def test_different_tokens_are_asked_for_apart() -> None:
    slow = SlowCredential()
    async with SharedCredential(slow) as credential:
        await impatient(credential, "some")
        await impatient(credential, "others")
        assert len(slow.asked) == 2
        slow.may_answer.set()
        found = await credential.get_token("scope", claims="others")
        assert found.token == "token for others"  # noqa: S105
    assert slow.is_closed


async def test_a_refusal_is_told_to_who_waits_and_asked_again_by_the_next() -> None:
    slow = SlowCredential()
    slow.is_refusing = True
    credential = SharedCredential(slow)
    await impatient(credential)
    slow.may_answer.set()
    for _ in range(2):
        with pytest.raises(ClientAuthenticationError):
            await credential.get_token("scope", claims="all")
    await credential.close()


async def test_closing_gives_up_what_is_still_asked() -> None:
    slow = SlowCredential()
    credential = SharedCredential(slow)
    await impatient(credential)
    await credential.close()
    assert slow.is_closed
