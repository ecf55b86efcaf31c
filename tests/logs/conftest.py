from collections.abc import Iterator

import pytest

from tests.logs.capture import logging_kept


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    with logging_kept(("ours", "some.library")):
        yield
