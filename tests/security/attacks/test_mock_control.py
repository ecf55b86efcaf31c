"""Web pages and the control API of the mock: none of them drives it, under whatever name."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Mock, MockSettings
from orchestrator_mock.control import Control
from orchestrator_mock.stage import Defaults, Stage

PAGE = "https://page.example"
VERBS = [
    ("POST", "/directives"),
    ("POST", "/jobs/job_1:cancel"),
    ("POST", "/faults"),
    ("DELETE", "/faults"),
    ("POST", "/script"),
    ("POST", "/misbehave"),
    ("GET", "/recording"),
    ("GET", "/faults"),
    ("GET", "/jobs/job_1"),
]


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[Control]:
    async with Mock(MockSettings("ocr", tmp_path)) as mock:
        control = Control(Stage(mock, Defaults("ocr", "OCR", ReplyVia.HTTP)))
        await control.open()
        try:
            yield control
        finally:
            await control.close()


async def ask(control: Control, method: str, path: str, **options: object) -> int:
    url = f"http://127.0.0.1:{control.port}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url, **options) as found:  # type: ignore[arg-type]
        await found.read()
        return found.status


@pytest.mark.parametrize(("method", "path"), VERBS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": PAGE},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Host": "page.example"},
        {"Host": "page.example:8080"},
        {"Host": "127.0.0.1.page.example"},
        {"Host": "192.0.2.7"},
    ],
    ids=lambda headers: "-".join(*headers.items()),
)
async def test_a_web_page_is_refused(
    control: Control, method: str, path: str, headers: dict[str, str]
) -> None:
    assert await ask(control, method, path, headers=headers) == 403
    assert len(control.stage.mock.recording) == 0


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
async def test_a_body_as_forms_send_it_is_refused(control: Control, content_type: str) -> None:
    """Those are the types that a page may send to another site without asking it."""
    headers = {"Content-Type": content_type}
    assert await ask(control, "POST", "/faults", headers=headers, data=b"{}") == 415
    assert control.stage.mock.active_faults == {}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_program_is_answered_under_the_names_of_this_machine(
    control: Control, host: str
) -> None:
    headers = {"Host": f"{host}:{control.port}"}
    assert await ask(control, "GET", "/faults", headers=headers) == 200
    fault = {"name": "callback-500", "count": 1}
    assert await ask(control, "POST", "/faults", headers=headers, json=fault) == 201
