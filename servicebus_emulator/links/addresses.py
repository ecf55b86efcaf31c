"""From the address of a link to what it means."""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

CBS = "$cbs"
_MANAGEMENT = "/$management"


class Address(NamedTuple):
    """An entity's path, and whether its management node is meant."""

    entity: str
    is_management: bool = False

    @property
    def is_cbs(self) -> bool:
        return self.entity.lower() == CBS


def parse_address(text: str) -> Address:
    """Clients write whole URIs for entities and bare paths for nodes."""
    path = unquote(urlsplit(text).path) if "://" in text else text
    path = path.strip("/")
    if path.lower().endswith(_MANAGEMENT):
        return Address(path[: -len(_MANAGEMENT)], is_management=True)
    return Address(path)
