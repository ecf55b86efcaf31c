"""Mistakes with directives that are not as usual."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tests.conform.broken_services.directives import (
    Directive,
    Malformed,
    directive_of,
    json_object,
)
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.lanes import Delivery
from tests.conform.broken_services.replies import NotDelivered
from tests.conform.broken_services.sound import STEP_TYPE, Service
from tests.conform.broken_services.wording import (
    FAILED_FINAL,
    FAILED_RETRY,
    SUCCEEDED,
    Body,
    Outcome,
    encoded,
)
from tests.conform.broken_services.work import StepFailed

_KINDS = 5
"""Of malformed directives that the suite sends."""


class RetriesInvalidPayloads(Service):
    """A payload that cannot be read fails as everything else does: it is tried again."""

    def invalid_payload(self) -> StepFailed:
        return StepFailed(FAILED_RETRY, "PAYLOAD_INVALID", "the payload cannot be read")


class NamesAnotherCode(Service):
    """The code of an invalid payload is the service's own."""

    def invalid_payload(self) -> StepFailed:
        return StepFailed(FAILED_FINAL, "GREETING_PAYLOAD", "the payload cannot be read")


class CallsInvalidPayloadsRetryable(Service):
    """The status of an invalid payload says that it is no use, the class that it is."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        if outcome.code == "PAYLOAD_INVALID":
            body["failure_class"] = "RETRYABLE"
        return body


class LeavesOutTheClass(Service):
    """The status says it all, so there is no class."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        body.pop("failure_class", None)
        return body


