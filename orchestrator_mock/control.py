"""The mock's verbs over HTTP, for tests in other languages; web pages are refused.

POST   /directives                 send one; the body is `stage.Sending`
POST   /jobs/{jobId}:duplicate     the same directive again (also :attempt :expire :cancel
                                   :hold :release)
GET    /jobs/{jobId}               what the ledger has, and what was read
GET    /recording?job=&what=&since=&wait=
GET    /backlog                    how many jobs are sent, locked, acknowledged, finished
GET    /faults  POST /faults  DELETE /faults[?name=]
POST   /script                     a list of steps; 200 when it was played, 409 when it failed
POST   /misbehave                  {seed, jobs, sending}
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

import pydantic
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from lucius_contract.canonical import pointer_to
from lucius_contract.errors import ERRORS, ContractError
from orchestrator_mock.faults import FAULTS, Fault
from orchestrator_mock.misbehaving import misbehave
from orchestrator_mock.mock import Issued
from orchestrator_mock.recording import Entry, What
from orchestrator_mock.script import FaultSpec, Player, ScriptError, ScriptFailed, read_script
from orchestrator_mock.stage import Sending, Stage
from servicebus_emulator.administration import is_of_web_page

_LONGEST_WAIT = 60.0


class Misbehaviour(BaseModel):
    model_config = ConfigDict(extra="forbid")

    seed: int
    jobs: Annotated[int, Field(ge=1, le=10_000)] = 20
    sending: Sending = Sending()


class Control:
    """Serves a stage on a loopback port."""

    def __init__(self, stage: Stage) -> None:
        self.stage = self._stage = stage
        self._mock = stage.mock
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def open(self, port: int = 0) -> None:
        app = web.Application(middlewares=[_explained, _for_programs_alone])
        app.add_routes(
            [
                web.get("/healthz/live", _alive),
                web.post("/directives", self._send),
                web.get("/jobs/{job}", self._job),
                web.post("/jobs/{job}:{verb}", self._act),
                web.get("/recording", self._recording),
                web.get("/backlog", self._backlog),
                web.get("/faults", self._faults),
                web.post("/faults", self._add_fault),
                web.delete("/faults", self._clear_faults),
                web.post("/script", self._script),
                web.post("/misbehave", self._misbehave),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self._runner, self.port = runner, runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _send(self, request: web.Request) -> web.Response:
        sending = Sending.model_validate(await _body(request))
        return web.json_response(_issued(self._stage.send(sending)), status=HTTPStatus.CREATED)

    async def _act(self, request: web.Request) -> web.Response:
        stage, job_id = self._stage, request.match_info["job"]
        verbs: Mapping[str, Callable[[str], Issued | None]] = {
            "duplicate": stage.duplicate,
            "attempt": stage.next_attempt,
            "expire": stage.expire,
            "cancel": stage.cancel,
            "hold": stage.hold,
            "release": stage.release,
        }
        verb = verbs.get(request.match_info["verb"])
        if verb is None:
            raise web.HTTPNotFound(text=f"there is no such verb; there are {', '.join(verbs)}")
        issued = verb(job_id)
        return web.json_response(self._shown(job_id) if issued is None else _issued(issued))

    async def _job(self, request: web.Request) -> web.Response:
        return web.json_response(self._shown(request.match_info["job"]))

    def _shown(self, job_id: str) -> dict[str, Any]:
        played, (job, (step,)) = self._stage.job(job_id), self._mock.job(job_id)
        return {
            "jobId": job_id,
            "state": job.state,
            "step_state": step.state,
            "attempt_no": step.attempt_no,
            "is_settled": self._mock.is_settled(played.issued),
            "reads": {ref.name: ref.reads for ref in played.refs},
            "results": [_entry(e) for e in self._mock.recording.of(job_id, What.RESULT)],
        }

    async def _recording(self, request: web.Request) -> web.Response:
        """Waits up to `wait` seconds for the first entry that is asked for."""
        query = request.query
        since, wait = int(query.get("since", 0)), float(query.get("wait", 0))
        what = What(query["what"]) if "what" in query else None

        def found() -> list[Entry] | None:
            entries = self._mock.recording.since(since)
            meant = [e for e in entries if query.get("job") in (None, e.job_id)]
            return [e for e in meant if what in (None, e.what)] or None

        entries = await self._mock.recording.wait(found, min(wait, _LONGEST_WAIT)) or []
        following = len(self._mock.recording)
        return web.json_response({"entries": [_entry(e) for e in entries], "next": following})

    async def _backlog(self, _request: web.Request) -> web.Response:
        return web.json_response(self._mock.recording.backlog()._asdict())

    async def _faults(self, _request: web.Request) -> web.Response:
        known = [{"name": f.name, "place": f.place, "meaning": f.meaning} for f in FAULTS]
        active = [{"name": n, "count": count} for n, count in self._mock.active_faults.items()]
        return web.json_response({"known": known, "active": active})

    async def _add_fault(self, request: web.Request) -> web.Response:
        spec = FaultSpec.model_validate(await _body(request))
        fault = Fault(spec.name, spec.count, frozenset(spec.types), spec.of, spec.seconds)
        await self._mock.add_fault(fault)
        return web.json_response({"name": spec.name}, status=HTTPStatus.CREATED)

    async def _clear_faults(self, request: web.Request) -> web.Response:
        await self._mock.clear_faults(*request.query.getall("name", []))
        return web.json_response({})

    async def _script(self, request: web.Request) -> web.Response:
        await Player(self._stage).play(read_script(await _body(request)))
        return web.json_response({"played": True})

    async def _misbehave(self, request: web.Request) -> web.Response:
        wanted = Misbehaviour.model_validate(await _body(request))
        found = await misbehave(self._stage, wanted.sending, wanted.seed, wanted.jobs)
        status = HTTPStatus.CONFLICT if found.problems else HTTPStatus.OK
        shown = {"seed": found.seed, "jobs": found.jobs, "problems": found.problems}
        return web.json_response(shown, status=status)


async def _alive(_request: web.Request) -> web.Response:
    return web.json_response({})


async def _body(request: web.Request) -> Any:
    if not request.can_read_body:
        return {}
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="a body is application/json")
    return await request.json()


def _issued(issued: Issued) -> dict[str, Any]:
    return {
        "jobId": issued.job_id,
        "attempt_no": issued.attempt_no,
        "lane": issued.lane,
        "message_id": issued.message_id,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {**entry._asdict(), "body": entry.body and dict(entry.body), "shown": entry.shown()}


@web.middleware
async def _explained(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """What the caller got wrong is said, and never a traceback."""
    try:
        return await handler(request)
    except pydantic.ValidationError as error:
        told = [
            f"{pointer_to(each['loc']) or 'the body'}: {each['msg']}"
            for each in error.errors(include_url=False, include_context=False)
        ]
        return _refused(HTTPStatus.BAD_REQUEST, "; ".join(told))
    except ContractError as error:
        return _refused(ERRORS[error.code].http_status or HTTPStatus.CONFLICT, str(error))
    except ScriptFailed as error:
        return _refused(HTTPStatus.CONFLICT, str(error))
    except (ScriptError, ValueError) as error:
        return _refused(HTTPStatus.BAD_REQUEST, str(error))


@web.middleware
async def _for_programs_alone(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    if is_of_web_page({name.lower(): value for name, value in request.headers.items()}):
        reason = "only programs on this machine are answered, under its own names, not web pages"
        return _refused(HTTPStatus.FORBIDDEN, reason)
    return await handler(request)


def _refused(status: int, detail: str) -> web.Response:
    return web.json_response({"status": int(status), "detail": detail}, status=int(status))
