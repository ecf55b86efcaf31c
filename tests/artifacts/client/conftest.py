"""A client of the real application."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lucius_artifacts.client import ArtifactsClient
from tests.artifacts.client.quick import QUICK
from tests.artifacts.client.server import KEY, Server, running_server


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    with TemporaryDirectory() as folder, running_server(Path(folder)) as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Iterator[Server]:
    """It remembers content of other tests, and nothing else of them."""
    one_server.forget()
    yield one_server
    one_server.forget()


@pytest.fixture(scope="module")
def client(one_server: Server) -> Iterator[ArtifactsClient]:
    with ArtifactsClient(one_server.url, KEY, patience=QUICK) as client:
        yield client
