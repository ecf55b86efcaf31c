"""Mistakes with health, and with work that takes longer than a lock."""

from tests.conform.broken_services.attempts import Attempt
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.health import Health
from tests.conform.broken_services.program import Settings
from tests.conform.broken_services.sound import Service


class IsAlwaysReady(Service):
    """Readiness is a constant."""

    def is_ready(self) -> bool:
        return True


class LooksOnceWhetherItIsReady(Service):
    """Once everything was found to be there, it is not looked at again."""

    was_ready = False

    def is_ready(self) -> bool:
        self.was_ready = self.was_ready or super().is_ready()
        return self.was_ready and not self.stopping.is_set()


class ForgetsItsStorage(Service):
    """Readiness is that of the bus alone."""

    def has_storage(self) -> bool:
        return True


class IsNeverReadyAgain(Service):
    """What was once found to be missing is missed for good."""

    was_ready = False
    has_failed = False

    def is_ready(self) -> bool:
        is_ready = super().is_ready()
        self.has_failed = self.has_failed or (self.was_ready and not is_ready)
        self.was_ready = self.was_ready or is_ready
        return is_ready and not self.has_failed


class MissesTheBusForGood(IsNeverReadyAgain):
    """The client of the bus is not made anew."""


class DiesWithTheBus(Service):
    """Liveness looks at the bus, so whoever watches it kills the service when the bus is away."""

    def is_live(self) -> bool:
        return self.has_bus()


class HasOneHealthPath(Service):
    """There is one path for health, and it is the one for readiness."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.health = Health({"/healthz/ready": self.is_ready})


class LetsLocksRunOut(Service):
    """The claim is renewed while the work goes on, the lock of the message is not."""

    async def renew_lock(self, _attempt: Attempt) -> None:
        return


class RenewsNothing(Service):
    """The work is expected to be shorter than a lock."""

    async def keep(self, _attempt: Attempt) -> None:
        return


FLAWS = (
    Flaw("LC-21", IsAlwaysReady, ("bus-away",), said="still answered 200 after the bus was away"),
    Flaw(
        "LC-21",
        LooksOnceWhetherItIsReady,
        ("bus-away",),
        said="still answered 200 after the bus was away",
    ),
    Flaw(
        "LC-21",
        ForgetsItsStorage,
        ("storage-away",),
        said="still answered 200 after the storage was away",
    ),
    Flaw(
        "LC-21",
        IsNeverReadyAgain,
        ("storage-away",),
        said="not answered 200 again after the storage was back",
    ),
    Flaw(
        "LC-21",
        MissesTheBusForGood,
        ("bus-away",),
        said="not answered 200 again after the bus was back",
    ),
    Flaw(
        "LC-21", DiesWithTheBus, ("bus-away",), said="/healthz/live failed because the bus was away"
    ),
    Flaw(
        "LC-21",
        HasOneHealthPath,
        ("bus-away", "storage-away"),
        said="/healthz/live was answered 404, not 200",
    ),
    Flaw("LC-24", LetsLocksRunOut, said="the lock of the message ran out while the work went on"),
    Flaw("LC-24", RenewsNothing, said="times because it took longer than the lock"),
)
