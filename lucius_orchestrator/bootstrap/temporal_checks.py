"""Temporal and the invoker, as `lucius doctor` looks at them: each with the next thing to do."""

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.bootstrap.authentication import invoker_key_file
from lucius_orchestrator.bootstrap.dev_server import ProgramMissing, find_program
from lucius_orchestrator.bootstrap.invoking import open_invoker
from lucius_orchestrator.bootstrap.temporal import options_of
from lucius_orchestrator.ports.invoker import InvokerError, InvokerRefused
from lucius_orchestrator.ports.workflows import WorkflowError
from lucius_orchestrator.settings import Settings
from lucius_outbox.redaction import redacted

if TYPE_CHECKING:
    from lucius_orchestrator.temporal.connection import TemporalOptions

_SECONDS = 10.0
_INSIDE = "inside `lucius up`; for `lucius serve` set"
_REMEDY = "start it, or mend LUCIUS_TEMPORAL_ADDRESS and LUCIUS_TEMPORAL_NAMESPACE"


async def temporal_checks(settings: Settings) -> list[Check]:
    """None where Temporal drives nothing."""
    if not settings.knows_temporal:
        return []
    return [await _temporal(settings), await _invoker(settings)]


async def _temporal(settings: Settings) -> Check:
    if find_spec("temporalio") is None:
        reason = "its client is not installed: pip install 'lucius-sdk[temporal]'"
        return Check("temporal", False, reason)
    if settings.temporal_address is not None:
        return await _server(options_of(settings, settings.temporal_address))
    program = find_program()
    if program is None:
        return Check("temporal", False, str(ProgramMissing()))
    return Check("temporal", True, f"{_INSIDE} LUCIUS_TEMPORAL_ADDRESS ({program})")


async def _server(options: "TemporalOptions") -> Check:
    from lucius_orchestrator.temporal.client import TemporalWorkflows

    address, namespace = options.address, options.namespace
    try:
        async with asyncio.timeout(_SECONDS):
            await TemporalWorkflows(options).check()
            found = await _search_attributes(options)
    except TimeoutError:
        return Check("temporal", False, f"{address}: no answer within {_SECONDS:.0f} s: {_REMEDY}")
    except WorkflowError as error:
        return Check("temporal", False, f"{address}: {redacted(str(error))}: {_REMEDY}")
    return Check("temporal", True, f"{address} answers, and has the namespace {namespace}; {found}")


async def _search_attributes(options: "TemporalOptions") -> str:
    """Nothing but the search in Temporal's own tools needs them."""
    from lucius_orchestrator.temporal.connection import connected
    from lucius_orchestrator.temporal.errors import own_errors
    from lucius_orchestrator.temporal.search import missing_attributes

    try:
        with own_errors():
            missing = await missing_attributes(await connected(options))
    except WorkflowError as error:
        return f"its search attributes cannot be looked at: {redacted(str(error))}"
    if not missing:
        return "it has the search attributes"
    return (
        f"it has no search attributes {', '.join(missing)} yet: the first job adds them, if that is"
        " allowed; else add them as Keyword"
    )


async def _invoker(settings: Settings) -> Check:
    url = settings.invoker_url
    if url is None:
        return Check("invoker", True, f"{_INSIDE} LUCIUS_INVOKER_URL")
    if not settings.invoker_keys and not invoker_key_file(settings).exists():
        reason = "there is no credential for it: set LUCIUS_INVOKER_KEYS to the keys that it has"
        return Check("invoker", False, reason)
    try:
        async with open_invoker(settings) as invoker:
            await invoker.check()
    except InvokerRefused as refused:
        is_ours = refused.code is not ErrorCode.UNAUTHENTICATED
        remedy = "look at its log" if is_ours else "set LUCIUS_INVOKER_KEYS to the keys that it has"
        return Check("invoker", False, f"{url}: {refused}: {remedy}")
    except InvokerError as error:
        remedy = "start it with `lucius serve invoker`, or mend LUCIUS_INVOKER_URL"
        return Check("invoker", False, f"{url}: {error}: {remedy}")
    return Check("invoker", True, f"{url} answers, to this credential")
