"""Who this program is to Azure."""

from azure.core.credentials_async import AsyncTokenCredential


def default_credential() -> AsyncTokenCredential:
    """The managed identity where there is one, else what the machine offers: environment, command
    line. Who calls this closes it after the bus."""
    # Imported here: a bus with a connection string works without azure-identity.
    from azure.identity.aio import DefaultAzureCredential

    return DefaultAzureCredential()
