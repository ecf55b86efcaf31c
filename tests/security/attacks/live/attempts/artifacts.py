"""Artifacts of another tenant, names that lead elsewhere, signed addresses that were changed."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx

from tests.security.attacks.live.attempts.attempt import Attempt, asked, got_through
from tests.security.attacks.live.target import ATTACKER, DIGEST, VICTIM, Target

_VERSIONS = "/v1/artifacts/salaries/versions"
_TOKENS: dict[str, Callable[[Target], str | None]] = {
    "no token": lambda _: None,
    "an empty token": lambda _: "",
    "its callback token": lambda target: target.directive.callback_token,
    "its lease": lambda target: target.directive.lease_id,
    "a token of dots": lambda _: "1.9999999999.A.A",
}
_ENTRIES = [{"path": "a", "digest": DIGEST}]


def foreign_artifacts() -> Iterator[Attempt]:
    content = "artifact://salaries/v1/salaries.txt"
    for tenant in (ATTACKER, VICTIM):
        for uri in (content, f"artifact://blobs/{DIGEST}", f"artifact://{VICTIM}/salaries/v1/x"):
            query = {"tenant": tenant, "uri": uri}
            yield asked(f"{tenant}: {uri}", "GET", "/v1/artifacts/content", params=query)
        query = {"tenant": tenant}
        yield asked(f"read the version for {tenant}", "GET", f"{_VERSIONS}/1", params=query)
        for verb in ("publish", "tombstone", "restore"):
            body = {"tenant_id": tenant, "retention_seconds": 60}
            yield asked(f"{verb} for {tenant}", "POST", f"{_VERSIONS}/1:{verb}", json=body)
        name = f"publish the victim's content for {tenant}"
        yield _published(name, "mine", "beta", tenant_id=tenant)
    yield asked("the victim's upload", "GET", "/v1/artifacts/uploads/{upload}")
    for verb in ("sign", "dedupe", "complete", "abort"):
        path = f"/v1/artifacts/uploads/{{upload}}:{verb}"
        yield asked(f"{verb} the victim's upload", "POST", path, json={"parts": [1], "proof": "0"})


def forged_artifacts() -> Iterator[Attempt]:
    for caller in ("alpha", "alpha-submit"):
        for name, token in _TOKENS.items():
            yield Attempt(f"{caller} is a service with {name}", _as_a_service(caller, token))
    for path in ("../a", "/a", "a/../b", "a\\b", "a\x00b", "", ".", "a" * 2000):
        entries = [{"path": path, "digest": DIGEST}]
        yield _published(f"a file called {path[:20]!r}", "salaries", "alpha", entries=entries)
    for name in ("..", "%2e%2e", "a%2fb", "UPPER", "blobs", "a" * 300):
        yield _published(f"an artifact called {name[:20]}", name, "alpha")


def _published(name: str, artifact: str, caller: str, **members: Any) -> Attempt:
    body = {"tenant_id": VICTIM, "entries": _ENTRIES, **members}
    return asked(name, "POST", f"/v1/artifacts/{artifact}/versions", caller, json=body)


def _as_a_service(
    caller: str, token: Callable[[Target], str | None]
) -> Callable[[Target], str | None]:
    """A producer is the attempt of a step: it proves itself by the token of its directive."""

    def run(target: Target) -> str | None:
        directive = target.directive
        producer: dict[str, str | int] = {
            "jobId": directive.job_id,
            "stepId": directive.step_id,
            "attempt_no": directive.attempt_no,
            "epoch": 1,
        }
        if (given := token(target)) is not None:
            producer["token"] = given
        body = {"tenant_id": VICTIM, "entries": _ENTRIES, "producer": producer}
        answer = target.ask("POST", "/v1/artifacts/answers/versions", caller, json=body)
        return got_through(target, answer)

    return run


def signed_addresses() -> Iterator[Attempt]:
    yield _changed("no signature", lambda url: url.copy_with(query=None))
    yield _changed("another part", lambda url: url.copy_with(path=f"{url.path[:-1]}2"))
    yield _changed("another key", _with_another_key)
    yield _changed("another expiry", lambda url: url.copy_set_param("expires", "9999999999"))
    yield _changed("another signature", lambda url: url.copy_set_param("signature", "A" * 43))


def _with_another_key(url: httpx.URL) -> httpx.URL:
    return url.copy_with(path=url.path.replace("objects/", "objects/x"))


def _changed(name: str, change: Callable[[httpx.URL], httpx.URL]) -> Attempt:
    def run(target: Target) -> str | None:
        url = change(httpx.URL(target.names["part"]))
        return got_through(target, target.http.put(url, content=b"forged"))

    return Attempt(f"a signed address with {name}", run)
