"""What can go wrong between a client and the server, grouped by what the caller should do.

ClientError
├── Refused              the server says no, and would again: mend the request
│   ├── NotFound         nothing of that name that the caller may see
│   ├── Gone             it was deleted: use another version, or upload again
│   ├── Conflict         the state does not allow it; the message says why
│   └── Denied           the key does not allow it: use another one
├── Unavailable          server or storage cannot be reached, or want some rest: try again later
├── ContentChanged       the file changed while it was uploaded: upload it again
├── NotTaken             the server ended the upload; the message says why: upload it again
└── ContentDamaged       other bytes came than were announced; nothing of them was kept

No message names an address with a signature in it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """How a server has refused. `problem` is None if it did not say, as when a proxy answers in its
    place."""

    status: int
    problem: Mapping[str, Any] | None = None
    retry_after: str | None = None

    def __str__(self) -> str:
        if self.problem is None:
            return f"answered {self.status}"
        code, title = self.problem.get("code", self.status), self.problem.get("title", "")
        detail = self.problem.get("detail") or title
        return f"{code}: {detail}" + "".join(f"; {each}" for each in self._problems())

    def _problems(self) -> list[str]:
        errors = (self.problem or {}).get("errors") or ()
        return [f"{each.get('pointer')} {each.get('message')}" for each in errors]


class ClientError(Exception):
    """Base of all errors of the client."""


class Refused(ClientError):
    def __init__(self, answer: Answer) -> None:
        super().__init__(str(answer))
        self.answer = answer


class NotFound(Refused):
    pass


class Gone(Refused):
    pass


class Conflict(Refused):
    pass


class Denied(Refused):
    pass


class Unavailable(ClientError):
    """`answer` is None if there was none."""

    def __init__(self, message: str, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class ContentChanged(ClientError):
    def __init__(self, name: str, how: str) -> None:
        super().__init__(f"{name} changed while it was uploaded: {how}")


class NotTaken(ClientError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} was not taken: {reason}")


class ContentDamaged(ClientError):
    def __init__(self, uri: str, how: str) -> None:
        super().__init__(f"{uri} came with {how}")
