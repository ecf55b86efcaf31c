"""The service and its judge in one process: what takes seconds with a process and its connections
to the bus takes tenths of one here. The scenarios, the mock, its HTTP and the service are the real
ones; a freeze is not possible, and a kill is what one looks like when its locks have run out."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, cast

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusConnectionError

from contract_tests.bench import Bench
from contract_tests.contract import LoadedContract, load_contract
from contract_tests.process import ServiceProcess
from contract_tests.rules import Level
from contract_tests.runner import chosen, judge
from contract_tests.scenarios import all_cases
from contract_tests.verdicts import Outcome
from orchestrator_mock import Mock
from servicebus_emulator.broker import (
    Abandon,
    BrokerError,
    Complete,
    DeadLetter,
    Delivery,
    Source,
)
from servicebus_emulator.broker import Outcome as Settlement
from servicebus_emulator.faults import Point
from servicebus_emulator.messages import Message
from servicebus_emulator.server import Emulator
from tests.conform.broken_services.attempts import Attempt
from tests.conform.broken_services.lanes import Lane, Verb
from tests.conform.broken_services.program import Settings
from tests.conform.broken_services.sound import Service
from tests.runner.deadlines import seconds

CONTRACT = Path(__file__).with_name("contract.yaml")
PATIENCE = seconds(8)
_PAUSE = 0.01


class Received:
    """A message as Azure's client gives it."""

    def __init__(self, delivery: Delivery) -> None:
        assert isinstance(delivery.message, Message)
        assert delivery.locked_until is not None
        self.token = delivery.token
        self.body = [delivery.message.body]
        self.locked_until_utc = datetime.fromtimestamp(delivery.locked_until / 1000, UTC)


class Link:
    def __init__(self, bus: "BusInProcess", address: str) -> None:
        self._bus = bus
        self._address = address

    async def __aenter__(self) -> Self:
        self._bus.check()
        return self

    async def close(self) -> None:
        return


class Sender(Link):
    async def send_messages(self, message: ServiceBusMessage) -> None:
        self._bus.check()
        if self._bus.emulator.faults.take(Point.SEND, self._address) is not None:
            raise ServiceBusConnectionError(message="the connection was cut")
        properties = cast(Mapping[str, object], message.application_properties or {})
        sent = Message.build(b"".join(message.body), properties=properties)
        self._bus.emulator.broker.send(self._address, [sent])
        self._bus.emulator.settle_soon()
        await asyncio.sleep(0)  # as on a connection, the mock has read it before it is answered


class Receiver(Link):
    def __init__(self, bus: "BusInProcess", address: str) -> None:
        super().__init__(bus, address)
        self._arrived = asyncio.Event()

    def end_look(self) -> None:
        """Return from `receive_messages` now."""
        self._arrived.set()

    @property
    def _source(self) -> Source:
        return self._bus.emulator.broker.source(self._address)

    async def receive_messages(self, max_message_count: int, max_wait_time: float) -> list[Any]:
        self._bus.check()
        self._arrived.clear()
        await asyncio.sleep(0)  # another instance gets its share
        taken = self._source.take(max_message_count)
        if not taken:
            await self._arrival(max_wait_time)
            taken = [] if self._bus.is_cut else self._source.take(max_message_count)
        self._bus.held += [(self._source, delivery.token) for delivery in taken]
        return [Received(delivery) for delivery in taken]

    async def _arrival(self, within: float) -> None:
        wake = self._arrived.set
        self._source.await_message(wake)
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._arrived.wait()
        self._source.forget(wake)

    async def complete_message(self, message: Received) -> None:
        self._settle(message, Complete())

    async def abandon_message(self, message: Received) -> None:
        self._settle(message, Abandon())

    async def dead_letter_message(
        self, message: Received, reason: str | None, error_description: str | None
    ) -> None:
        self._settle(message, DeadLetter(reason, error_description))

    async def renew_message_lock(self, message: Received) -> None:
        self._do(lambda: self._source.renew(message.token))

    def _settle(self, message: Received, how: Settlement) -> None:
        self._do(lambda: self._source.settle(message.token, how))

    def _do(self, verb: Callable[[], object]) -> None:
        self._bus.check()
        try:
            verb()
        except BrokerError as error:
            raise MessageLockLostError(message=str(error)) from error
        self._bus.emulator.settle_soon()


