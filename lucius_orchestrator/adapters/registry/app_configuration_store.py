"""Azure App Configuration, seen from the registry: its sentinel, and all entries at once.

The client is the plain one. The provider that is built on it was tried and left: while it cannot
load it stops the event loop for seconds, and it reads the sentinel after the entries, so that a
change in between is never taken up.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from azure.appconfiguration.aio import AzureAppConfigurationClient
from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
)

from lucius_orchestrator.adapters.registry.entries import Entry, Keys
from lucius_orchestrator.adapters.registry.problems import RegistryUnavailable
from lucius_outbox.redaction import redacted

NO_LABEL = "\0"
LIMIT = timedelta(seconds=10)
CLIENT_OPTIONS = {"retry_total": 0}
"""Who asks decides when to ask again; and the client would wait for as long as it is told to."""

_FAILED = 400
_WAY = "check its address, and the network"
_UNREADABLE = "answers what cannot be read ({}): is it App Configuration?"
_REMEDIES = {
    401: "the access key is not accepted",
    403: "the identity needs the role App Configuration Data Reader, or this network is not let in",
    429: "too many requests: raise LUCIUS_APP_CONFIGURATION_REFRESH_SECONDS",
}


class AppConfigurationStore:
    """Every verb may raise `RegistryUnavailable`, and none takes longer than `limit`."""

    def __init__(
        self,
        client: AzureAppConfigurationClient,
        address: str,
        keys: Keys,
        label: str | None = None,
        limit: timedelta = LIMIT,
    ) -> None:
        self.address = address
        self.keys = keys
        self.label = label
        self._client = client
        self._limit = limit

    async def tag(self, known: str | None) -> str | None:
        """What the sentinel is known by: another text after every change; None: there is none.
        With `known` little is sent while nothing changes."""
        async with self._visit():
            try:
                found = await self._client.get_configuration_setting(
                    self.keys.sentinel,
                    self.label,
                    etag=known,
                    match_condition=MatchConditions.IfModified,
                )
            except ResourceNotFoundError:
                return None
            return known if found is None else found.etag

    async def entries(self) -> list[Entry]:
        """Those with the label count over those without any."""
        found: dict[str, Entry] = {}
        async with self._visit():
            for label in (NO_LABEL, self.label):
                if label is not None:
                    found |= {entry.key: entry async for entry in self._listed(label)}
        return list(found.values())

    async def _listed(self, label: str) -> AsyncIterator[Entry]:
        listed = self._client.list_configuration_settings(
            key_filter=f"{self.keys.prefix}*", label_filter=label
        )
        async for setting in listed:
            if not isinstance(setting.key, str):
                raise TypeError("an entry without a key")
            yield Entry(setting.key, setting.value, setting.content_type)

    @asynccontextmanager
    async def _visit(self) -> AsyncIterator[None]:
        seconds = self._limit.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            reason = f"no answer within {seconds:g} s: {_WAY}"
            raise RegistryUnavailable(self.address, reason) from error
        except AzureError as error:
            raise RegistryUnavailable(self.address, _reason(error)) from error
        except Exception as error:  # whatever else answered there is not App Configuration
            reason = _UNREADABLE.format(type(error).__name__)
            raise RegistryUnavailable(self.address, reason) from error


def _reason(error: AzureError) -> str:
    status = error.status_code if isinstance(error, HttpResponseError) else None
    if status is not None and status < _FAILED:
        return _UNREADABLE.format(type(error).__name__)
    if status is not None:
        remedy = _REMEDIES.get(status)
        return f"answers {status}" + (f": {remedy}" if remedy else "")
    first_line = redacted(str(error)).partition("\n")[0]
    if isinstance(error, ClientAuthenticationError):
        return f"no token for the identity of this process: {first_line}"
    return f"cannot be reached: {first_line}: {_WAY}"
