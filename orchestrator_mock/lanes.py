"""The mock's end of the bus: directives go out on their lane, replies come in on theirs."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from lucius_contract.errors import ContractError
from lucius_contract.messages import parse_reply
from lucius_contract.routing import (
    LANES,
    REPLY_SUBSCRIPTION,
    directive_topic,
    reply_topic,
)
from orchestrator_mock.answers import refused
from orchestrator_mock.bodies import json_object
from orchestrator_mock.judging import answered
from orchestrator_mock.ledger import MockLedger
from orchestrator_mock.recording import Recording, What
from servicebus_emulator.broker import (
    Complete,
    Delivery,
    Happening,
    Observation,
    SubscriptionSettings,
    TopicSettings,
)
from servicebus_emulator.messages import Message
from servicebus_emulator.rules import DEFAULT_RULE, CorrelationFilter, Rule
from servicebus_emulator.server import Emulator

_AT_ONCE = 64
_KEPT_MS = 300_000
_COMPLETE = Complete()
_SEEN = {happening: What(happening.value) for happening in Happening}


class Lanes:
    """Topics and subscriptions for one service, as `lucius up` makes them; only the locks may be
    shorter."""

    def __init__(self, service: str, lock_seconds: float, ledger: MockLedger, recording: Recording):
        self.service = service
        self._lock_ms = round(lock_seconds * 1000)
        self._ledger = ledger
        self._recording = recording
        self.emulator = Emulator(observe=self._observe)
        self._is_closed = False
        self._is_purging = False
        self._kept: list[tuple[str, bytes]] = []
        self.defects: list[str] = []
        """What went wrong with the mock itself."""

    async def open(self, port: int = 0) -> None:
        broker = self.emulator.broker
        settings = SubscriptionSettings(lock_duration=self._lock_ms)
        rule = Rule(self.service, CorrelationFilter({"service": self.service}))
        for lane in range(LANES):
            broker.create_topic(directive_topic(lane), TopicSettings())
            broker.create_subscription(directive_topic(lane), self.service, settings, [rule])
            broker.create_topic(reply_topic(lane), TopicSettings())
            broker.create_subscription(
                reply_topic(lane), REPLY_SUBSCRIPTION, SubscriptionSettings(), [DEFAULT_RULE]
            )
        await self.emulator.start(port=port)
        for lane in range(LANES):
            self._reader(lane)()

    async def close(self) -> None:
        self._is_closed = True
        await self.emulator.stop()

    @property
    def addresses(self) -> list[str]:
        """Where the service receives."""
        return [f"{directive_topic(lane)}/Subscriptions/{self.service}" for lane in range(LANES)]

    def waiting(self) -> int:
        """Directives that are not settled."""
        return sum(self.emulator.broker.counts(each).active for each in self.addresses)

    def purge(self) -> None:
        """Throw away what nobody holds; what is held comes back later, and can be purged then."""
        self._is_purging = True
        for address in self.addresses:
            source = self.emulator.broker.source(address)
            while source.take(_AT_ONCE, keep=False):
                pass
        self._is_purging = False

    def keep(self) -> None:
        """Let no lock run out on what the service holds now, until `let_go`."""
        for address in self.addresses:
            tokens = self.emulator.broker.source(address).hold(_KEPT_MS)
            self._kept += [(address, token) for token in tokens]

    def let_go(self) -> None:
        """What was kept, and is not settled meanwhile, can be delivered again."""
        kept, self._kept = self._kept, []
        for address, token in kept:
            self.emulator.broker.source(address).release(token)
        self.emulator.settle_soon()

    def publish(
        self,
        lane: int,
        body: bytes,
        message_id: str,
        partition_key: str,
        properties: Mapping[str, Any],
        ttl_ms: int | None,
    ) -> None:
        message = Message.build(
            body,
            message_id=message_id,
            partition_key=partition_key,
            ttl=ttl_ms,
            properties=properties,
        )
        self.emulator.broker.send(directive_topic(lane), [message])
        self.emulator.settle_soon()

    def _reader(self, lane: int) -> Callable[[], None]:
        source = self.emulator.broker.source(
            f"{reply_topic(lane)}/Subscriptions/{REPLY_SUBSCRIPTION}"
        )

        def read() -> None:
            if self._is_closed:
                return
            while deliveries := source.take(_AT_ONCE):
                for delivery in deliveries:
                    self._take(lane, delivery)
                    source.settle(delivery.token, _COMPLETE)
            self.emulator.settle_soon()
            source.await_message(wake)

        def wake() -> None:
            asyncio.get_running_loop().call_soon(read)

        return read

    def _take(self, lane: int, delivery: Delivery) -> None:
        """A defect of the mock must not keep it from reading on."""
        try:
            self._judge(lane, delivery)
        except Exception as error:
            self.defects.append(f"a reply on lane {lane} could not be judged: {error!r}")

    def _judge(self, lane: int, delivery: Delivery) -> None:
        message = delivery.message
        assert isinstance(message, Message)
        facts: dict[str, Any] = {
            "via": f"bus {lane}",
            "message_id": message.message_id or "",
            "headers": dict(message.facts.properties),
            "body": json_object(message.body),
        }
        try:
            reply = parse_reply(message.body)
        except ContractError as error:
            self._recording.add(What.UNREADABLE, answer=str(error), **facts)
        else:
            facts.update(job_id=reply.job_id, attempt_no=reply.attempt_no)
            try:
                answer = answered(self._ledger.judge(reply))
            except ContractError as error:
                answer = refused(error)
            self._recording.add(What(reply.type.value), answer=answer.said, **facts)

    def _observe(self, seen: Observation) -> None:
        topic, _, name = seen.path.partition("/Subscriptions/")
        if name != self.service or self._is_closed or self._is_purging:
            return
        message = seen.message
        assert isinstance(message, Message)
        properties = message.facts.properties
        number = properties.get("attempt_no")
        self._recording.add(
            _SEEN[seen.what],
            job_id=str(properties.get("jobId", "")),
            attempt_no=number if isinstance(number, int) else 0,
            message_id=message.message_id or "",
            detail=seen.reason or "",
            via=topic,
        )
