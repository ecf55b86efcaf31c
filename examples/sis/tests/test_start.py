"""A wrong setting is found before the first job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lucius_sdk.testing import run_step

from sis_service.execute import service
from sis_service.settings import SettingsInvalid, read_settings

FOLDER = Path(__file__).parents[1]
KEY = "sk-harbour-light-4711"
RIGHT = {
    "SIS_LLM_URL": "https://models.example/v1/",
    "SIS_LLM_MODEL": "parrot-1",
    "SIS_LLM_KEY": KEY,
}


def test_without_settings_no_endpoint_is_used() -> None:
    assert read_settings({"PATH": "/bin", "SIS_LLM_URL": " "}) is None


def test_settings_are_read() -> None:
    found = read_settings(RIGHT | {"SIS_LLM_TIMEOUT_SECONDS": "5", "SIS_LLM_TEMPERATURE": "0"})
    assert found
    assert (found.url, found.model) == ("https://models.example/v1", "parrot-1")
    assert found.key
    assert found.key.get_secret_value() == KEY
    assert (found.timeout_seconds, found.temperature) == (5.0, 0.0)


def test_key_timeout_and_temperature_may_be_left_out() -> None:
    found = read_settings({name: RIGHT[name] for name in ("SIS_LLM_URL", "SIS_LLM_MODEL")})
    assert found
    assert found[2:] == (None, 60.0, None)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"SIS_LLM_URL": ""}, "set SIS_LLM_URL too, or unset SIS_LLM_MODEL, SIS_LLM_KEY"),
        ({"SIS_LLM_MODEL": ""}, "set SIS_LLM_MODEL too, or unset SIS_LLM_URL, SIS_LLM_KEY"),
        ({"SIS_LLM_URL": "http://models.example/v1"}, "SIS_LLM_URL must be an https address"),
        ({"SIS_LLM_URL": "ftp://models.example"}, "SIS_LLM_URL must be"),
        ({"SIS_LLM_URL": "https://user:word@models.example"}, "SIS_LLM_URL must be"),
        ({"SIS_LLM_URL": "https://models.example/v1?api-version=1"}, "SIS_LLM_URL must be"),
        ({"SIS_LLM_URL": "https://models.example:port/v1"}, "SIS_LLM_URL must be"),
        ({"SIS_LLM_URL": "https://[models]/v1"}, "SIS_LLM_URL must be"),
        ({"SIS_LLM_KEY": f"{KEY} \u00e9"}, "SIS_LLM_KEY must be printable ASCII"),
        ({"SIS_LLM_TIMEOUT_SECONDS": "0"}, "SIS_LLM_TIMEOUT_SECONDS must be seconds"),
        ({"SIS_LLM_TIMEOUT_SECONDS": "601"}, "SIS_LLM_TIMEOUT_SECONDS must be seconds"),
        ({"SIS_LLM_TIMEOUT_SECONDS": "a while"}, "SIS_LLM_TIMEOUT_SECONDS must be seconds"),
        ({"SIS_LLM_TEMPERATURE": "nan"}, "SIS_LLM_TEMPERATURE must be a number from 0 to 2"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(changed: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        read_settings(RIGHT | changed)
    assert told in str(refused.value)
    assert KEY not in str(refused.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(SettingsInvalid, match=r"SIS_LLM_MODEL too.*URL must.*TIMEOUT_SECONDS must"):
        read_settings({"SIS_LLM_URL": "models", "SIS_LLM_TIMEOUT_SECONDS": "soon"})


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "[::1]:8080"])
def test_on_loopback_plain_http_will_do(host: str) -> None:
    found = read_settings(RIGHT | {"SIS_LLM_URL": f"http://{host}/v1"})
    assert found
    assert found.is_local


def test_a_wrong_setting_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIS_LLM_URL", "models.example")
    with pytest.raises(SettingsInvalid):
        run_step(service, {"prompt_set": []})


def test_a_process_with_a_wrong_setting_ends_with_a_sentence(tmp_path: Path) -> None:
    settings = RIGHT | {
        "SIS_LLM_URL": "http://models.example/v1",
        "LUCIUS_WORKSPACE_ROOT": str(tmp_path),
        "LUCIUS_DEDUP_STORE": f"sqlite://{tmp_path}/dedup.db",
        "LUCIUS_HEALTH_PORT": "0",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "sis_service"],
        cwd=FOLDER,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 3
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("sis cannot start: ")
    assert "SIS_LLM_URL must be an https address" in last
    assert KEY not in ended.stderr + ended.stdout
