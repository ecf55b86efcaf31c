"""The settings of the service's own, from the environment."""

from collections.abc import Mapping
from typing import NamedTuple


class SettingsInvalid(Exception):
    """The text names the variables, and says what they must be."""


class Settings(NamedTuple):
    json_chunks: int
    """A document of more chunks has its vectors in a second file."""
    max_characters: int
    """A longer text is refused."""
    threads: int
    """Of the model, for one text."""


class _Variable(NamedTuple):
    name: str
    default: int
    lowest: int
    highest: int

    def read(self, environ: Mapping[str, str]) -> int:
        """Empty counts as not set."""
        text = environ.get(self.name, "").strip() or str(self.default)
        is_number = text.isascii() and text.isdecimal() and len(text) <= 10
        if not is_number or not self.lowest <= int(text) <= self.highest:
            raise SettingsInvalid(
                f"{self.name} must be a whole number from {self.lowest} to {self.highest}"
            )
        return int(text)


_JSON_CHUNKS = _Variable("EMBEDDING_JSON_CHUNKS", 1_000, 0, 100_000)
_MAX_CHARACTERS = _Variable("EMBEDDING_MAX_CHARACTERS", 20_000_000, 1, 100_000_000)
_THREADS = _Variable("EMBEDDING_THREADS", 1, 1, 64)


def read_settings(environ: Mapping[str, str]) -> Settings:
    """`SettingsInvalid`."""
    return Settings(
        json_chunks=_JSON_CHUNKS.read(environ),
        max_characters=_MAX_CHARACTERS.read(environ),
        threads=_THREADS.read(environ),
    )
