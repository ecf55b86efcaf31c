"""One tenant names what is another's: as an input to read it, as an output to overwrite it.

Two tenants with an API key each, over the API of a whole control plane.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import pytest_asyncio

from lucius_contract.refs import tenant_folder
from lucius_orchestrator.bootstrap.parts import real_world
from lucius_orchestrator.bootstrap.plane import ControlPlane
from lucius_orchestrator.security.callers import Role
from lucius_orchestrator.security.keys import KeyFile
from tests.bootstrap.planes import OCR, client, next_directive, plane, reply

pytestmark = pytest.mark.asyncio(loop_scope="module")

ODD = ("..", "a/b", "Co.", "acme2", "a%2Fb", "ac me", "Acme")
"""Tenants that are neither of the two: some cannot name a folder on every storage."""
DEFAULTS = """
input_places: ["az://inbox/{tenant}/", "file:///srv/in/{tenant}/", "s3://scans/{tenant}/"]
output_places: ["az://outbox/{tenant}/", "file:///srv/out/{tenant}/", "s3://answers/{tenant}/"]
"""
TENANTS = """
acme:
  input_places: ["az://private-of-acme/"]
  output_places: ["az://results-of-acme/"]
careless:
  input_places: ["az://work/", "file:///srv/"]
  output_places: ["az://work/", "file:///srv/"]
