"""Makes what is generated from the code: schemas, the AsyncAPI document, reference pages.

`python -m docs.generator` writes the files; a test fails when one of them is not what it would be.
"""

from collections.abc import Mapping
from pathlib import Path

from docs.generator import asyncapi, pages, schemas

ROOT = Path(__file__).parents[2]


def outputs() -> Mapping[Path, str]:
    """Every generated file with its content."""
    made = {**schemas.files(), **asyncapi.files(), **pages.files()}
    return {ROOT / name: text for name, text in made.items()}
