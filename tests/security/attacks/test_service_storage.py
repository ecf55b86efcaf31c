"""One tenant against another's documents, at the storages of a service.

The tenants share a service, its workspace and its roots, and one root holds the workspace too.
Nothing that the control plane checks stands before these attacks: directives come as an attacker
wants them, save for the tenant. The runtime is the real one.
"""

import ast
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lucius_azure.storage import StorageAccount
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Result, ResultStatus
from lucius_sdk import StepContext
from lucius_sdk.testing.directives import make_directive
from lucius_sdk.workspace_io import Storages, open_catalogues, open_storages
from lucius_settings.secret import Secret
from tests.s3 import as_s3_client
from tests.sdk.runtime.rig import CALLBACKS, Payload, Rig
from tests.sdk.workspace_io.stage import (
    STAGES,
    BlobStage,
    LocalStage,
    S3Stage,
    Stage,
    artifact_of,
)

ALPHA, BETA = "alpha", "beta"
SECRET, FORGED = b"the salaries of alpha", b"FORGED BY BETA"
HELD = "lucius/alpha/job_1/ocr/1/output.txt"
REPOSITORY = Path(__file__).parents[3]

Test = TypeVar("Test", bound=Callable[..., Any])
ISOLATED: set[tuple[str, str]] = set()
"""Ways in which a ref reaches storage that a test below attacks: by scheme."""
SCHEMES = {"local": "file", "blob": "az", "s3": "s3"}
ELSEWHERE = {
    ("artifact", "input"): "tests/sdk/workspace_io/test_artifact.py",
    ("artifact", "prior artifact"): "tests/sdk/workspace_io/test_artifact.py",
    ("artifact", "output"): "tests/sdk/workspace_io/test_artifact.py",
    # These name no tenant's storage: what they may reach is a matter of addresses.
    ("http", "input"): "tests/sdk/workspace_io/test_remote.py",
    ("http", "prior artifact"): "tests/sdk/workspace_io/test_remote.py",
    ("https", "input"): "tests/sdk/workspace_io/test_remote.py",
    ("https", "prior artifact"): "tests/sdk/workspace_io/test_remote.py",
}


def attacks(*ways: str) -> Callable[[Test], Test]:
    """The test runs on every storage of the conformance suite."""

    def mark(test: Test) -> Test:
        ISOLATED.update((SCHEMES[stage], way) for stage in STAGES for way in ways)
        return test

    return mark


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    if request.param == "local":
        yield LocalStage(tmp_path)
        return
    opened: BlobStage | S3Stage
    if request.param == "blob":
        opened = BlobStage(request.getfixturevalue("azure_storage").connection)
    else:
        as_s3_client(request.getfixturevalue("monkeypatch"))
        opened = S3Stage(request.getfixturevalue("s3_server").endpoint)
    yield opened
    opened.close()


