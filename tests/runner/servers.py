"""Servers that all workers share.

Azurite, Temporal and the server of S3 cost seconds of CPU to start and more while they idle, so a
run has one of each. They belong to a process of their own, which starts a server when a worker
first asks for it, and stops it when the run ends. Tests keep apart by names (`tests.names.unique`).
Without workers the process that runs the tests has its own.
"""

import multiprocessing
import secrets
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import pytest

from tests.azurite import azurite_server
from tests.s3 import s3_server
from tests.temporal_server import temporal_address

_SERVERS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "azurite": azurite_server,
    "s3": s3_server,
    "temporal": temporal_address,
}
_address = pytest.StashKey[tuple[str, bytes]]()


@contextmanager
def shared_server(config: pytest.Config, name: str) -> Iterator[Any]:
    """Yield what identifies the server, as its own context manager does."""
    if _address not in config.stash:
        with _SERVERS[name]() as server:
            yield server
        return
    address, key = config.stash[_address]
    with Client(address, authkey=key) as connection:
        connection.send(name)
        server, error = connection.recv()
    if error is not None:
        raise RuntimeError(f"{name} did not start: {error}")
    yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    option = session.config.option
    if not option.workers or option.collectonly:
        return (yield)
    # A short path: the address of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="lucius") as folder:
        address, key = str(Path(folder, "servers")), secrets.token_bytes(16)
        session.config.stash[_address] = (address, key)
        listener = Listener(address, "AF_UNIX", authkey=key)
        process = multiprocessing.get_context("fork").Process(target=_serve, args=(listener,))
        process.start()
        try:
            return (yield)
        finally:
            with Client(address, authkey=key) as connection:
                connection.send(None)
            process.join()
            listener.close()


def _serve(listener: Listener) -> None:
    started: dict[str, Any] = {}
    with ExitStack() as stack:
        while True:
            with listener.accept() as connection:
                name = connection.recv()
                if name is None:
                    return
                try:
                    if name not in started:
                        started[name] = stack.enter_context(_SERVERS[name]())
                except Exception as error:  # the worker's test fails with it
                    connection.send((None, str(error)))
                else:
                    connection.send((started[name], None))
