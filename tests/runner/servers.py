"""Servers that all workers share.

Azurite and Temporal cost seconds of CPU to start and more while they idle, so a run has one of
each: a worker asks the controller, which starts the server when it is first asked for, and stops it
when the run ends. Tests keep apart by names (`tests.names.unique`). Without workers the process has
its own.
"""

import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import pytest

from tests.azurite import azurite_server
from tests.temporal_server import temporal_address

_SERVERS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "azurite": azurite_server,
    "temporal": temporal_address,
}


@contextmanager
def shared_server(config: pytest.Config, name: str) -> Iterator[Any]:
    """What identifies the server, as its own context manager gives it."""
    given = getattr(config, "workerinput", {}).get("servers")
    if given is None:
        with _SERVERS[name]() as server:
            yield server
        return
    with Client(given["address"], authkey=given["key"]) as connection:
        connection.send(name)
        server, error = connection.recv()
    if error is not None:
        raise RuntimeError(f"{name} did not start: {error}")
    yield server


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(_Servers())


class _Servers:
    """In the controller: the thread that starts what workers ask for."""

    def __init__(self) -> None:
        self._started: dict[str, Any] = {}
        self._open = ExitStack()
        # A short path: sockets allow 107 characters.
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="lucius"))
        self._key = secrets.token_bytes(16)
        self._address = str(Path(folder, "servers"))
        self._listener = Listener(self._address, "AF_UNIX", authkey=self._key)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["servers"] = {"address": self._address, "key": self._key}

    def pytest_unconfigure(self) -> None:
        with Client(self._address, authkey=self._key) as connection:
            connection.send(None)
        self._thread.join()
        self._listener.close()
        self._open.close()

    def _serve(self) -> None:
        while True:
            with self._listener.accept() as connection:
                name = connection.recv()
                if name is None:
                    return
                self._answer(connection, name)

    def _answer(self, connection: Connection, name: str) -> None:
        try:
            if name not in self._started:
                self._started[name] = self._open.enter_context(_SERVERS[name]())
        except Exception as error:  # the worker's test fails with it
            connection.send((None, str(error)))
        else:
            connection.send((self._started[name], None))