class SpellsFinalTheOldWay(Service):
    """A failure for good is FAILED, made precise by its class."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        return {**body, "status": "FAILED"} if outcome.status == FAILED_FINAL else body


class ValidatesAfterReading(Service):
    """The payload is looked at when it is needed, which is after the input was read."""

    async def work(self, directive: Directive, epoch: int) -> Outcome:
        try:
            await self.read_input(directive)
        except Exception as error:
            return self.failed(error)
        return await super().work(directive, epoch)


class OverlooksUnknownParameters(Service):
    """What it does not know in a payload is not looked at."""

    def ending_of(self, payload: Mapping[str, Any]) -> str:
        return str(payload.get("ending", ""))


class CompletesTheMalformed(Service):
    """A message that cannot be read is logged and completed."""

    async def refuse_malformed(self, delivery: Delivery, _why: str) -> None:
        await delivery.complete()


class AbandonsTheMalformed(Service):
    """A message that cannot be read is given back, as after any other failure."""

    async def refuse_malformed(self, delivery: Delivery, _why: str) -> None:
        await delivery.abandon()


class GivesNoReason(Service):
    """A message that cannot be read is dead-lettered without a word."""

    async def refuse_malformed(self, delivery: Delivery, _why: str) -> None:
        await delivery.dead_letter(None, None)


class DiesOfTheMalformed(Service):
    """Nobody catches what the parser raises."""

    async def refuse_malformed(self, _delivery: Delivery, _why: str) -> None:
        os._exit(1)


class EndsAfterFiveMalformed(Service):
    """What cannot be read is refused, and when that has happened too often the service ends."""

    refused = 0

    async def refuse_malformed(self, delivery: Delivery, why: str) -> None:
        await super().refuse_malformed(delivery, why)
        self.refused += 1
        if self.refused == _KINDS:
            self.stopping.set()


class AnswersTheMalformed(Service):
    """What can be made out of a directive is used to report that the rest cannot."""

    async def refuse_malformed(self, delivery: Delivery, why: str) -> None:
        with suppress(ValueError, KeyError, TypeError, NotDelivered):
            body = json.loads(delivery.body)
            directive = directive_of({"lease_id": "unknown", **body})
            failed = Outcome(FAILED_FINAL, code="INPUT_INVALID", message=why)
            raw = encoded(self.result(directive, failed))
            await self.replies.send(directive, "RESULT", raw)
        await super().refuse_malformed(delivery, why)


class WorksOnTheMalformed(Service):
    """The input is fetched ahead, before the whole directive is read."""

    async def refuse_malformed(self, delivery: Delivery, why: str) -> None:
        with suppress(ValueError, KeyError, TypeError):
            async with self.http.get(json.loads(delivery.body)["input_ref"]["uri"]) as response:
                await response.read()
        await super().refuse_malformed(delivery, why)


class ReadsAnyVersion(Service):
    """The version of the contract is not looked at."""

    def read(self, raw: bytes) -> Directive:
        return directive_of(json_object(raw))


class ForbidsUnknownFields(Service):
    """Directives are read into a model that forbids what it does not know."""

    def read(self, raw: bytes) -> Directive:
        # Imported here: it would slow the start of every other service.
        from pydantic import ConfigDict

        from lucius_contract.errors import ContractError
        from lucius_contract.messages import Directive as Model

        class Strict(Model):
            model_config = ConfigDict(extra="forbid")

        try:
            Strict.read(json_object(raw))
        except ContractError as error:
            raise Malformed(str(error)) from error
        return super().read(raw)


class ForbidsUnknownPartsOfRefs(Service):
    """A ref is a URI and nothing else."""

    def read(self, raw: bytes) -> Directive:
        if json_object(raw).get("input_ref", {}).keys() != {"uri"}:
            raise Malformed("input_ref has more than a uri")
        return super().read(raw)


class ForbidsMinorVersions(Service):
    """The version of the contract must be exactly the one that the service was written for."""

    def read(self, raw: bytes) -> Directive:
        if json_object(raw).get("schema_version", "1") != "1":
            raise Malformed("not version 1")
        return super().read(raw)


class FailsUnknownFields(Service):
    """A directive with a member that nobody knows is answered as invalid."""

    has_news = False

    def read(self, raw: bytes) -> Directive:
        self.has_news = any(name.startswith("x_") for name in json_object(raw))
        return super().read(raw)

    def ending_of(self, payload: Mapping[str, Any]) -> str:
        if self.has_news:
            raise StepFailed(FAILED_FINAL, "INPUT_INVALID", "the directive has unknown members")
        return super().ending_of(payload)


class RunsForeignSteps(Service):
    """Whatever comes from its subscription is its own."""

    def owns(self, _directive: Directive) -> bool:
        return True


class SucceedsWithForeignSteps(Service):
    """A step type that it has no handler for is done at once."""

    def owns(self, _directive: Directive) -> bool:
        return True

    async def work(self, directive: Directive, epoch: int) -> Outcome:
        if directive.step_type != STEP_TYPE:
            return Outcome(SUCCEEDED)
        return await super().work(directive, epoch)


class TriesForeignSteps(Service):
    """A step type that is not its own is found out in the work, when the input was read."""

    def owns(self, _directive: Directive) -> bool:
        return True

    async def read_input(self, directive: Directive) -> str:
        text = await super().read_input(directive)
        if directive.step_type != STEP_TYPE:
            raise StepFailed(FAILED_FINAL, "INPUT_INVALID", "this cannot be greeted")
        return text


FLAWS = (
    Flaw(
        "LC-12",
        RetriesInvalidPayloads,
        ("invalid-payload-http",),
        said="status FAILED_RETRY, not FAILED_FINAL",
    ),
    Flaw(
        "LC-12",
        NamesAnotherCode,
        ("invalid-payload-bus",),
        said="error code GREETING_PAYLOAD, not PAYLOAD_INVALID",
    ),
    Flaw(
        "LC-12",
        ValidatesAfterReading,
        ("invalid-payload-http",),
        said="the work was begun although the payload is invalid",
    ),
    Flaw(
        "LC-12",
        CallsInvalidPayloadsRetryable,
        ("invalid-payload-http", "invalid-payload-bus"),
        said="failure_class RETRYABLE, not NON_RETRYABLE",
    ),
    Flaw("LC-12", LeavesOutTheClass, ("invalid-payload-bus",), said="failure_class None"),
    Flaw("LC-12", SpellsFinalTheOldWay, ("invalid-payload-http",), said="status FAILED, not"),
    Flaw(
        "LC-12",
        OverlooksUnknownParameters,
        ("invalid-payload-http",),
        said="status SUCCEEDED, not FAILED_FINAL",
    ),
    Flaw("LC-13", CompletesTheMalformed, said="(not-json) was completed"),
    Flaw("LC-13", AbandonsTheMalformed, said="(not-json) was delivered until the bus gave it up"),
    Flaw("LC-13", GivesNoReason, said="(not-json) was dead-lettered without a reason"),
    Flaw("LC-13", DiesOfTheMalformed),
    Flaw("LC-13", EndsAfterFiveMalformed, said="the service has ended with exit code 0"),
    Flaw("LC-13", AnswersTheMalformed, said="(field-missing) was worked on"),
    Flaw("LC-13", ReadsAnyVersion, said="(other-version) was completed"),
    Flaw("LC-13", WorksOnTheMalformed, said="was worked on"),
    Flaw("LC-19", ForbidsUnknownFields, said="was dead-lettered"),
    Flaw("LC-19", ForbidsUnknownPartsOfRefs, said="was dead-lettered"),
    Flaw("LC-19", ForbidsMinorVersions, said="was dead-lettered"),
    Flaw("LC-19", FailsUnknownFields, said="was answered FAILED_FINAL"),
    Flaw("LC-23", RunsForeignSteps, said="a step type that is not the service's own was run"),
    Flaw(
        "LC-23",
        SucceedsWithForeignSteps,
        said="a directive of a foreign step type was answered SUCCEEDED",
    ),
    Flaw("LC-23", TriesForeignSteps, said="a step type that is not the service's own was run"),
)
