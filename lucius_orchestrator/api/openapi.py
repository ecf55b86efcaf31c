"""The OpenAPI document. FastAPI says what it knows of parameters; the rest is made from the table
of operations, for its routes and for the plain ones alike."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from lucius_contract import CONTRACT_VERSION
from lucius_contract.errors import ERRORS, ErrorCode
from lucius_orchestrator.api import health, stream
from lucius_orchestrator.api.answers import JSON
from lucius_orchestrator.api.artifacts.examples import UPLOAD_ID
from lucius_orchestrator.api.examples import CORRELATION, EXAMPLES, JOB_ID, TEXTS, TRACE
from lucius_orchestrator.api.operation import Code, Guard, Operation, Parameter
from lucius_orchestrator.api.operations import OPERATIONS
from lucius_orchestrator.api.problems import HTTP_CODES, MEDIA_TYPE, TYPE_PREFIX
from lucius_orchestrator.api.shapes import Problem

Node = dict[str, Any]

_REF = "#/components/schemas/{model}"
_ALWAYS: Mapping[Guard, tuple[Code, ...]] = {
    Guard.NOBODY: (ErrorCode.ENVELOPE_INVALID, ErrorCode.INTERNAL),
    Guard.CALLER: (
        ErrorCode.ENVELOPE_INVALID,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.FORBIDDEN,
        ErrorCode.UNAVAILABLE,
        ErrorCode.INTERNAL,
    ),
    Guard.CALLBACK_TOKEN: (
        ErrorCode.ENVELOPE_INVALID,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.FORBIDDEN,
        ErrorCode.UNAVAILABLE,
        ErrorCode.INTERNAL,
    ),
    Guard.SIGNED_URL: (
        ErrorCode.ENVELOPE_INVALID,
        ErrorCode.FORBIDDEN,
        ErrorCode.UNAVAILABLE,
        ErrorCode.INTERNAL,
    ),
}
_SECURITY: Mapping[Guard, list[Node]] = {
    Guard.NOBODY: [],
    Guard.CALLER: [{"apiKey": []}, {"jwt": []}],
    Guard.CALLBACK_TOKEN: [{"callbackToken": []}],
    Guard.SIGNED_URL: [{"signedUrl": []}],
}
_SCHEMES: Node = {
    "apiKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, as `lucius keys create` prints it.",
    },
    "jwt": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "callbackToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The directive's `callback_token`; good for that attempt alone.",
    },
    "signedUrl": {
        "type": "apiKey",
        "in": "query",
        "name": "signature",
        "description": "Part of an address that another operation has given out.",
    },
}
_REQUEST_HEADERS: Mapping[str, tuple[str, str]] = {
    "X-Correlation-Id": ("Echoed, logged, and the job's unless the body names one.", CORRELATION),
    "Idempotency-Key": ("The same key again means the same request.", "invoice-4711"),
    "traceparent": ("W3C trace context to continue.", TRACE),
    "If-None-Match": ("The ETag of what the client has.", '"6d1f"'),
    "Last-Event-ID": ("The id of the last event that the client has.", "7"),
    "Range": ("One range of bytes.", "bytes=0-4"),
}
_ANSWER_HEADERS: Mapping[str, tuple[str, str]] = {
    "X-Correlation-Id": ("The request's, or a new one.", CORRELATION),
    "Location": ("Where that is which was made.", f"/v1/jobs/{JOB_ID}"),
    "ETag": ("Changes whenever the job does.", '"6d1f"'),
    "Retry-After": ("Seconds to wait.", "5"),
    "WWW-Authenticate": ("How to show who calls.", "Bearer"),
    "Allow": ("What is allowed instead.", "GET"),
}
_TEXT_TYPES = {
    "streamEvents": stream.MEDIA_TYPE,
    "metrics": health.PROMETHEUS,
    "readObject": "*/*",
}
_NO_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_STATUSES = {code: status for status, code in HTTP_CODES.items()}


def document(app: FastAPI) -> Node:
    found = get_openapi(
        title="LUCIUS control plane",
        version=f"{CONTRACT_VERSION}.0.0",
        description=(
            "Submit requests, follow the jobs that they become, answer directives, and keep the"
            " documents that they read and write as artifacts. Errors are"
            " problem details with a stable `code`. Unknown members of requests are tolerated,"
            " unknown query parameters are refused."
        ),
        routes=app.routes,
    )
    known = found["paths"]
    found["paths"] = {}
    for operation in OPERATIONS:
        parameters = _parameters(known, operation)
        place = found["paths"].setdefault(operation.path, {})
        place[operation.method.lower()] = _described(operation, parameters)
    found["components"] = _components()
    return found


def _parameters(known: Node, operation: Operation) -> list[Node]:
    of_route = known.get(operation.path, {}).get(operation.method.lower(), {})
    headers = ("X-Correlation-Id", *operation.headers)
    named = [{"$ref": f"#/components/parameters/{name}"} for name in headers]
    own = map(_parameter, operation.parameters)
    return [*map(_with_example, of_route.get("parameters", ())), *own, *named]


def _parameter(parameter: Parameter) -> Node:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": True,
        "schema": {"type": "string"},
        "description": parameter.meaning,
        "example": parameter.example,
    }


def _with_example(parameter: Node) -> Node:
    examples = {
        "jobId": JOB_ID,
        "protocolId": "ocr",
        "uploadId": UPLOAD_ID,
        "name": "invoices",
        "version": 3,
        "uri": "artifact://invoices/v3/scan.pdf",
    }
    name = parameter["name"]
    return parameter | ({"example": examples[name]} if name in examples else {})


def _described(operation: Operation, parameters: list[Node]) -> Node:
    described: Node = {
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "security": _SECURITY[operation.guard],
        "parameters": parameters,
        "responses": _responses(operation),
    }
    if operation.body is not None:
        content = _content(operation.body.__name__)
        described["requestBody"] = {"required": True, "content": content}
    if operation.bytes is not None:
        binary = {"schema": {"type": "string", "format": "binary"}, "example": TEXTS[operation.id]}
        described["requestBody"] = {"required": True, "content": {operation.bytes: binary}}
    return described


def _responses(operation: Operation) -> Node:
    responses = {operation.status: _answer(operation)}
    for status, meaning in operation.others:
        responses[status] = {"description": meaning}
        if operation.shape is not None and status not in _NO_BODY:
            responses[status] |= {"content": _content(operation.shape.__name__)}
    for status, codes in _by_status((*_ALWAYS[operation.guard], *operation.codes)).items():
        responses[status] = _refusal(status, codes)
    for response in responses.values():
        response.setdefault("headers", {}).update(_headers("X-Correlation-Id"))
    return {str(status): responses[status] for status in sorted(responses)}


def _answer(operation: Operation) -> Node:
    headers = _headers(*operation.answers_with)
    answer: Node = {"description": operation.summary, "headers": headers}
    if operation.shape is not None:
        return answer | {"content": _content(operation.shape.__name__)}
    if operation.status in _NO_BODY:
        return answer
    return answer | {"content": {_TEXT_TYPES[operation.id]: {"example": TEXTS[operation.id]}}}


def _refusal(status: int, codes: Iterable[Code]) -> Node:
    named = list(codes)
    retryable = any(ERRORS[code].retryable for code in named if isinstance(code, ErrorCode))
    headers = ["Retry-After"] if retryable else []
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append("WWW-Authenticate")
    content = {
        "schema": {"$ref": _REF.format(model="Problem")},
        "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in named},
    }
    return {
        "description": ", ".join(named),
        "content": {MEDIA_TYPE: content},
        "headers": _headers(*headers),
    }


def _by_status(codes: Iterable[Code]) -> dict[int, list[Code]]:
    found: dict[int, list[Code]] = {}
    for code in dict.fromkeys(codes):
        found.setdefault(_status_of(code), []).append(code)
    return found


def _status_of(code: Code) -> int:
    if isinstance(code, ErrorCode):
        return ERRORS[code].http_status or HTTPStatus.INTERNAL_SERVER_ERROR
    return _STATUSES[code]


def _all_codes() -> set[Code]:
    return {code for op in OPERATIONS for code in (*_ALWAYS[op.guard], *op.codes)}


def _problem(code: Code) -> Node:
    status = _status_of(code)
    meaning = ERRORS[code].meaning if isinstance(code, ErrorCode) else HTTPStatus(status).phrase
    return {
        "type": TYPE_PREFIX + code,
        "title": meaning,
        "status": status,
        "detail": meaning,
        "code": code,
        "errors": [],
        "correlation_id": CORRELATION,
    }


def _content(schema: str) -> Node:
    example = EXAMPLES[schema]
    return {JSON: {"schema": {"$ref": _REF.format(model=schema)}, "example": example}}


def _headers(*names: str) -> Node:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _components() -> Node:
    shapes = [operation.shape for operation in OPERATIONS if operation.shape]
    bodies = [operation.body for operation in OPERATIONS if operation.body]
    models: list[type[BaseModel]] = list(dict.fromkeys([*bodies, *shapes, Problem]))
    _, merged = models_json_schema([(m, "validation") for m in models], ref_template=_REF)
    return {
        "schemas": merged["$defs"],
        "examples": {code: {"value": _problem(code)} for code in sorted(_all_codes())},
        "parameters": {
            name: {"name": name, "in": "header", **_header(*about)}
            for name, about in _REQUEST_HEADERS.items()
        },
        "headers": {name: _header(*about) for name, about in _ANSWER_HEADERS.items()},
        "securitySchemes": _SCHEMES,
    }


def _header(description: str, example: str) -> Node:
    return {"description": description, "schema": {"type": "string"}, "example": example}
