"""The request that a client submits."""

import re
from typing import Annotated, Any, Literal

import pydantic_core
from pydantic import AfterValidator, Field

from lucius_contract.documents import Document, Ref, SchemaVersion, read_object
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.refs import RefPolicy, check_no_credentials, check_refs
from lucius_contract.routing import MODE_SPELLINGS, Mode

TENANT_ID_LIMIT = 128
DOC_ID_LIMIT = 512
PAYLOAD_LIMIT = 128 * 1024
CALLBACK_URLS_LIMIT = 10

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TRACEPARENT = r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"


def _visible(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("must hold no control characters")
    if not text.strip():
        raise ValueError("must hold more than white space")
    return text


def _https(url: str) -> str:
    if not url.startswith("https://"):
        raise ValueError("must be an https url")
    return url


Visible = AfterValidator(_visible)
WebhookUrl = Annotated[str, Field(max_length=2048), AfterValidator(_https)]


class Envelope(Document):
    """A request, whole and well-formed, but not yet matched with a protocol."""

    tenant_id: Annotated[str, Field(min_length=1, max_length=TENANT_ID_LIMIT), Visible]
    """Whose job it is; at most 128 characters, none of them control characters."""
    request_type: Annotated[str, Field(min_length=1, max_length=256), Visible]
    """Names the protocol, or an alias of it."""
    input_ref: Ref
    """What the first step reads."""
    output_ref: Ref
    """Where the last step publishes."""
    payload: dict[str, Any]
    """Parameters per step, keyed by step type in lower case; at most 128 KiB."""
    schema_version: SchemaVersion
    """Version of this contract: 1, or 1 and a minor."""
    mode: Literal["DEFAULT", "SAFE", "BURST"] | None = None
    """SAFE is a spelling of DEFAULT; without one the tenant's or the global default counts."""
    doc_id: Annotated[str, Field(min_length=1, max_length=DOC_ID_LIMIT), Visible] | None = None
    """Spreads a tenant's work over lanes; required in mode BURST."""
    idempotency_key: Annotated[str, Field(min_length=1, max_length=256), Visible] | None = None
    """The same key again means the same request; without one the content decides."""
    callback_urls: Annotated[list[WebhookUrl], Field(max_length=CALLBACK_URLS_LIMIT)] | None = None
    """https addresses that are told when the job ends."""
    correlation_id: Annotated[str, Field(min_length=1, max_length=128), Visible] | None = None
    """Echoed in every message and log line of the job."""
    traceparent: Annotated[str, Field(pattern=_TRACEPARENT)] | None = None
    """W3C trace context to continue."""

    @property
    def requested_mode(self) -> Mode | None:
        return MODE_SPELLINGS[self.mode] if self.mode else None


def parse_envelope(raw: bytes, policy: RefPolicy) -> Envelope:
    """Read a request and check all that needs no configuration but the ref policy."""
    envelope = Envelope.read(read_object(raw))
    payload = pydantic_core.to_json(envelope.payload)
    if len(payload) > PAYLOAD_LIMIT:
        raise ContractError(
            ErrorCode.TOO_LARGE,
            f"the payload has {len(payload)} bytes",
            [Problem("/payload", f"at most {PAYLOAD_LIMIT} bytes; put large data behind a ref")],
        )
    check_refs(envelope.input_ref.uri, envelope.output_ref.uri, policy)
    if b"://" in payload:  # few payloads hold a uri, and the walk through one is long
        check_no_credentials(envelope.payload, "/payload")
    return envelope
