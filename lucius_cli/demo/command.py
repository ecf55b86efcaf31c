"""The command: one OCR → EMBEDDING → SIS job on a shipped document, from nothing to its answers."""

import json
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lucius_cli.demo.chaos import Chaos
from lucius_cli.demo.places import Places, find_places, require_packages
from lucius_cli.demo.stack import Stack
from lucius_cli.demo.views import Progress, print_answers, print_files, progress
from lucius_cli.failures import Refused, Unsuitable
from lucius_cli.output import JsonFlag, one_line, print_json, print_line, say
from lucius_cli.serving import engine_switch
from lucius_cli.watching import FROM_THE_BEGINNING, Retry, follow
from lucius_contract.states import JobState

if TYPE_CHECKING:
    from lucius_cli.client import Api

JsonObject = dict[str, Any]

TENANT = "demo"
_SHIPPED = {"scan": "invoice-scan.pdf", "digital": "invoice.pdf"}
_PROMPTS = [
    {"name": "total", "prompt": "What is the total amount due?", "output": "text"},
    {"name": "date", "prompt": "What is the invoice date?", "output": "text"},
    {"name": "customer", "prompt": "Who is the customer?", "output": "text"},
    {
        "name": "record",
        "prompt": "The invoice as a record",
        "output": "json",
        "schema": {
            "type": "object",
            "properties": {
                "total": {"type": "number", "description": "total amount due"},
                "invoice_date": {
                    "type": "string",
                    "format": "date",
                    "description": "date of the invoice",
                },
                "customer": {"type": "string", "description": "name of the customer"},
            },
            "required": ["total", "invoice_date", "customer"],
        },
    },
]


def demo(
    document: Annotated[
        str,
        typer.Option(
            help="scan, digital (the same invoice with a text layer), or a file of yours."
        ),
    ] = "scan",
    chaos: Annotated[
        bool, typer.Option("--chaos", help="Kill a service in the middle of its work.")
    ] = False,
    data: Annotated[
        Path, typer.Option(file_okay=False, help="Where the ledger, files and logs are kept.")
    ] = Path(".lucius/demo"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the API; 0: a free one.")] = 0,
    bus_port: Annotated[int, typer.Option(min=0, max=65535, help="Of the bus; 0: a free one.")] = 0,
    engine: Annotated[
        str | None, typer.Option(help="ledger or temporal: what drives the job.")
    ] = None,
    auth: Annotated[
        bool, typer.Option("--auth", help="With auth on: keys for the API and for the bus.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """See one job through: the control plane, three services, a document and its answers."""
    engine_switch(engine)
    require_packages()
    places = find_places()
    path = _document(document, places)
    with _sigterm_as_ctrl_c():
        say("starting the control plane and the services ocr, embedding and sis ...")
        stack = Stack(
            places,
            data,
            path.parent,
            port=port,
            bus_port=bus_port,
            engine=engine,
            tenant=TENANT if auth else None,
        )
        with stack:
            say(f"running at {stack.url}; logs in {stack.logs}")
            job = _seen_through(stack, path, Chaos(stack) if chaos else None)
            result = _result(stack, job)
    _finish(job, result, path, as_json=as_json, chaos=chaos)


def _document(named: str, places: Places) -> Path:
    path = places.documents / _SHIPPED[named] if named in _SHIPPED else Path(named)
    if not path.is_file():
        raise Unsuitable(f"--document {named}: must be scan, digital or a file; there is no {path}")
    return path.resolve()


def _seen_through(stack: Stack, document: Path, chaos: Chaos | None) -> JsonObject:
    from lucius_cli.client import connected

    with connected(stack.server) as api, progress() as shown:
        job_id = api.submit(_envelope(_uploaded(stack, document)))["jobId"]
        shown.note(f"job {job_id}: OCR → EMBEDDING → SIS of {document.name}")
        for job in _changes(api, job_id, shown):
            shown.show(job)
            if chaos is not None:
                chaos.look(job, shown)
        if chaos is not None:
            chaos.tell(api, job_id, shown)
        return api.job(job_id)


def _uploaded(stack: Stack, document: Path) -> str:
    """The document as a file of the newest version of an artifact."""
    from lucius_cli.artifacts_server import artifacts_of

    with artifacts_of(stack.server) as artifacts:
        uploaded = artifacts.upload(document, TENANT)
        entry = {"path": document.name, "digest": uploaded.digest}
        version = artifacts.publish("documents", [entry], TENANT)
    uri: str = version["entries"][0]["uri"]
    return uri


def _result(stack: Stack, job: JsonObject) -> JsonObject:
    """What the last step has published."""
    from lucius_cli.artifacts_server import artifacts_of

    if job["state"] != JobState.SUCCEEDED:
        error = job["error"] or {"code": job["state"], "message": "the job did not succeed"}
        raise Refused(one_line(f"{error['code']}: {error['message']}"))
    with (
        artifacts_of(stack.server) as artifacts,
        artifacts.open(job["final_output"], TENANT) as stream,
    ):
        found: JsonObject = json.load(stream)
    return found


def _changes(api: "Api", job_id: str, shown: Progress) -> Iterator[JsonObject]:
    """The job as it stands after each of its events."""
    for _ in follow(api, job_id, FROM_THE_BEGINNING, Retry(), shown.note):
        yield api.job(job_id)


def _envelope(document: str) -> JsonObject:
    """The key makes it a new job, however often the demo is run."""
    key = f"demo-{secrets.token_hex(4)}"
    return {
        "tenant_id": TENANT,
        "request_type": "OCR_EMBEDDING_SIS",
        "input_ref": {"uri": document},
        "output_ref": {"uri": "artifact://answers"},
        "payload": {"ocr": {}, "embedding": {}, "sis": {"prompt_set": _PROMPTS}},
        "schema_version": "1",
        "idempotency_key": key,
    }


def _finish(
    job: JsonObject, result: JsonObject, document: Path, *, as_json: bool, chaos: bool
) -> None:
    if as_json:
        print_json({"job": job, "result": result})
        return
    print_line(f"\nAnswers from {document.name}")
    print_answers(result)
    print_line("\nFiles")
    print_files(job)
    say("\nEverything that was started has been stopped. Next:")
    for line in _next(chaos=chaos):
        say(f"  {line}")


def _next(*, chaos: bool) -> Iterator[str]:
    lucius = _typed()
    if not chaos:
        yield f"{lucius} demo --chaos             kill a service in mid-work; nothing is lost"
    yield f"{lucius} demo --document digital  the same invoice with a text layer: no OCR is needed"
    yield f"{lucius} demo --document FILE     a PDF, PNG, JPEG or TIFF of yours"
    yield f"{lucius} new my-service           a service of your own, green from the start"


def _typed() -> str:
    """How this command is called from here."""
    found = shutil.which("lucius")
    return "lucius" if found else os.path.relpath(Path(sys.executable).with_name("lucius"))


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
