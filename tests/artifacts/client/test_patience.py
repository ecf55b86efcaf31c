"""How long a client pauses before it tries again."""

import pytest

from lucius_artifacts.client import Patience
from lucius_artifacts.client.errors import Answer, Unavailable


def asks_for(retry_after: str) -> Unavailable:
    return Unavailable("busy", Answer(503, retry_after=retry_after))


@pytest.mark.parametrize(("retry_after", "seconds"), [("0", 0), ("7", 7), ("3600", 30)])
def test_what_the_server_asks_for_is_waited_but_no_longer_than_half_a_minute(
    retry_after: str, seconds: float
) -> None:
    assert Patience().delay(1, asks_for(retry_after)) == seconds


def test_pauses_double_up_to_the_longest() -> None:
    patience = Patience(first=1.0, longest=4.0, chance=lambda: 1.0)
    assert [patience.delay(failures) for failures in (1, 2, 3, 4)] == [1, 2, 4, 4]
