"""One attempt of an attacker.

An attempt is held when the plane refuses it with a status of 4xx (or hangs up), and tells nothing
of the victim's. A 5xx counts as got through: it is a defect that an attacker can press on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.security.attacks.live.target import Target


@dataclass(frozen=True, slots=True)
class Attempt:
    """`run` returns what got through, or None if the plane held."""

    name: str
    run: Callable[[Target], str | None]


def asked(
    name: str, method: str, path: str, caller: str | None = "beta", **options: Any
) -> Attempt:
    def run(target: Target) -> str | None:
        return got_through(target, target.ask(method, path, caller, **options))

    return Attempt(name, run)


def got_through(target: Target, answer: httpx.Response) -> str | None:
    if not 400 <= answer.status_code < 500:
        return f"{answer.status_code} {answer.text[:300]}"
    told = answer.text + str(answer.headers)
    leaked = [secret[:8] for secret in target.secrets if secret in told]
    if leaked or "Traceback" in told:
        return f"the refusal tells a secret or a stack: {told[:300]}"
    return None
