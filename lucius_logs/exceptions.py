"""Exceptions as text for the log. The interpreter's own rendering would show messages as they are,
and a message may hold a credential."""

import traceback
from collections.abc import Iterator

from lucius_logs.masking import shown_text, unprintable

_MAX_LINKS = 8
_MAX_FRAMES = 25
_MAX_MEMBERS = 5


def exception_text(error: BaseException) -> str:
    """The chain that led to the exception, the oldest first; the last frames of each."""
    links = reversed(list(_chain(error)))
    return "\n\n".join("\n".join(_lines(link)) for link in links)


def traced_text(text: str) -> str:
    """A stack that somebody else has put into words."""
    return "\n".join(shown_text(line) for line in text.splitlines()[-2 * _MAX_FRAMES :])


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < _MAX_LINKS:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _lines(error: BaseException) -> Iterator[str]:
    for frame in traceback.format_tb(error.__traceback__, -_MAX_FRAMES):
        yield traced_text(frame)
    yield headline(error)
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions[:_MAX_MEMBERS]:
            yield "  | " + exception_text(member).replace("\n", "\n  | ")


def headline(error: BaseException) -> str:
    """Its kind and its message, masked."""
    try:
        return shown_text(f"{type(error).__name__}: {error}")
    except Exception:
        return f"{type(error).__name__}: {unprintable(error)}"
