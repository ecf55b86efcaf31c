"""What a flaw is."""

import re
from dataclasses import dataclass

from tests.conform.broken_services.sound import Service

_WORD = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Flaw:
    """One plausible mistake, and the rule that it breaks. `scenarios` are those that have to find
    it, all of the rule if none is named: what another would find too need not be waited for.
    `said` is part of what the judge says; a flaw that has it is judged in the test's own process,
    which takes a tenth of the time. Only one that a process alone can show has none: it stands
    still, dies, or does not heed a signal."""

    rule_id: str
    service: type[Service]
    scenarios: tuple[str, ...] = ()
    said: str = ""

    @property
    def name(self) -> str:
        """As in a shell: `acks-after-the-work`."""
        return _WORD.sub("-", self.service.__name__).lower()

    @property
    def mistake(self) -> str:
        return " ".join((self.service.__doc__ or "").split())

    @property
    def only(self) -> tuple[str, ...]:
        """For the runner."""
        return tuple(f"{self.rule_id}/{name}" for name in self.scenarios) or (self.rule_id,)