class Service:
    """Reads all that its directive names, writes a file, and publishes it."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.stage = stage
        self.rig = Rig(folder)
        self.rig.workshop.act = self._act
        self.inbox, self.outbox = stage.folder("inbox"), stage.folder("outbox")
        everywhere = stage.root
        storage = stage.reaching((self.inbox, everywhere), (self.outbox, everywhere))
        self.rig.storages = Storages(storage)
        self.read: list[bytes] = []
        self._count = 0
        stage.put(stage.uri(HELD), SECRET)
        stage.put(f"{self.inbox}/page", b"a page")

    async def asked(self, tenant: str, **members: Any) -> Result:
        """What comes of a directive with these members; all others are as they should be."""
        self._count += 1
        given = {
            "jobId": f"job_{self._count}",
            "tenant_id": tenant,
            "input_ref": {"uri": f"{self.inbox}/page"},
            "output_ref": {"uri": f"{self.outbox}/{tenant}-{self._count}"},
            **CALLBACKS,
            **members,
        }
        now = self.rig.clock.now()
        await self.rig.send(make_directive(now, self.stage.root, **given))
        return (await self.rig.results(self._count))[-1]

    def _act(self, ctx: StepContext[Payload]) -> None:
        self.read.append(ctx.input.read())
        self.read.extend(prior.read() for found in ctx.prior.values() for prior in found)
        ctx.publish(ctx.workspace.write("output.txt", FORGED))


@pytest.fixture
async def service(tmp_path: Path, stage: Stage) -> AsyncIterator[Service]:
    service = Service(tmp_path / "rig", stage)
    await service.rig.start()
    yield service
    await service.rig.close()


def refusal(result: Result) -> str:
    """The code of what failed for good; empty if it did not."""
    if result.status is not ResultStatus.FAILED_FINAL or result.error is None:
        return ""
    return result.error.code


def spellings(root: str) -> list[str]:
    """Of what is alpha's in the workspace."""
    held = HELD.removeprefix("lucius/alpha/")
    return [
        f"{root}/{HELD}",
        f"{root}/LUCIUS/alpha/{held}",
        f"{root}/lucius./alpha/{held}",
        f"{root}/lucius%20/alpha/{held}",
        f"{root}/lucius/./alpha/{held}",
        f"{root}/lucius//alpha/{held}",
        f"{root}/lucius/beta/../alpha/{held}",
        f"{root}/lucius/beta/%2e%2e/alpha/{held}",
        f"{root}/lucius/beta/%252e%252e/alpha/{held}",
        f"{root}/lucius/beta%2f..%2falpha/{held}",
        f"{root}/lucius/beta%5c..%5calpha/{held}",
        f"{root}/other/../lucius/alpha/{held}",
        f"{root}/%6cucius/%61lpha/{held}",
        f"{root}/lucius/alpha%2Fjob_1/{held.removeprefix('job_1/')}",
        f"{root}/{HELD}?a",
        f"{root}/{HELD}#a",
    ]


NOT_READ = {ErrorCode.INPUT_FORBIDDEN, ErrorCode.INPUT_INVALID, ErrorCode.INPUT_NOT_FOUND}
NOT_PUBLISHED = {ErrorCode.OUTPUT_FORBIDDEN, ErrorCode.OUTPUT_UNSUPPORTED}


async def test_each_tenant_has_its_own(service: Service) -> None:
    """Or nothing would be shown by what follows."""
    first = await service.asked(ALPHA)
    assert first.status is ResultStatus.SUCCEEDED, first.error
    written = first.artifacts[0].uri
    again = await service.asked(ALPHA, input_ref={"uri": written})
    assert again.status is ResultStatus.SUCCEEDED, again.error
    assert service.read == [b"a page", FORGED]


@attacks("input")
async def test_another_tenants_workspace_is_no_input(service: Service) -> None:
    for uri in spellings(service.stage.root):
        result = await service.asked(BETA, input_ref={"uri": uri})
        assert refusal(result) in NOT_READ, uri
    assert service.read == []


@attacks("input")
async def test_names_that_a_storage_may_take_for_the_workspace_are_no_inputs(
    service: Service,
) -> None:
    for system in ("lucius", "LUCIUS", "Lucius", "lucius.", "lucius..", "lucius%20", "%6Cucius"):
        uri = service.stage.uri(HELD.replace("lucius", system))
        result = await service.asked(BETA, input_ref={"uri": uri})
        assert refusal(result) == ErrorCode.INPUT_FORBIDDEN, uri


@attacks("prior artifact")
async def test_another_tenants_workspace_is_no_prior_artifact(service: Service) -> None:
    for uri in spellings(service.stage.root):
        prior = {"OCR": [artifact_of(SECRET, uri).to_json()]}
        result = await service.asked(BETA, prior_artifacts=prior)
        assert refusal(result) in NOT_READ, uri
    assert SECRET not in service.read


@attacks("output")
async def test_nothing_is_published_into_the_workspace(service: Service) -> None:
    root = service.stage.root
    own = [f"{root}/lucius/beta/out", f"{root}/lucius/beta/job_1/out"]
    for uri in [*spellings(root), *own, f"{root}/lucius", f"{root}/lucius/", f"{root}/lucius/x"]:
        result = await service.asked(BETA, output_ref={"uri": uri})
        assert refusal(result) in NOT_PUBLISHED, uri
    assert service.stage.visible()[HELD] == SECRET


