"""Malformed requests, forged replies, queries and cursors."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.security.attacks.live.attempts.attempt import Attempt, asked, got_through
from tests.security.attacks.live.attempts.refs import submitted
from tests.security.attacks.live.target import ATTACKER, ENVELOPE, VICTIM, Target


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def envelopes() -> Iterator[Attempt]:
    wrong: dict[str, dict[str, Any]] = {
        "another major": {"schema_version": "2"},
        "an unknown type": {"request_type": "../../etc/passwd"},
        "a type as a list": {"request_type": ["OCR"]},
        "a tenant as a list": {"tenant_id": [ATTACKER, VICTIM]},
        "a tenant as an object": {"tenant_id": {"$ne": None}},
        "a foreign mode": {"mode": "ROOT"},
        "BURST without a document": {"mode": "BURST"},
        "a large document id": {"mode": "BURST", "doc_id": "x" * 513},
        "a payload as a text": {"payload": "{}"},
        "an unknown member of the payload": {"payload": {"__proto__": {"admin": True}}},
        "a payload that is too large": {"payload": {"dpi": 300, "x": "y" * 200_000}},
        "a ref without a uri": {"input_ref": {}},
        "a ref as a text": {"input_ref": "az://inbox/beta/a"},
        "a traceparent with a line end": {"traceparent": "00-\r\nX: 1"},
        "a large key": {"idempotency_key": "k" * 10_000},
    }
    for name, members in wrong.items():
        yield submitted(name, **members)
    bodies: dict[str, bytes] = {
        "nothing": b"",
        "no json": b"<xml/>",
        "no object": b"[]",
        "a broken utf-8": b'{"tenant_id": "\xff"}',
        "a byte order mark": b"\xef\xbb\xbf{}",
        "utf-16": json.dumps(ENVELOPE).encode("utf-16"),
        "NaN": b'{"payload": NaN}',
        "a huge number": b'{"payload": {"dpi": 1' + b"0" * 5000 + b"}}",
        "a member twice": b'{"tenant_id": "beta", "tenant_id": "alpha"}',
        "lists 1,000 deep": _nested(1_000).encode(),
        "lists 100,000 deep": _nested(100_000).encode(),
        "a payload 5,000 deep": b'{"payload": ' + _nested(5_000).encode() + b"}",
        "a lone surrogate": b'{"tenant_id": "\\ud800"}',
        "a nul": b'{"tenant_id": "be\\u0000ta"}',
        "ten megabytes": b'{"payload": "' + b"x" * 10_000_000 + b'"}',
        "a compressed body": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    }
    for path in ("/v1/orchestrate", "/v1/commands"):
        for name, body in bodies.items():
            yield asked(f"{path} with {name}", "POST", path, content=body)
    gzip = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    yield asked(
        "a body that says gzip", "POST", "/v1/orchestrate", content=b"\x1f\x8b", headers=gzip
    )


_TOKENS: dict[str, Callable[[str], str]] = {
    "no token": lambda _: "",
    "a token without its signature": lambda token: token.rpartition(".")[0],
    "an empty signature": lambda token: _with_part(token, 3, ""),
    "another signature": lambda token: _with_part(token, 3, "A" * 43),
    "a later expiry": lambda token: _with_part(token, 1, "9999999999"),
    "another binding": lambda token: _with_part(token, 2, "A" * 43),
    "another version": lambda token: _with_part(token, 0, "0"),
    "a longer token": lambda token: f"{token}.x",
    "dots": lambda _: "...",
    "a large token": lambda _: "1." * 5_000,
}
_CHANGES: tuple[tuple[str, Any], ...] = (
    ("jobId", "job_" + "0" * 32),
    ("jobId", ["x"]),
    ("stepId", "step_2"),
    ("attempt_no", 2),
    ("attempt_no", -1),
    ("lease_id", "0" * 32),
    ("lease_id", None),
    ("tenant_id", ATTACKER),
)


def callbacks() -> Iterator[Attempt]:
    """Answers of a service that is not the one that was asked."""
    for kind in ("ACK", "RESULT", "HEARTBEAT"):
        for name, token in _TOKENS.items():
            yield _said(f"{kind} with {name}", kind, {}, token)
        for member, value in _CHANGES:
            yield _said(f"{kind} with {member}={value!r}", kind, {member: value})
    yield _said("an ACK that is a RESULT", "ACK", {"type": "RESULT"})
    yield _said("a RESULT of 100 KB", "RESULT", {"note": "x" * 100_000})
    for path in ("/v1/internal/steps/attempt", "/v1/internal/publish"):
        for caller in (None, "beta", "alpha"):
            yield asked(f"{caller} at {path}", "POST", path, caller, json={})


def _said(
    name: str, kind: str, members: dict[str, Any], token: Callable[[str], str] = str
) -> Attempt:
    """A reply about the victim's step, but for these members."""

    def run(target: Target) -> str | None:
        directive = target.directive
        body = {
            "type": kind,
            "jobId": directive.job_id,
            "stepId": directive.step_id,
            "tenant_id": directive.tenant_id,
            "attempt_no": directive.attempt_no,
            "lease_id": directive.lease_id,
            "timestamp": "2026-11-16T09:00:00Z",
            "status": "ACKED" if kind == "ACK" else "SUCCEEDED",
            **members,
        }
        bearer = token(directive.callback_token or "")
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        path = f"/v1/callbacks/{kind.lower()}"
        return got_through(target, target.ask("POST", path, None, headers=headers, json=body))

    return Attempt(name, run)


def _with_part(token: str, number: int, value: str) -> str:
    parts = token.split(".")
    parts[number] = value
    return ".".join(parts)


def queries() -> Iterator[Attempt]:
    def cursor(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    deep = base64.urlsafe_b64encode(_nested(1_530).encode()).decode()
    cursors = {
        "no base64": "***",
        "no json": base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        "another shape": cursor({"a": 1}),
        "a number": cursor(1),
        "a list of lists": cursor([[[]]]),
        "the victim": cursor([VICTIM, "2026-01-01T00:00:00Z", "job_1"]),
        "a statement": cursor(["'; DROP TABLE lucius_ledger_jobs; --"]),
        "1,530 deep": deep[:2048],
        "too long": "A" * 5_000,
    }
    own = {"tenant_id": ATTACKER}
    for path in ("/v1/jobs", "/v1/dead-letters", "/v1/artifacts"):
        for name, value in cursors.items():
            yield asked(
                f"{path} from a cursor: {name}", "GET", path, params={**own, "cursor": value}
            )
        for limit in ("0", "-1", "1e9", "99999999999999999999", "x", "1;2"):
            yield asked(f"{path} limit={limit}", "GET", path, params={**own, "limit": limit})
        yield asked(f"{path} unknown", "GET", path, params={**own, "admin": "true"})
        yield asked(f"{path} another case", "GET", path, params={"Tenant_Id": ATTACKER})
    for name, value in {"state": "ANY", "since": "yesterday", "request_type": "\x00"}.items():
        yield asked(f"jobs with {name}={value!r}", "GET", "/v1/jobs", params={**own, name: value})
    for verb in ("frob", "delete", "adopt%20", "cancel:cancel", "CANCEL"):
        yield asked(f"the verb {verb}", "POST", f"/v1/jobs/{{job}}:{verb}", "alpha")
    for method in ("PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"):
        yield asked(f"{method} a job", method, "/v1/jobs/{job}", "alpha")
    override = {"X-HTTP-Method-Override": "DELETE"}
    yield asked("a method that is another", "POST", "/v1/jobs/{job}", "alpha", headers=override)
