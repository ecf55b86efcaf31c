"""Forged credentials, other tenants, roles that are not enough."""

import base64
import json
from collections.abc import Callable, Iterator

from tests.security.attacks.live.attempts.attempt import Attempt, asked, got_through
from tests.security.attacks.live.target import ATTACKER, DIGEST, ENVELOPE, VICTIM, Target

_ROUTES = (
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{job}"),
    ("GET", "/v1/jobs/{job}/stream"),
    ("POST", "/v1/jobs/{job}:cancel"),
    ("POST", "/v1/orchestrate"),
    ("GET", "/v1/dead-letters"),
    ("GET", "/v1/protocols"),
    ("GET", "/v1/services"),
    ("GET", "/metrics"),
    ("GET", "/v1/artifacts"),
    ("POST", "/v1/artifacts/runs"),
)


def credentials() -> Iterator[Attempt]:
    def jwt(header: dict[str, str]) -> str:
        claims = {"sub": "root", "roles": ["admin"], "tenants": ["*"], "exp": 4102444800}
        parts = [json.dumps(part).encode() for part in (header, claims)]
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)

    forged: dict[str, Callable[[Target], str]] = {
        "an empty bearer": lambda _: "Bearer",
        "no scheme": lambda t: t.keys["alpha"],
        "basic": lambda t: "Basic " + base64.b64encode(f"a:{t.keys['alpha']}".encode()).decode(),
        "half a key": lambda t: f"Bearer {t.keys['alpha'][: len(t.keys['alpha']) // 2]}",
        "all but the last character": lambda t: f"Bearer {t.keys['alpha'][:-1]}",
        "a longer key": lambda t: f"Bearer {t.keys['alpha']}x",
        "another case": lambda t: f"Bearer {t.keys['alpha'].swapcase()}",
        "a list of keys": lambda t: f"Bearer x, Bearer {t.keys['alpha']}",
        "a revoked key": lambda t: f"Bearer {t.keys['revoked']}",
        "a callback token": lambda t: f"Bearer {t.directive.callback_token}",
        "an unsigned jwt": lambda _: f"Bearer {jwt({'alg': 'none'})}.",
        "a jwt that names a file": lambda _: (
            f"Bearer {jwt({'alg': 'HS256', 'kid': '/dev/null'})}.x"
        ),
        "a lease": lambda t: f"Bearer {t.directive.lease_id}",
    }

    def using(name: str, method: str, path: str) -> Callable[[Target], str | None]:
        def run(target: Target) -> str | None:
            headers = {"Authorization": forged[name](target)}
            answer = target.ask(method, path, None, headers=headers)
            if answer.status_code not in (401, 403):
                return f"{answer.status_code} {answer.text[:300]}"
            return got_through(target, answer)

        return run

    for method, path in _ROUTES:
        yield asked(f"nobody: {method} {path}", method, path, None)
        yield asked(f"a key in the query: {method} {path}", method, f"{path}?api_key=x", None)
        for name in forged:
            yield Attempt(f"{name}: {method} {path}", using(name, method, path))


# Another tenant

_NAMES = (
    VICTIM,
    VICTIM.upper(),
    f" {VICTIM}",
    f"{VICTIM} ",
    f"{VICTIM}\u200b",
    f"{ATTACKER}/../{VICTIM}",
    f"{ATTACKER},{VICTIM}",
    f"{ATTACKER}' OR '1'='1",
    f"{ATTACKER}%00{VICTIM}",
    "*",
    "",
    "%",
    "_",
    "null",
)


def tenants() -> Iterator[Attempt]:
    for suffix in ("", "/steps", "/events", "/stream"):
        yield asked(f"read the victim's job{suffix}", "GET", f"/v1/jobs/{{job}}{suffix}")
    for verb in ("cancel", "pause", "resume", "redrive"):
        yield asked(f"{verb} the victim's job", "POST", f"/v1/jobs/{{job}}:{verb}")
    for spelled in ("{job}%00", "{job}%2e", "%2e%2e/jobs/{job}", "{job};a=b", "{job}%20", "x{job}"):
        yield asked(f"the victim's job as {spelled}", "GET", f"/v1/jobs/{spelled}")
    lists = ("/v1/jobs", "/v1/dead-letters", "/v1/artifacts", "/v1/artifacts/salaries/versions")
    for path in lists:
        for parameter in ("tenant_id", "tenant"):
            for name in _NAMES[:9]:
                query = {parameter: name}
                label = f"{path} with {parameter}={name!r}"
                yield asked(label, "GET", path, params=query)
        both = [("tenant_id", ATTACKER), ("tenant_id", VICTIM)]
        yield asked(f"{path} with two tenants", "GET", path, params=both)
        mixed = {"tenant_id": ATTACKER, "tenant": VICTIM}
        yield asked(f"{path} with two spellings", "GET", path, params=mixed)
    for name in _NAMES:
        body = {**ENVELOPE, "tenant_id": name}
        yield asked(f"submit for {name!r}", "POST", "/v1/orchestrate", json=body)
    for header in ("X-Tenant-Id", "X-Lucius-Tenant", "X-Forwarded-User", "X-Original-User"):
        yield asked(f"say {header}", "GET", "/v1/jobs/{job}", headers={header: VICTIM})


def roles() -> Iterator[Attempt]:
    for verb in ("cancel", "pause", "resume", "redrive"):
        for caller in ("alpha-submit", "alpha-read"):
            if (caller, verb) != ("alpha-submit", "redrive"):  # it may, of its own tenant
                path = f"/v1/jobs/{{job}}:{verb}"
                yield asked(f"{caller} tries to {verb}", "POST", path, caller)
    for path in ("/v1/jobs", "/v1/dead-letters", "/v1/artifacts"):
        yield asked(f"alpha-submit lists {path}", "GET", path, "alpha-submit")
    yield asked("alpha-read submits", "POST", "/v1/orchestrate", "alpha-read", json=ENVELOPE)
    upload = {"tenant_id": VICTIM, "digest": DIGEST, "length": 1}
    yield asked("alpha-read uploads", "POST", "/v1/artifacts/uploads", "alpha-read", json=upload)
    for caller in ("alpha", "alpha-read", "alpha-submit", "beta"):
        yield asked(f"{caller} collects garbage", "POST", "/v1/artifacts/runs", caller)
        yield asked(f"{caller} reads metrics", "GET", "/metrics", caller)
        yield asked(f"{caller} reads services", "GET", "/v1/services", caller)
    version = "/v1/artifacts/salaries/versions/1"
    body = {"tenant_id": VICTIM, "retention_seconds": 60}
    for caller in ("alpha-submit", "alpha-read"):
        for verb in ("tombstone", "restore"):
            yield asked(f"{caller} tries to {verb}", "POST", f"{version}:{verb}", caller, json=body)
