"""Answers to the two questions that people debug with: which lane, and which hash."""

import json
from typing import Annotated, BinaryIO

import typer

from lucius_contract.routing import (
    MODE_SPELLINGS,
    Mode,
    directive_topic,
    lane_of,
    partition_key,
    reply_topic,
    routing_key,
)


def lane(
    tenant: Annotated[
        str, typer.Argument(metavar="TENANT", help="The tenant_id, as in the request.")
    ],
    doc: Annotated[str | None, typer.Option(help="The doc_id; needed in mode BURST.")] = None,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(MODE_SPELLINGS)}.")] = "DEFAULT",
) -> None:
    """Print the routing key, lane and topics of a tenant, as JSON."""
    resolved = MODE_SPELLINGS.get(mode)
    if resolved is None:
        raise typer.BadParameter(f"one of {', '.join(MODE_SPELLINGS)}", param_hint="--mode")
    if resolved is Mode.BURST and doc is None:
        raise typer.BadParameter("mode BURST needs a document", param_hint="--doc")
    if not tenant.strip():
        raise typer.BadParameter("must hold more than white space", param_hint="TENANT")
    key = routing_key(tenant, resolved, doc)
    number = lane_of(key)
    _print(
        {
            "tenant_id": tenant,
            "doc_id": doc,
            "mode": resolved,
            "routing_key_used": key,
            "lane": number,
            "directive_topic": directive_topic(number),
            "reply_topic": reply_topic(number),
            "partition_key": partition_key(key),
        }
    )


def hash_(
    file: Annotated[
        typer.FileBinaryRead,
        typer.Argument(metavar="FILE", help="A request envelope; - reads standard input."),
    ],
) -> None:
    """Print the canonical form and hash of a request, as JSON."""
    from lucius_contract.canonical import canonical_request, idempotency_hash

    request = _read_request(file)
    _print(
        {
            "request_type": request["request_type"],
            "idempotency_hash": idempotency_hash(request),
            "canonical": canonical_request(request).decode(),
        }
    )


def _read_request(file: BinaryIO) -> dict[str, object]:
    from lucius_contract.canonical import resolve_arrows
    from lucius_contract.documents import read_object
    from lucius_contract.envelope import Envelope

    envelope = read_object(file.read())
    Envelope.read(envelope)
    return {**envelope, "request_type": resolve_arrows(envelope["request_type"])}


def _print(value: dict[str, object]) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))
