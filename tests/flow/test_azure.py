"""The whole flow on Azure's storage: jobs in tables, documents and outcomes in blobs, what services
have done in a table; the bus is the emulator, in memory. No file is written but logs."""

import json
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from lucius_azure.storage import BLOB_API_VERSION
from lucius_cli.demo.child import Child
from lucius_cli.demo.places import Places
from lucius_cli.demo.stack import Stack
from tests.azurite import Azurite
from tests.flow.flow import SIS, connected, states
from tests.flow.test_request_types import each_step_was_answered_once
from tests.runner.deadlines import time_limit

pytestmark = [pytest.mark.check, time_limit(240)]

DOCUMENT = "invoice-scan.pdf"
_KEYLESS = "SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true;"


@contextmanager
def bus_of_its_own(folder: Path) -> Iterator[str]:
    """The connection string of an emulator that keeps nothing on the disk."""
    command = [sys.executable, "-m", "lucius_cli", "bus", "up", "--port", "0"]
    child = Child("lucius bus up", command, folder, {}, folder / "bus.log")
    child.start()
    try:
        address = child.until_ready(60)["bus"]
        yield f"Endpoint={address};{_KEYLESS}"
        child.send(signal.SIGTERM)
        child.ended(20)
    finally:
        child.kill()


@pytest.fixture(scope="module")
def blobs(azure_storage: Azurite, documents: Path) -> Iterator[BlobServiceClient]:
    client = BlobServiceClient.from_connection_string(
        azure_storage.connection, api_version=BLOB_API_VERSION
    )
    with client:
        for container in ("inbox", "results"):
            client.create_container(container)
        client.get_blob_client("inbox", DOCUMENT).upload_blob((documents / DOCUMENT).read_bytes())
        yield client


@pytest.fixture(scope="module")
def stack(
    azure_storage: Azurite,
    blobs: BlobServiceClient,
    places: Places,
    documents: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    with bus_of_its_own(tmp_path_factory.mktemp("bus")) as connection:
        environ = {
            "LUCIUS_SERVICEBUS_CONNECTION": connection,
            "LUCIUS_STORAGE_BACKEND": "azure_tables",
            "LUCIUS_TABLE_CONNECTION": azure_storage.connection,
            "LUCIUS_BLOB_CONNECTION": azure_storage.connection,
            "LUCIUS_WORKSPACE_ROOT": "az://results/work",
            "LUCIUS_INPUT_ROOTS": "az://inbox",
            "LUCIUS_OUTPUT_ROOTS": "az://results/answers",
            "LUCIUS_DEDUP_STORE": "aztable:dedup",
            "LUCIUS_CALLBACK_KEYS": secrets.token_hex(32),
        }
        folder = tmp_path_factory.mktemp("stack")
        with Stack(places, folder, documents, bus_port=None, environ=environ) as running:
            yield running


async def test_the_flow_needs_nothing_but_azure(stack: Stack, blobs: BlobServiceClient) -> None:
    refs = {
        "input_ref": {"uri": f"az://inbox/{DOCUMENT}"},
        "output_ref": {"uri": "az://results/answers/answers.json"},
    }
    async with connected(stack) as flow:
        payload = {"ocr": {}, "embedding": {}, "sis": SIS}
        job = await flow.submit("OCR→EMBEDDING→SIS", Path("/not/used"), payload, **refs)
        ended = await flow.finished(job)
        assert ended["state"] == "SUCCEEDED", ended
        assert set(states(ended).values()) == {"SUCCEEDED"}
        assert ended["final_output"] == refs["output_ref"]["uri"]
        await each_step_was_answered_once(flow, ended)
    outcome = json.loads(
        blobs.get_blob_client("results", "answers/answers.json").download_blob().readall()
    )
    answers = {each["name"]: each["answer"] for each in outcome["answers"]}
    assert "4,711.20" in answers["total"]
    assert "14 March 2026" in answers["date"]
    assert "Tarnbrook Observatory" in answers["customer"]
    written = {path for path in stack.data.rglob("*") if path.is_file()}
    assert {path.parent for path in written} <= {stack.logs}
