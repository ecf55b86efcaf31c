"""A value in a JSON document that knows where it stands."""

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, TypeVar

from servicebus_emulator.durations import read_duration

T = TypeVar("T")


class ConfigError(ValueError):
    """The file cannot be used; the text says where and what is allowed there."""


class Place:
    """Every reader refuses what it cannot take with the path of the value."""

    def __init__(self, value: object, path: str) -> None:
        self.value = value
        self.path = path

    def refuse(self, allowed: str) -> NoReturn:
        raise ConfigError(f"{self.path or 'the document'}: {allowed}")

    def members(self, known: Iterable[str]) -> dict[str, "Place"]:
        """The members of an object, which are all among the known ones."""
        if not isinstance(self.value, dict):
            self.refuse(f"an object is expected, not {_shown(self.value)}")
        names = list(known)
        for name in self.value:
            if name not in names:
                self.member(name).refuse(f"not known here, where {', '.join(names)} are allowed")
        return {name: self.member(name) for name in self.value}

    def member(self, name: str) -> "Place":
        """None where it is absent."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        return Place(value, f"{self.path}.{name}" if self.path else name)

    def items(self) -> list["Place"]:
        """Absent is as good as empty."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            self.refuse(f"an array is expected, not {_shown(self.value)}")
        return [Place(item, f"{self.path}[{index}]") for index, item in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            self.refuse(f"a text is expected, not {_shown(self.value)}")
        return self.value

    def optional_text(self) -> str | None:
        """An empty text means none, as in the files of Microsoft's emulator."""
        return None if self.value in ("", None) else self.text()

    def choice(self, allowed: Sequence[str]) -> str:
        if self.value not in allowed:
            self.refuse(f"one of {', '.join(allowed)} is expected, not {_shown(self.value)}")
        return str(self.value)

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            self.refuse(f"true or false is expected, not {_shown(self.value)}")
        return self.value

    def count(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 1:
            self.refuse(f"a whole number from 1 on is expected, not {_shown(self.value)}")
        return self.value

    def duration(self) -> int:
        """Milliseconds."""
        milliseconds = self.optional_duration()
        if milliseconds is None:
            self.refuse("a duration that ends is expected")
        return milliseconds

    def optional_duration(self) -> int | None:
        """Milliseconds; None for the longest duration of .NET, which means without end."""
        try:
            milliseconds = read_duration(self.value) if isinstance(self.value, str) else 0
        except ValueError:
            milliseconds = 0
        if milliseconds == 0:
            self.refuse(
                "an ISO 8601 duration above zero, such as PT30S, PT1M or P1D, is expected,"
                f" not {_shown(self.value)}"
            )
        return milliseconds


def _shown(value: object) -> str:
    names: dict[type, str] = {dict: "an object", list: "an array", type(None): "nothing"}
    return names.get(type(value)) or repr(value)[:60]


def unique(places: Iterable[Place], read: Callable[[Place], T]) -> tuple[T, ...]:
    """What the places hold; two names that differ in letter case only are one name."""
    seen: dict[str, str] = {}
    results = []
    for place in places:
        results.append(read(place))
        name = place.member("Name")
        first = seen.setdefault(name.text().lower(), place.path)
        if first != place.path:
            name.refuse(f"{name.value} is declared twice, first at {first}")
    return tuple(results)
