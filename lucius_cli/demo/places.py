"""Where the example services and their documents lie, and what they need."""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from lucius_cli.failures import EnvironmentFailed

SERVICES = ("ocr", "embedding", "sis")
_MODULES = (
    "azure.servicebus",
    "fastapi",
    "jsonschema",
    "onnxruntime",
    "PIL",
    "pypdfium2",
    "tesserocr",
    "tokenizers",
    "yaml",
)


class Places(NamedTuple):
    examples: Path

    def service(self, name: str) -> Path:
        return self.examples / name

    @property
    def documents(self) -> Path:
        return self.examples / "documents"


def find_places() -> Places:
    """In an installed package, or in a checkout. `EnvironmentFailed` where neither has them."""
    package = Path(__file__).parents[1]
    for examples in (package / "examples", package.parent / "examples"):
        if (examples / "documents").is_dir():
            return Places(examples)
    raise EnvironmentFailed(
        "the example services are not here: run `make demo` in a checkout of LUCIUS"
    )


def require_packages() -> None:
    """`EnvironmentFailed` with the command that brings what is missing."""
    missing = sorted(name for name in _MODULES if not _is_installed(name))
    if missing:
        raise EnvironmentFailed(
            f"the demo needs {', '.join(missing)}: pip install 'lucius-sdk[examples]'"
        )


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
