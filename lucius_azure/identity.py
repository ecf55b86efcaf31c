"""Who this program is to Azure."""

from azure.core.credentials import TokenCredential
from azure.core.credentials_async import AsyncTokenCredential

# Imported where they are used: who has a key works without azure-identity.


def default_credential() -> AsyncTokenCredential:
    """The managed identity where there is one, else what the machine offers: environment, command
    line. Who calls this closes it after the client that it was made for."""
    from azure.identity.aio import DefaultAzureCredential

    return DefaultAzureCredential()


def blocking_credential() -> TokenCredential:
    """The same, for clients that block."""
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()
