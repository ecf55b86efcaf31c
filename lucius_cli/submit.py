"""`lucius submit`: a request from a file, from standard input or from options."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from lucius_cli.output import JsonFlag, print_json, print_line, say
from lucius_cli.progress import exit_code, print_job, watched
from lucius_cli.watching import Retry


def submit(
    file: Annotated[
        typer.FileBinaryRead | None,
        typer.Argument(
            metavar="[FILE|-]", help="A request envelope as JSON; - reads standard input."
        ),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="tenant_id")] = None,
    type_: Annotated[
        str | None, typer.Option("--type", help="request_type, as OCR_EMBEDDING_SIS")
    ] = None,
    input_: Annotated[
        str | None, typer.Option("--input", help="What to read: a URI, or a path on this machine")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Where to publish: a URI, or a path on this machine")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="Parameters per step; {} without a file")
    ] = None,
    mode: Annotated[str | None, typer.Option(help="DEFAULT or BURST")] = None,
    doc: Annotated[str | None, typer.Option(help="doc_id; needed in mode BURST")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key again means the same request.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the job to its end.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Submit a request and print the id of its job.

    Options win over what the file says.
    """
    from lucius_cli.client import connected

    given = {
        "tenant_id": tenant,
        "request_type": type_,
        "input_ref": _ref(input_),
        "output_ref": _ref(output),
        "payload": _payload(payload),
        "mode": mode,
        "doc_id": doc,
        "idempotency_key": idempotency_key,
    }
    envelope = _envelope(file, {name: value for name, value in given.items() if value is not None})
    with connected(os.environ) as api:
        accepted = api.submit(envelope)
        if wait:
            job = watched(api, str(accepted["jobId"]), sys.stderr, Retry())
            print_job(job, as_json=as_json)
            raise typer.Exit(exit_code(job))
    report_accepted(accepted, as_json=as_json)


def report_accepted(accepted: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(accepted)
        return
    job_id, state = accepted["jobId"], accepted.get("state")
    print_line(job_id)
    if accepted.get("duplicate"):
        say(f"the same request was submitted before; its job is {state}")
    else:
        say(f"accepted, {state}; follow it with: lucius jobs watch {job_id}")


def _envelope(file: BinaryIO | None, given: dict[str, Any]) -> dict[str, Any]:
    if file is not None:
        from lucius_contract.documents import read_object

        return {**read_object(file.read()), **given}
    if not given:
        raise typer.BadParameter("give a file, - for standard input, or --tenant, --type and so on")
    return {"payload": {}, "schema_version": "1", **given}


def _ref(place: str | None) -> dict[str, str] | None:
    if place is None:
        return None
    return {"uri": place if "://" in place else Path(os.path.abspath(place)).as_uri()}


def _payload(text: str | None) -> object:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="--payload") from error
