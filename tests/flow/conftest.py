from collections.abc import Iterator
from pathlib import Path

import pytest

from lucius_cli.demo.places import Places, find_places
from lucius_cli.demo.stack import Stack


@pytest.fixture(scope="session")
def places() -> Places:
    return find_places()


@pytest.fixture(scope="session")
def documents(places: Places) -> Path:
    return places.documents


@pytest.fixture(scope="module")
def stack(
    places: Places, documents: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """The control plane and the three services; replies go over HTTP."""
    with Stack(places, tmp_path_factory.mktemp("stack"), documents) as running:
        yield running
