"""A client of Azure App Configuration, by a connection string or by the identity of the process."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from azure.appconfiguration.aio import AzureAppConfigurationClient

from lucius_azure.identity import default_credential
from lucius_settings.secret import Secret


@asynccontextmanager
async def open_app_configuration(
    connection: Secret | None, endpoint: str | None, **options: Any
) -> AsyncIterator[AzureAppConfigurationClient]:
    """One of the two is set. Nothing is connected yet."""
    async with AsyncExitStack() as stack:
        if connection is not None:
            client = AzureAppConfigurationClient.from_connection_string(
                connection.reveal(), **options
            )
        else:
            assert endpoint is not None, "one of the two is set"
            credential = await stack.enter_async_context(default_credential())
            client = AzureAppConfigurationClient(endpoint, credential, **options)
        yield await stack.enter_async_context(client)
