"""A control plane under attack: `lucius up` with auth on, two tenants, and what the victim has.

`alpha` is the victim. It has a job whose directive a service took, an artifact, and callers of each
role. `beta` is another customer of the same plane: the attacker has all roles there.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from lucius_contract.messages import Directive
from tests.cli.service import next_directive
from tests.cli.test_up import Plane, running
from tests.runner.deadlines import PROCESS_DEADLINE

VICTIM, ATTACKER = "alpha", "beta"
CONTENT = b"salary of ada: 104,200 EUR"
DIGEST = sha256(CONTENT).hexdigest()
ENVELOPE: dict[str, Any] = {
    "tenant_id": VICTIM,
    "request_type": "OCR",
    "input_ref": {"uri": f"az://inbox/{VICTIM}/scan.pdf"},
    "output_ref": {"uri": f"az://outbox/{VICTIM}/scan.json"},
    "payload": {"dpi": 300},
    "schema_version": "1",
}
OWN = {
    **ENVELOPE,
    "tenant_id": ATTACKER,
    "input_ref": {"uri": f"az://inbox/{ATTACKER}/a"},
    "output_ref": {"uri": f"az://outbox/{ATTACKER}/a"},
}
"""A request that the attacker may make."""
_PLACES = """
input_places: ["az://inbox/{tenant}/"]
output_places: ["az://outbox/{tenant}/"]
"""
_ROLES = {
    "alpha": (VICTIM, ("submit", "read", "operate")),
    "alpha-submit": (VICTIM, ("submit",)),
    "alpha-read": (VICTIM, ("read",)),
    "beta": (ATTACKER, ("submit", "read", "operate", "admin")),
    "revoked": (VICTIM, ("submit", "read", "operate", "admin")),
}


@dataclass(slots=True)
class Target:
    """`keys` are the API keys by name; `secrets` is what no answer to the attacker may hold."""

    plane: Plane
    keys: dict[str, str]
    http: httpx.Client
    directive: Directive
    names: dict[str, str] = field(default_factory=dict)
    """What paths of attempts are filled in with."""
    secrets: list[str] = field(default_factory=list)
    untouched: str = ""

    def ask(self, method: str, path: str, caller: str | None, **options: Any) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if caller is not None:
            headers.setdefault("Authorization", f"Bearer {self.keys[caller]}")
        return self.http.request(method, path.format_map(self.names), headers=headers, **options)


@contextmanager
def attacked(folder: Path, **environ: str) -> Iterator[Target]:
    """Start a plane, and give the victim what is to be attacked."""
    config = folder / "config"
    config.mkdir()
    (config / "defaults.yaml").write_text(_PLACES)
    environ |= {"LUCIUS_AUTH": "on", "LUCIUS_PROTOCOLS_DIR": str(config)}
    keys = {
        name: _key(folder, name, tenant, roles, **environ)
        for name, (tenant, roles) in _ROLES.items()
    }
    _command(folder, "keys", "revoke", keys["revoked"].split("_")[-2], **environ)
    with (
        running(folder, "up", "--port", "0", "--data", "data", **environ) as plane,
        httpx.Client(base_url=plane.url, timeout=PROCESS_DEADLINE) as http,
    ):
        bearer = {"Authorization": f"Bearer {keys['alpha']}"}
        submitted = http.post("/v1/orchestrate", json=ENVELOPE, headers=bearer)
        assert submitted.status_code == 202, submitted.text
        directive = next_directive(_bus_connection(folder, plane.bus, environ), VICTIM, "ocr")
        token = directive.callback_token
        assert token is not None
        target = Target(plane, keys, http, directive)
        target.names = {"job": directive.job_id, "step": directive.step_id}
        target.secrets = [token, directive.lease_id, *keys.values(), CONTENT.decode()]
        _publish(target)
        target.untouched = the_victims_things(target)
        yield target


def _bus_connection(folder: Path, bus: str, environ: dict[str, str]) -> str:
    """What a service of this machine is given by its operator."""
    port = bus.rpartition(":")[2]
    return _command(folder, "bus", "connection", "--bus-port", port, **environ).strip()


def _publish(target: Target) -> None:
    """The victim has one artifact with one version."""
    asked = {"tenant_id": VICTIM, "digest": DIGEST, "length": len(CONTENT)}
    upload = target.ask("POST", "/v1/artifacts/uploads", "alpha", json=asked).json()
    target.names["upload"] = upload["upload_id"]
    signed = target.ask("POST", upload["links"]["sign"], "alpha", json={"parts": [1]}).json()
    part = signed["parts"][0]["url"]
    target.names["part"] = part
    assert target.http.put(part, content=CONTENT).status_code == 204
    assert target.ask("POST", upload["links"]["complete"], "alpha").status_code in (200, 202)
    entries = [{"path": "salaries.txt", "digest": DIGEST, "media_type": "text/plain"}]
    version = {"tenant_id": VICTIM, "entries": entries}
    made = target.ask("POST", "/v1/artifacts/salaries/versions", "alpha", json=version)
    assert made.status_code == 201, made.text


def _key(folder: Path, name: str, tenant: str, roles: tuple[str, ...], **environ: str) -> str:
    options = [part for role in roles for part in ("--role", role)]
    created = _command(
        folder, "keys", "create", "--name", name, "--tenant", tenant, *options, **environ
    )
    return created.strip()


def _command(folder: Path, *arguments: str, **environ: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("LUCIUS_")}
    run = subprocess.run(
        [sys.executable, "-m", "lucius_cli", *arguments],
        cwd=folder,
        env={**inherited, "LUCIUS_DATA_DIR": str(folder / "data"), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=PROCESS_DEADLINE,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def the_victims_things(target: Target) -> str:
    """What the victim sees of its own: an attack must not change it."""
    job = target.ask("GET", "/v1/jobs/{job}", "alpha").json()
    jobs = target.ask("GET", "/v1/jobs", "alpha").json()["items"]
    uri = {"tenant": VICTIM, "uri": "artifact://salaries/v1/salaries.txt"}
    versions = target.ask("GET", "/v1/artifacts/salaries/versions", "alpha").json()
    content = target.ask("GET", "/v1/artifacts/content", "alpha", params=uri).status_code
    return json.dumps([job["state"], len(jobs), versions["versions"], content], sort_keys=True)
