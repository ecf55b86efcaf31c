"""A running service whose inputs and outputs are artifacts."""

import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from lucius_artifacts.client import ArtifactsClient
from lucius_contract.messages import Directive, Result, ResultStatus
from lucius_sdk import StepContext
from lucius_sdk.workspace_io import LocalStorage, Storages
from lucius_sdk.workspace_io.artifact.catalogues import ApiCatalogues
from lucius_settings.secret import Secret
from tests.artifacts.client.quick import QUICK, BytesSource
from tests.artifacts.client.server import (
    KEY,
    TENANT,
    Server,
    producer_token,
    running_server,
)
from tests.runner.deadlines import DEADLINE
from tests.sdk.runtime.rig import Payload, Rig
from tests.sdk.runtime.test_rules import LOCK


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with TemporaryDirectory() as folder, running_server(Path(folder)) as server:
        yield server


@pytest.fixture
def artifacts_rig(rig: Rig, server: Server) -> Rig:
    catalogues = ApiCatalogues(server.url, Secret(KEY), patience=QUICK)
    rig.storages = Storages(LocalStorage(rig.folder), (), catalogues)
    return rig


def echo(ctx: StepContext[Payload]) -> None:
    ctx.publish(ctx.workspace.write("output.txt", ctx.input.read().upper()))


def publishing(rig: Rig, name: str, way: str = "http", **members: Any) -> Directive:
    """A directive of a step that publishes to `name`."""
    make = rig.directive if way == "http" else rig.bus_directive
    directive = make(tenant_id=TENANT, output_ref={"uri": f"artifact://{name}"}, **members)
    token = producer_token(directive.job_id, directive.step_id, directive.attempt_no)
    return directive.model_copy(update={"artifact_token": token})


@pytest.mark.parametrize("way", ["http", "bus"])
async def test_the_result_names_the_version_that_was_published(
    artifacts_rig: Rig, server: Server, way: str
) -> None:
    rig = artifacts_rig
    with ArtifactsClient(server.url, KEY) as client:
        uri = client.upload(BytesSource("a", b"text"), TENANT).uri
        rig.workshop.act = echo
        await rig.start()
        directive = publishing(rig, f"echo-{way}", way, input_ref={"uri": uri})
        await rig.send(directive)
        if way == "http":
            (result,) = await rig.results()
        else:
            _, reply = await rig.bus_replies(directive, 2)
            assert isinstance(reply, Result)
            result = reply
        assert result.status is ResultStatus.SUCCEEDED, result.error
        assert result.output_ref is not None
        assert result.output_ref.uri == f"artifact://echo-{way}/v1/output.txt"
        with client.open(result.output_ref.uri, TENANT) as stream:
            assert stream.read() == b"TEXT"


async def test_who_takes_over_after_the_publication_names_the_same_version(
    artifacts_rig: Rig, server: Server
) -> None:
    rig = artifacts_rig
    published, go_on = threading.Semaphore(0), threading.Event()
    uris: list[str] = []

    def act(ctx: StepContext[Payload]) -> None:
        uris.append(ctx.publish(b"the same", "text/plain"))
        published.release()
        if len(uris) == 1:
            go_on.wait(DEADLINE)

    rig.workshop.act = act
    first = await rig.start()
    await rig.send(publishing(rig, "crash"))
    await rig.until(lambda: published.acquire(blocking=False))
    await rig.kill(first)
    go_on.set()
    await rig.start()
    await rig.advance(LOCK + 10)
    (result,) = await rig.results()
    assert result.output_ref is not None
    assert uris == ["artifact://crash/v1/output.txt"] * 2
    assert result.output_ref.uri == uris[0]
    (version,) = server.versions("crash")
    assert version.producer is not None
    assert (version.producer.fence.attempt_no, version.producer.fence.epoch) == (1, 2)
