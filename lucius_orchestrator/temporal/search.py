"""Search attributes: by which jobs are found in Temporal's own tools."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from lucius_orchestrator.temporal.shapes import REQUEST_TYPE, STATE, TENANT

_KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
_NAMES = (TENANT, REQUEST_TYPE, STATE)
_TIMEOUT = timedelta(seconds=10)


def attributes_of(body: Mapping[str, Any]) -> TypedSearchAttributes:
    """Of the job of a START row."""
    values = (body["tenant_id"], body["request_type"], body["next"]["state"])
    keys = (SearchAttributeKey.for_keyword(name) for name in _NAMES)
    pairs = zip(keys, values, strict=True)
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs])


async def add_attributes(client: Client) -> bool:
    """Whether the namespace has them now."""
    missing = await missing_attributes(client)
    if not missing:
        return True
    request = AddSearchAttributesRequest(
        namespace=client.namespace, search_attributes=dict.fromkeys(missing, _KEYWORD)
    )
    try:
        await client.operator_service.add_search_attributes(request, timeout=_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:  # another was quicker
            raise
    return not await missing_attributes(client)


async def missing_attributes(client: Client) -> list[str]:
    """Those that the namespace does not have."""
    request = ListSearchAttributesRequest(namespace=client.namespace)
    found = await client.operator_service.list_search_attributes(request, timeout=_TIMEOUT)
    return [name for name in _NAMES if found.custom_attributes.get(name) != _KEYWORD]
