"""The example services are the skeleton plus their domain code."""

import re
import tomllib
from pathlib import Path

import pytest

from lucius_cli.demo.places import SERVICES
from lucius_cli.skeleton import drift

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", SERVICES)
def test_what_an_example_shares_with_all_services_is_a_fresh_bake(name: str) -> None:
    assert drift(ROOT / "examples" / name) == [], "run `make examples`"


@pytest.mark.parametrize("name", SERVICES)
def test_what_an_example_needs_comes_with_the_extra_of_the_examples(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    brought = [*project["dependencies"], *extras["examples"], *extras["vectors"], *extras["azure"]]
    needed = (ROOT / "examples" / name / "requirements.txt").read_text().splitlines()
    assert {name_of(line) for line in needed if line} <= {name_of(line) for line in brought}


def name_of(requirement: str) -> str:
    return re.split(r"[<>=\[ ]", requirement)[0]
