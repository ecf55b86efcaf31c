"""The pictures of the documentation show what the engine does."""

import pytest

from tests.engine.pictures import FOLDER, PICTURES, draw


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.check) for name in PICTURES])
async def test_a_picture_is_what_a_run_draws(name: str) -> None:
    drawn = (FOLDER / f"{name}.svg").read_text(encoding="ascii")
    assert await draw(name) == drawn, "draw them again: python -m tests.engine.pictures"