"""
"""The places of `careless` are around the workspace."""


class Deployment(NamedTuple):
    http: httpx.AsyncClient
    keys: dict[str, str]

    async def submit(
        self, tenant: str, path: str = "/v1/orchestrate", **members: Any
    ) -> httpx.Response:
        name = tenant_folder(tenant)
        refs = {
            "input_ref": {"uri": f"az://inbox/{name}/a.pdf"},
            "output_ref": {"uri": f"az://outbox/{name}/a.txt"},
        }
        headers = {"Authorization": f"Bearer {self.keys[tenant]}"}
        body = {**OCR, **refs, "tenant_id": tenant, **members}
        return await self.http.post(path, json=body, headers=headers)

    async def refuses(self, tenant: str, member: str, uri: str) -> bool:
        """Whether this ref is refused, beside another one that no place is needed for."""
        refs = {"input_ref": "https://files.example/a", "output_ref": "artifact://answers"}
        named: dict[str, Any] = {name: {"uri": ref} for name, ref in {**refs, member: uri}.items()}
        answer = await self.submit(tenant, **named)
        body = answer.json()
        pointed = [error["pointer"] for error in body.get("errors", ())]
        return (
            answer.status_code in (403, 422)
            and body["code"] in ("REF_FORBIDDEN", "REF_INVALID")
            and pointed == [f"/{member}/uri"]
        )


@asynccontextmanager
async def deployment(
    folder: Path, keys: dict[str, str], tenants: str = TENANTS, **variables: str
) -> AsyncIterator[tuple[Deployment, ControlPlane]]:
    """The files in `folder` stay for another one that is made there."""
    config = folder / "config"
    config.mkdir(exist_ok=True)
    (config / "defaults.yaml").write_text(DEFAULTS if tenants else "")
    (config / "tenants.yaml").write_text(tenants)
    given = {
        "LUCIUS_AUTH": "on",
        "LUCIUS_API_KEYS_FILE": str(folder / "keys.json"),
        "LUCIUS_PROTOCOLS_DIR": str(config),
        **variables,
    }
    async with plane(folder, **given) as made, client(made) as http:
        yield Deployment(http, keys), made


def keys_in(folder: Path) -> dict[str, str]:
    file = KeyFile(folder / "keys.json", real_world().clock)
    roles = frozenset({Role.SUBMIT, Role.READ, Role.OPERATE})
    names = ("acme", "beta", "careless", *ODD)
    return {name: file.create(name, frozenset({name}), roles).secret for name in names}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def blobs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    folder = tmp_path_factory.mktemp("blobs")
    root = {"LUCIUS_WORKSPACE_ROOT": "az://work/jobs"}
    async with deployment(folder, keys_in(folder), **root) as (found, _):
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def files(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    folder = tmp_path_factory.mktemp("files")
    root = {"LUCIUS_WORKSPACE_ROOT": "file:///srv/jobs"}
    async with deployment(folder, keys_in(folder), **root) as (found, _):
        yield found


BOTH = ("input_ref", "output_ref")
OUTSIDE = [
    "az://{box}/acme/a",
    "az://{box}/acme",
    "az://{box}/acme/",
    "az://{box}",
    "az://{box}/",
    "az://{box}/beta",
    "az://{box}/beta2/a",
    "az://{box}/bet/a",
    "az://{box}/BETA/a",
    "az://{box}/beta./a",
    "az://{box}/beta%2e/a",
    "az://{box}/beta%20/a",
    "az://{box}//beta/a",
    "az://{box}/./beta/a",
    "az://{box}/beta/../acme/a",
    "az://{box}/beta/%2e%2e/acme/a",
    "az://{box}/beta/.%2E/acme/a",
    "az://{box}/beta/..%2facme/a",
    "az://{box}/beta%2f..%2facme/a",
    "az://{box}/beta/..%5cacme%5ca",
    "az://{box}/beta\\..\\acme\\a",
    "az://{box}%2fbeta/a",
    "az://{box}/beta%2fa",
    "az://{box}/beta%00/a",
    "az://{box}/beta%",
    "az://{box}/beta/%c0%ae%c0%ae/acme/a",
    "az://{BOX}/beta/a",
    "az://{box}x/beta/a",
    "az://{box}:443/beta/a",
    "az://{box}@acme/beta/a",
    "az://acme@{box}/beta/a",
    "az://{box}.acme/beta/a",
    "az://{box}?/beta/a",
    "az://{box}#/beta/a",
    "az://{box}/beta/a?versionid=1",
    "az://{box}/beta/a#b",
    "az:{box}/beta/a",
    "az:/{box}/beta/a",
    "az:///{box}/beta/a",
    "AZ://{box}/beta/a",
    "Az://{box}/acme/a",
    "s3://{box}/beta/a",
    "s3://{bucket}/acme/a",
    "s3://{bucket}/beta/../acme/a",
    "s3://{bucket}//beta/a",
    "file:///srv/{way}/acme/a",
    "file:/srv/{way}/acme/a",
    "file:////srv/{way}/acme/a",
    "file:///srv/{way}/beta/../acme/a",
    "file:///srv/{way}/beta/%2e%2e/acme/a",
    "file:///srv/{way}/beta%2f..%2facme/a",
    "file:///srv/{way}//acme/a",
    "file:///srv/{way}/",
    "file://localhost/srv/{way}/beta/a",
    "file://acme/srv/{way}/beta/a",
    "file:///etc/passwd",
    "file:///",
    "az://private-of-acme/a",
    "az://results-of-acme/a",
    "az://elsewhere/a",
    "s3://elsewhere/a",
    "https://{box}/../a",
]


@pytest.mark.parametrize("member", BOTH)
@pytest.mark.parametrize("spelling", OUTSIDE)
async def test_no_spelling_leads_out_of_a_place(
    blobs: Deployment, member: str, spelling: str
) -> None:
    box, bucket, way = {
        "input_ref": ("inbox", "scans", "in"),
        "output_ref": ("outbox", "answers", "out"),
    }[member]
    uri = spelling.format(box=box, BOX=box.upper(), bucket=bucket, way=way)
    assert await blobs.refuses("beta", member, uri)


WORKSPACE = [
    "{root}",
    "{root}/",
    "{root}/jobs",
    "{root}/jobs/",
    "{root}/jobs/lucius",
    "{root}/jobs/lucius/",
    "{root}/jobs/lucius/acme",
    "{root}/jobs/lucius/acme/job_1/ocr/1/output.txt",
    "{root}/jobs/lucius/Careless/job_1/a",
    "{root}/jobs/lucius/careless2/job_1/a",
    "{root}/jobs/lucius/%61cme/job_1/a",
    "{root}/jobs/lucius/careless/../acme/a",
    "{root}/jobs/lucius/careless/%2e%2e/acme/a",
    "{root}/jobs/lucius/careless%2f..%2facme/a",
    "{root}/jobs/lucius/careless%5c..%5cacme/a",
    "{root}/jobs//lucius/acme/a",
    "{root}/jobs/./lucius/acme/a",
    "{root}/jobs/LUCIUS/acme/a",
    "{root}/JOBS/lucius/acme/a",
    "{ROOT}/jobs/lucius/acme/a",
    "{root}/jobs/%6cucius/acme/a",
    "{root}/jobs/lucius/%252E%252E/a",
    "{root}/jobs/lucius/a%252Fb/a",
    "{root}/jobs/lucius/Co%252E/a",
]


@pytest.mark.parametrize("member", BOTH)
@pytest.mark.parametrize("uri", WORKSPACE)
async def test_no_place_gives_the_workspace_away(blobs: Deployment, member: str, uri: str) -> None:
    named = uri.format(root="az://work", ROOT="az://WORK")
    assert await blobs.refuses("careless", member, named)


@pytest.mark.parametrize("member", BOTH)
@pytest.mark.parametrize("uri", WORKSPACE)
async def test_no_place_gives_a_workspace_of_files_away(
    files: Deployment, member: str, uri: str
) -> None:
    named = uri.format(root="file:///srv", ROOT="file:///SRV")
    assert await files.refuses("careless", member, named)


async def test_what_is_beside_the_workspace_belongs_to_a_place(
    blobs: Deployment, files: Deployment
) -> None:
    for found, root in ((blobs, "az://work"), (files, "file:///srv")):
        beside = {"uri": f"{root}/jobs/lucius-archive/a"}
        answer = await found.submit("careless", input_ref=beside, output_ref=beside)
        assert answer.status_code == 202, answer.text


async def test_a_tenant_reads_its_own_workspace_and_never_publishes_there(
    blobs: Deployment,
) -> None:
    uri = "az://work/jobs/lucius/beta/job_1/ocr/1/output.txt"
    answer = await blobs.submit("beta", input_ref={"uri": uri})
    assert answer.status_code == 202, answer.text
    assert await blobs.refuses("beta", "output_ref", uri)


@pytest.mark.parametrize("tenant", ODD)
async def test_a_tenant_with_an_odd_name_has_its_own_folder_and_no_other(
    blobs: Deployment, tenant: str
) -> None:
    assert (await blobs.submit(tenant)).status_code == 202
    for other in {"acme", "beta", *ODD} - {tenant}:
        assert await blobs.refuses(tenant, "input_ref", f"az://inbox/{tenant_folder(other)}/a")
        assert await blobs.refuses(tenant, "output_ref", f"az://outbox/{tenant_folder(other)}/a")
        own = f"az://work/jobs/lucius/{tenant_folder(other)}/job_1/a"
        assert await blobs.refuses(tenant, "input_ref", own)


@pytest.mark.parametrize("tenant", ["..", "a/b"])
async def test_a_name_that_is_a_path_leads_nowhere(blobs: Deployment, tenant: str) -> None:
    for member, box in (("input_ref", "inbox"), ("output_ref", "outbox")):
        assert await blobs.refuses(tenant, member, f"az://{box}/{tenant}/a")
        assert await blobs.refuses(tenant, member, f"az://{box}/acme/a")


async def test_an_upper_case_scheme_does_not_pass_by_the_catalogue(blobs: Deployment) -> None:
    """`artifact://` is held for its tenant; a reader may take `ARTIFACT://` for the same."""
    for uri in ("ARTIFACT://invoices/v1/a.pdf", "Artifact://invoices/v1/a.pdf"):
        assert await blobs.refuses("beta", "input_ref", uri)
        assert await blobs.refuses("beta", "output_ref", uri)


@pytest.mark.parametrize("uri", ["https://files.example/a", "HTTPS://files.example/a"])
async def test_nothing_is_published_over_https(blobs: Deployment, uri: str) -> None:
    assert await blobs.refuses("beta", "output_ref", uri)


async def test_refs_of_other_names_are_not_looked_at(blobs: Deployment) -> None:
    """Members that a directive has and a request has not do not reach it."""
    forged = {"uri": "az://work/jobs/lucius/acme/job_1/"}
    answer = await blobs.submit(
        "beta",
        workspace_ref=forged,
        prior_artifacts={"OCR": [{"name": "output.txt", **forged}]},
        final_output=forged["uri"],
        idempotency_key="forged",
    )
    assert answer.status_code == 202
    headers = {"Authorization": f"Bearer {blobs.keys['beta']}"}
    job = await blobs.http.get(f"/v1/jobs/{answer.json()['jobId']}", headers=headers)
    assert "acme" not in job.text


@pytest.mark.parametrize("path", ["/v1/orchestrate", "/v1/commands"])
async def test_both_ways_to_submit_refuse(blobs: Deployment, path: str) -> None:
    answer = await blobs.submit("beta", path, input_ref={"uri": "az://inbox/acme/a"})
    assert (answer.status_code, answer.json()["code"]) == (403, "REF_FORBIDDEN")


async def test_nobody_submits_with_the_places_of_another(blobs: Deployment) -> None:
    answer = await blobs.submit("beta", tenant_id="acme")
    assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")


async def test_without_places_only_artifacts_and_https_and_the_own_folder_are_left(
    tmp_path: Path,
) -> None:
    async with deployment(tmp_path, keys_in(tmp_path), tenants="") as (found, _):
        data = (tmp_path / "data").as_uri()
        for uri in ("az://inbox/beta/a", "s3://b/a", "file:///etc/passwd", f"{data}/ledger.db"):
            assert await found.refuses("beta", "input_ref", uri)
            assert await found.refuses("beta", "output_ref", uri)
        own = f"{data}/workspace/lucius/beta/job_1/a"
        for uri in (own, "https://files.example/a?b=c"):
            published = {"uri": "artifact://answers"}
            answer = await found.submit("beta", input_ref={"uri": uri}, output_ref=published)
            assert answer.status_code == 202, answer.text


async def test_without_auth_the_workspace_is_still_nobodys(tmp_path: Path) -> None:
    given = {"LUCIUS_OUTPUT_ROOTS": str(tmp_path / "out")}
    async with plane(tmp_path, **given) as made, client(made) as http:
        data = (tmp_path / "data").as_uri()

        async def status(**refs: str) -> int:
            members = {member: {"uri": uri} for member, uri in refs.items()}
            return (await http.post("/v1/orchestrate", json=OCR | members)).status_code

        work = f"{data}/workspace/lucius"
        assert await status(input_ref=f"{work}/beta/job_1/a") == 403
        assert await status(input_ref=f"{work}/") == 403
        assert await status(output_ref=f"{work}/acme/job_1/a") == 403
        assert await status(output_ref="file:///etc/cron.d/a") == 403
        assert await status(output_ref=f"{tmp_path.as_uri()}/outside/a") == 403
        assert await status(input_ref=f"{work}/acme/job_1/a") == 202
        assert await status(output_ref=f"{data}/workspace/a") == 202
        assert await status(output_ref=f"{tmp_path.as_uri()}/out/a") == 202


async def test_a_redrive_brings_no_ref_back_that_the_tenant_may_no_longer_name(
    tmp_path: Path,
) -> None:
    keys = keys_in(tmp_path)
    bearer = {"Authorization": f"Bearer {keys['acme']}"}
    async with deployment(tmp_path, keys) as (found, made):
        await found.submit("acme", input_ref={"uri": "az://private-of-acme/a"})
        directive = await next_directive(made)
        assert directive.callback_urls is not None
        token = {"Authorization": f"Bearer {directive.callback_token}"}
        failure = reply(directive, "RESULT", status="FAILED_FINAL", failure_class="NON_RETRYABLE")
        answer = await found.http.post(directive.callback_urls.result, json=failure, headers=token)
        assert answer.status_code == 200, answer.text
    redrive = f"/v1/jobs/{directive.job_id}:redrive"
    others = TENANTS.partition("careless:")[2]
    async with deployment(tmp_path, keys, f"careless:{others}") as (found, _):
        refused = await found.http.post(redrive, headers=bearer)
        assert (refused.status_code, refused.json()["code"]) == (403, "REF_FORBIDDEN")
        assert [error["pointer"] for error in refused.json()["errors"]] == ["/input_ref/uri"]
    async with deployment(tmp_path, keys, LUCIUS_REF_PLACES="inbox,outbox") as (found, _):
        refused = await found.http.post(redrive, headers=bearer)
        assert (refused.status_code, refused.json()["code"]) == (403, "REF_FORBIDDEN")
    async with deployment(tmp_path, keys) as (found, _):
        assert (await found.http.post(redrive, headers=bearer)).status_code == 202