@attacks("output")
async def test_another_tenants_output_is_never_replaced(service: Service) -> None:
    shared = {"uri": f"{service.outbox}/alpha.json"}
    first = await service.asked(ALPHA, output_ref=shared, jobId="job_5")
    assert first.status is ResultStatus.SUCCEEDED, first.error
    for job in ("job_4", "job_5", "job_6"):
        forged = await service.asked(BETA, output_ref=shared, jobId=job, attempt_no=9)
        assert refusal(forged) == ErrorCode.OUTPUT_CONFLICT, job
    again = await service.asked(ALPHA, output_ref=shared, jobId="job_7")
    assert again.status is ResultStatus.SUCCEEDED, again.error


@attacks("input", "prior artifact", "output")
async def test_nothing_beside_the_roots_is_reached(service: Service) -> None:
    beside = service.stage.folder("beside")
    service.stage.put(f"{beside}/a", SECRET)
    for place in (f"{beside}/a", f"{service.inbox}/../beside/a", f"{service.inbox}%2f../beside/a"):
        for members, codes in (
            ({"input_ref": {"uri": place}}, NOT_READ),
            ({"prior_artifacts": {"OCR": [artifact_of(SECRET, place).to_json()]}}, NOT_READ),
            ({"output_ref": {"uri": place}}, NOT_PUBLISHED),
        ):
            assert refusal(await service.asked(BETA, **members)) in codes, place
    assert SECRET not in service.read


async def test_a_forged_workspace_is_not_written(service: Service) -> None:
    stage = service.stage
    for uri in (stage.uri("lucius/alpha/job_1/"), stage.uri("lucius/"), f"{service.outbox}/"):
        result = await service.asked(BETA, workspace_ref={"uri": uri})
        assert refusal(result) == ErrorCode.OUTPUT_FORBIDDEN, uri


@pytest.mark.parametrize("stage", ["local"], indirect=True)
async def test_symlinks_lead_nobody_out_of_the_roots(service: Service, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/a").write_bytes(SECRET)
    held = tmp_path / "root" / HELD
    ways = {"file": held, "folder": held.parent, "out": tmp_path / "precious"}
    for place in ("inbox", "outbox"):
        for name, target in ways.items():
            (tmp_path / place / name).symlink_to(target)
    for name in ("file", "folder/output.txt", "out/a"):
        reading = await service.asked(BETA, input_ref={"uri": f"{service.inbox}/{name}"})
        assert refusal(reading) == ErrorCode.INPUT_FORBIDDEN, name
    for name in ("folder/output.txt", "out/a", "out/new"):
        writing = await service.asked(BETA, output_ref={"uri": f"{service.outbox}/{name}"})
        assert refusal(writing) == ErrorCode.OUTPUT_FORBIDDEN, name
    assert held.read_bytes() == SECRET
    assert [each.read_bytes() for each in (tmp_path / "precious").iterdir()] == [SECRET]


def test_every_way_in_which_a_ref_reaches_storage_is_attacked(tmp_path: Path) -> None:
    account = StorageAccount(Secret("BlobEndpoint=http://127.0.0.1:9/a;SharedAccessSignature=sv=1"))
    roots = [str(tmp_path), "az://inbox", "s3://inbox"]
    catalogues = open_catalogues("http://127.0.0.1:9", None)
    work = str(tmp_path / "work")
    storages = open_storages(work, roots, account, catalogues, output_roots=roots)
    reach = storages.of_job(BETA, "job_1")
    reading = {(scheme, way) for scheme in reach.schemes for way in ("input", "prior artifact")}
    ways = reading | {(scheme, "output") for scheme in reach.output_schemes}
    assert ways == ISOLATED | ELSEWHERE.keys()
    for module in ELSEWHERE.values():
        assert ast.parse((REPOSITORY / module).read_text(encoding="utf-8")).body
    storages.close()
