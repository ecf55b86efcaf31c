"""Topics and subscriptions on Azure Service Bus, or an emulator of it, as a topology wants them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus.aio.management import ServiceBusAdministrationClient
from azure.servicebus.management import RuleProperties, SubscriptionProperties, TopicProperties

from lucius_bus.filters import PropertyFilter
from lucius_bus.port import Misused
from lucius_bus.servicebus.administration_errors import translated
from lucius_bus.servicebus.administration_http import (
    AdministrationTransport,
    first_rule,
)
from lucius_bus.servicebus.differences import (
    correlation_of,
    filter_text,
    is_same_filter,
    rules_drift,
    settings_drift,
    topic_drift,
)
from lucius_bus.topology import (
    Drift,
    SubscriptionSettings,
    Topology,
    TopologyReport,
)

_AT_ONCE = 8
_DEFAULT_RULE = "$Default"
P = ParamSpec("P")
T = TypeVar("T")


class ServiceBusTopology:
    """Creates what is missing, and tells what is otherwise. What exists is never changed and never
    deleted: messages may be in it.

    A subscription is created together with its one rule. Where the service did not take the rule
    (an old emulator) it is created at once after, and the rule that lets everything through, which
    came with the new subscription, is deleted. Several may apply at the same time.
    """

    def __init__(
        self,
        namespace: str,
        credential: AsyncTokenCredential,
        *,
        transport: AdministrationTransport | None = None,
    ) -> None:
        """`namespace` is the full name of its host. The credential stays the caller's to close."""
        self._open(
            ServiceBusAdministrationClient(
                namespace, credential, transport=transport or AdministrationTransport()
            )
        )

    @classmethod
    def from_connection_string(
        cls, text: str, *, transport: AdministrationTransport | None = None
    ) -> Self:
        """With `UseDevelopmentEmulator=true` plain HTTP is spoken to the host and port of the
        endpoint. `Misused`: the text is not a connection string."""
        chosen = transport or AdministrationTransport(is_plain=_is_emulator(text))
        try:
            client = ServiceBusAdministrationClient.from_connection_string(text, transport=chosen)
        except ValueError as error:
            raise Misused(f"this is not a connection string of Service Bus: {error}") from None
        topology = cls.__new__(cls)
        topology._open(client)
        return topology

    def _open(self, client: ServiceBusAdministrationClient) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.close()

    async def apply(self, topology: Topology) -> TopologyReport:
        return await self._visit(topology, is_creating=True)

    async def compare(self, topology: Topology) -> TopologyReport:
        return await self._visit(topology, is_creating=False)

    async def _visit(self, topology: Topology, *, is_creating: bool) -> TopologyReport:
        for subscriptions in topology.topics.values():
            for one in subscriptions:
                filter_text(one.filter)  # before anything is created
        reports = await _together(
            self._topic(name, subscriptions, is_creating=is_creating)
            for name, subscriptions in topology.topics.items()
        )
        return _joined(reports)

    async def _topic(
        self, topic: str, wanted: tuple[SubscriptionSettings, ...], *, is_creating: bool
    ) -> TopologyReport:
        found = await self._unless(ResourceNotFoundError, self._client.get_topic, topic)
        report = TopologyReport()
        if found is None and not is_creating:
            return TopologyReport(missing=(topic, *(f"{topic}/{one.name}" for one in wanted)))
        if found is None:
            found, report = await self._create_topic(topic)
        report = _joined([report, TopologyReport(drift=tuple(topic_drift(topic, found)))])
        return _joined([report, await self._subscriptions(topic, wanted, is_creating=is_creating)])

    async def _create_topic(self, topic: str) -> tuple[TopicProperties, TopologyReport]:
        created = await self._unless(ResourceExistsError, self._client.create_topic, topic)
        if created is not None:
            return created, TopologyReport(created=(topic,))
        return await self._ask(self._client.get_topic, topic), TopologyReport()

    async def _subscriptions(
        self, topic: str, wanted: tuple[SubscriptionSettings, ...], *, is_creating: bool
    ) -> TopologyReport:
        listed = await self._ask(_all, self._client.list_subscriptions(topic))
        found = {one.name.lower(): one for one in listed}
        reports = await _together(
            self._subscription(topic, one, found.pop(one.name.lower(), None), is_creating)
            for one in wanted
        )
        unwanted = (
            Drift(f"{topic}/{one.name}", "subscription", "none", "exists") for one in found.values()
        )
        return _joined([*reports, TopologyReport(drift=tuple(unwanted))])

    async def _subscription(
        self,
        topic: str,
        wanted: SubscriptionSettings,
        found: SubscriptionProperties | None,
        is_creating: bool,
    ) -> TopologyReport:
        path = f"{topic}/{wanted.name}"
        if found is None and not is_creating:
            return TopologyReport(missing=(path,))
        created: tuple[str, ...] = ()
        if found is None:
            found = await self._create_subscription(topic, wanted)
            created = (path,) if found is not None else ()
        if found is None:
            found = await self._ask(self._client.get_subscription, topic, wanted.name)
        rules = await self._rules(topic, wanted)
        if created and isinstance(wanted.filter, PropertyFilter):
            rules = await self._with_only_rule(topic, wanted, wanted.filter, rules)
        drift = [*settings_drift(path, wanted, found), *rules_drift(path, wanted.filter, rules)]
        return TopologyReport(created, tuple(drift))

    async def _create_subscription(
        self, topic: str, wanted: SubscriptionSettings
    ) -> SubscriptionProperties | None:
        options: dict[str, Any] = {}
        if isinstance(wanted.filter, PropertyFilter):
            options["first_rule"] = first_rule(wanted.name, wanted.filter)
        return await self._unless(
            ResourceExistsError,
            self._client.create_subscription,
            topic,
            wanted.name,
            lock_duration=wanted.lock_duration,
            requires_session=wanted.requires_session,
            default_message_time_to_live=wanted.default_ttl,
            dead_lettering_on_message_expiration=wanted.dead_letter_on_expiry,
            max_delivery_count=wanted.max_delivery_count,
            **options,
        )

    async def _rules(self, topic: str, wanted: SubscriptionSettings) -> list[RuleProperties]:
        return await self._ask(_all, self._client.list_rules(topic, wanted.name))

    async def _with_only_rule(
        self,
        topic: str,
        wanted: SubscriptionSettings,
        condition: PropertyFilter,
        rules: list[RuleProperties],
    ) -> list[RuleProperties]:
        """Of a subscription that was created just now. First its rule is made and then the default
        goes: for a moment the subscription gets too much, and never too little."""
        if [rule.name for rule in rules if not is_same_filter(condition, rule)] != [_DEFAULT_RULE]:
            return rules
        client, path, correlation = self._client, (topic, wanted.name), correlation_of(condition)
        await self._unless(
            ResourceExistsError, client.create_rule, *path, wanted.name, filter=correlation
        )
        await self._unless(ResourceNotFoundError, client.delete_rule, *path, _DEFAULT_RULE)
        return await self._rules(topic, wanted)

    async def _ask(
        self, verb: Callable[P, Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> T:
        async with self._slots:
            with translated():
                return await verb(*arguments, **options)

    async def _unless(
        self,
        refusal: type[AzureError],
        verb: Callable[P, Awaitable[T]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T | None:
        """None: the service refused it for this reason, as it is there already or not there."""
        async with self._slots:
            with translated():
                try:
                    return await verb(*arguments, **options)
                except refusal:
                    return None


async def _all(found: AsyncIterator[T]) -> list[T]:
    return [one async for one in found]


async def _together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return [task.result() for task in tasks]


def _joined(reports: Iterable[TopologyReport]) -> TopologyReport:
    created, drift, missing = zip(*reports, strict=True)
    return TopologyReport(sum(created, ()), sum(drift, ()), sum(missing, ()))


def _is_emulator(text: str) -> bool:
    settings = dict(part.partition("=")[::2] for part in text.split(";"))
    folded = {name.strip().lower(): value.strip().lower() for name, value in settings.items()}
    return folded.get("usedevelopmentemulator") == "true"
