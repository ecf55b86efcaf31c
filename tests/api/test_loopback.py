"""What a browser can be made to send does not reach a control plane whose auth is off."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bootstrap.planes import OCR, client, plane


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Host": "evil.example:8080"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "[not an address"},
    ],
)
async def test_a_page_of_another_site_submits_nothing(
    tmp_path: Path, headers: Mapping[str, str]
) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        refused = await http.post("/v1/orchestrate", json=OCR, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
        assert (await http.get("/v1/jobs")).json()["items"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:8080"},
        {"Host": "[::1]:8080"},
        {"Origin": "http://localhost:3000", "Host": "127.0.0.1"},
    ],
)
async def test_this_machine_is_served(tmp_path: Path, headers: Mapping[str, str]) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        accepted = await http.post("/v1/orchestrate", json=OCR, headers=headers)
        assert accepted.status_code == 202


async def test_with_auth_on_a_key_decides_and_not_the_name(tmp_path: Path) -> None:
    async with plane(tmp_path, LUCIUS_AUTH="on") as made, client(made) as http:
        refused = await http.get("/v1/jobs", headers={"Host": "lucius.example"})
        assert refused.status_code == 401
