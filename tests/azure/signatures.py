"""Connection strings with a shared access signature, as the Azure portal writes them."""

from datetime import UTC, datetime, timedelta

from azure.storage.blob import ResourceTypes, generate_account_sas

from tests.azurite import Azurite

EVERYTHING = "rwdlacu"
READING = "rl"


def signed_connection(azurite: Azurite, rights: str = EVERYTHING) -> str:
    parts = dict(part.split("=", 1) for part in azurite.connection.rstrip(";").split(";"))
    signature = generate_account_sas(
        parts["AccountName"],
        parts["AccountKey"],
        ResourceTypes(service=True, container=True, object=True),
        rights,
        datetime.now(UTC) + timedelta(hours=1),
        services="bfqt",
    )
    return (
        f"BlobEndpoint={azurite.blob}/;QueueEndpoint=http://127.0.0.1:1/;"
        f"FileEndpoint=http://127.0.0.1:1/;TableEndpoint={azurite.table}/;"
        f"SharedAccessSignature={signature}"
    )