class BusInProcess:
    """What the service uses of Azure's client, on the emulator's broker itself."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.held: list[tuple[Source, bytes]] = []
        self.is_cut = False

    def get_subscription_receiver(self, topic: str, service: str, **_: object) -> Receiver:
        return Receiver(self, f"{topic}/Subscriptions/{service}")

    def get_topic_sender(self, topic: str) -> Sender:
        return Sender(self, topic)

    def check(self) -> None:
        """`ServiceBusConnectionError` when there is no way to the bus."""
        if self.is_cut or not self.emulator.is_listening:
            raise ServiceBusConnectionError(message="nothing listens there")

    def cut(self) -> None:
        """For good; what was held can be delivered again."""
        self.is_cut = True
        for source, token in self.held:
            source.release(token)
        self.emulator.settle_soon()


class LaneInProcess(Lane):
    """What is asked of it ends its look for messages, so that it need not look often."""

    async def ask(self, verb: Verb) -> None:
        self._end_look()
        await super().ask(verb)

    async def refuse(self, _receiver: object) -> None:
        """Nothing is sent that was not asked for."""

    async def rest(self) -> None:
        self._end_look()
        await super().rest()

    def end(self) -> None:
        super().end()
        self._end_look()

    def _end_look(self) -> None:
        if self._receiver is not None:
            cast(Receiver, self._receiver).end_look()


class _InProcess(Service):
    """Goes before a service among the bases of a type."""

    lane_type = LaneInProcess
    bus: BusInProcess
    is_killed = False

    def client(self) -> ServiceBusClient:
        return cast(ServiceBusClient, self.bus)

    def listen_for_sigterm(self) -> None:
        return

    def die(self) -> None:
        self.is_killed = True
        self.bus.cut()
        for lane in self.lanes:
            lane.end()
        for task in self.tasks:
            task.cancel()
        self.stopping.set()

    async def pause(self, seconds: float) -> None:
        await super().pause(min(seconds, _PAUSE))

    async def drain(self) -> None:
        if not self.is_killed:
            await super().drain()
            return
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def give_back(self, attempt: Attempt) -> None:
        """The claim of a dead instance has run out."""
        if not self.is_killed:
            await super().give_back(attempt)
        elif attempt.row is not None:
            self.store.release(attempt.row)


class ProcessInProcess(ServiceProcess):
    """A task in the place of a process."""

    def __init__(
        self,
        loaded: LoadedContract,
        environment: Mapping[str, str],
        log: Path,
        mock: Mock,
        service: type[Service],
    ) -> None:
        super().__init__(loaded, environment, log, mock.recording)
        self._settings = Settings.from_environment(environment)
        self._mock = mock
        self._bus = BusInProcess(mock.bus)
        self._type = type(service.__name__, (_InProcess, service), {"bus": self._bus})
        self._service: _InProcess | None = None
        self._task: asyncio.Task[int] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def exit_code(self) -> int | None:
        return self._task.result() if self._task is not None and self._task.done() else None

    async def launch(self) -> None:
        self._service = self._type(self._settings)
        self._task = asyncio.create_task(self._service.main())
        self._note("the service is started")

    async def kill(self) -> None:
        if self._service is None or not self.is_running:
            return
        self._note("the service is killed")
        self._service.die()
        await self._ended()

    def terminate(self) -> None:
        assert self._service is not None
        self._note("SIGTERM is sent to the service")
        self._service.stopping.set()

    def freeze(self) -> None:
        raise NotImplementedError("the judge would stand still too")

    async def ended(self, within: float) -> int | None:
        try:
            async with asyncio.timeout(within):
                return await self._ended()
        except TimeoutError:
            return None

    def log_tail(self) -> str:
        return ""

    async def _ended(self) -> int:
        assert self._task is not None
        return await asyncio.shield(self._task)


class BenchInProcess(Bench):
    def __init__(self, loaded: LoadedContract, folder: Path, service: type[Service]) -> None:
        super().__init__(loaded, folder, PATIENCE)
        self._type = service

    def _instance(self, state: str = "state") -> ServiceProcess:
        environment = self._environment(state)
        return ProcessInProcess(self.loaded, environment, self._log, self.mock, self._type)


async def judged(service: type[Service], only: Sequence[str], folder: Path) -> list[Outcome]:
    """What becomes of the cases of these names, each with a bench of its own."""
    loaded = load_contract(CONTRACT)
    outcomes = []
    for number, case in enumerate(chosen(list(all_cases(loaded.contract, Level.FULL)), only)):
        async with BenchInProcess(loaded, folder / str(number), service) as bench:
            outcomes.append(await judge(bench, case))
    return outcomes
