"""Who this program is to Azure.

Azure's packages are loaded where they are used: who has a key works without azure-identity.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential
    from azure.core.credentials_async import AsyncTokenCredential


def default_credential() -> "AsyncTokenCredential":
    """The managed identity where there is one, else what the machine offers: environment, command
    line. Who calls this closes it after the client that it was made for."""
    from azure.identity.aio import DefaultAzureCredential

    return DefaultAzureCredential()


def blocking_credential() -> "TokenCredential":
    """The same, for clients that block."""
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


class SharedCredential:
    """A token that was asked for is fetched to the end, also if whoever asked gives up: the next
    one finds it there. Else one that takes longer than anybody's patience would never come."""

    def __init__(self, credential: "AsyncTokenCredential") -> None:
        self._credential = credential
        self._asked: dict[object, asyncio.Task[AccessToken]] = {}

    async def get_token(self, *scopes: str, **options: Any) -> "AccessToken":
        question = scopes, tuple(sorted(options.items()))
        asked = self._asked.get(question)
        if asked is None or asked.done():
            asked = asyncio.create_task(self._fetch(*scopes, **options))
            asked.add_done_callback(_heard)
            self._asked[question] = asked
        return await asyncio.shield(asked)

    async def close(self) -> None:
        for asked in self._asked.values():
            asked.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
        await self._credential.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _fetch(self, *scopes: str, **options: Any) -> "AccessToken":
        return await self._credential.get_token(*scopes, **options)


def _heard(asked: "asyncio.Task[AccessToken]") -> None:
    """Nobody may be there any more to hear of an error."""
    if not asked.cancelled():
        asked.exception()
