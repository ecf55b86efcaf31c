"""Nothing that is printed shows a credential that stands in an address or a connection string."""

import io
import logging

import pytest

from lucius_logs.formatting import FORMATTERS
from lucius_logs.logs import LogHandler
from lucius_outbox.redaction import redacted
from tests.cli.conftest import server, shell
from tests.cli.double import Answer, Double
from tests.cli.shell import Shell

__all__ = ["server", "shell"]

WORD = "hunter2"
TEXTS = [
    f"postgresql://lucius:{WORD}@db:5432/lucius",
    f"postgresql://lucius:{WORD}@x@db:5432/lucius",
    f"postgresql://lucius:a/{WORD}@db/lucius",
    f"postgresql://lucius:a?{WORD}@db/lucius",
    f"postgresql://lucius:a#{WORD}@db/lucius",
    f"postgresql://{WORD}@db/lucius",
    f"postgresql:///lucius?host=/run&password={WORD}",
    f"postgresql:///lucius?sslkey={WORD}",
    f"host=db user=lucius password={WORD} dbname=lucius",
    f"host=db user=lucius password = '{WORD}'",
    f"host=db password='a\\'{WORD}' user=lucius",
    f"host=db password=a\\ {WORD} user=lucius",
    f"host=db password=a,{WORD} user=lucius",
    f"sslpassword={WORD} host=db",
    f"redis://:{WORD}@cache:6379/0",
    f"rediss://default:{WORD}@cache:6379/0?db=1",
    f"https://policy.example/judge?code={WORD}",
    f"https://policy.example/judge?a=1&code={WORD}#top",
    f"https://policy.example/judge?x={WORD}",
    f"https://store.example/c/b?sv=2024&sig={WORD}%3D&se=2026",
    f"amqps://root:{WORD}@bus.example:5671/",
    f"Endpoint=sb://bus/;SharedAccessKeyName=root;SharedAccessKey={WORD}=",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={WORD}==;EndpointSuffix=x",
    f"BlobEndpoint=https://a.example/;SharedAccessSignature=sv=1&sig={WORD}",
    f"x-functions-key: {WORD}",
    f'{{"password": "{WORD}',
    f"Ocp-Apim-Subscription-Key: {WORD}",
    f"https://[::1]:8080/x?key={WORD}",
    f'{{"url": "https://u:{WORD}@h/x?code={WORD}", "a": 1}}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_credential_within_a_text_is_seen(text: str) -> None:
    for spoken in (text, f"cannot connect to {text}: refused", f"<{text}>"):
        assert WORD not in redacted(spoken)
        for format in ("json", "text"):
            stream = io.StringIO()
            record = logging.makeLogRecord({"name": "n", "msg": spoken, "detail": spoken})
            LogHandler(stream, FORMATTERS[format]()).handle(record)
            assert WORD not in stream.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "https://host:8080/v1/jobs/a@b",
        "see https://lucius.example/docs#refs, or mail to ops@lucius.example",
        "postgresql://db.example:5432/lucius",
        "sb://127.0.0.1:5672",
        "az://container/a/b.pdf",
    ],
)
def test_addresses_without_credentials_stay_readable(text: str) -> None:
    assert redacted(text) == text


SET = {
    "LUCIUS_URL": f"http://lucius:{WORD}@127.0.0.1:1/x?code={WORD}",
    "LUCIUS_STORAGE_BACKEND": "postgres",
    "LUCIUS_DATABASE_URL": f"postgresql://lucius:{WORD}@127.0.0.1:1/lucius",
    "LUCIUS_ARTIFACTS_POLICY_URL": f"https://policy.example/judge?code={WORD}",
    "LUCIUS_JWKS_URL": f"https://login.example/keys?code={WORD}",
    "LUCIUS_JWT_ISSUER": f"https://login.example/?code={WORD}",
    "LUCIUS_JWT_AUDIENCE": "lucius",
    "LUCIUS_AUTH": "on",
}


@pytest.mark.parametrize(
    "command", [("config",), ("config", "--json"), ("doctor",), ("doctor", "--json")]
)
def test_no_command_shows_a_credential_in_a_setting(shell: Shell, command: tuple[str, ...]) -> None:
    shell.export(**SET)
    run = shell(*command)
    assert "LUCIUS_DATABASE_URL" in run.out or command[0] == "doctor"
    assert WORD not in run.out + run.err
    assert "policy.example" in run.out or command[0] == "doctor"


@pytest.mark.parametrize(
    "url",
    [
        f"http://lucius:{WORD}@127.0.0.1:1",
        f"http://127.0.0.1:1/?code={WORD}",
        f"ftp://lucius:{WORD}@host",
        f"http://lucius:{WORD}",
        f"http://lucius:{WORD}@[",
    ],
)
@pytest.mark.parametrize("command", [("jobs", "list"), ("artifacts", "list"), ("doctor",)])
def test_no_failure_shows_a_credential_in_the_address_of_the_server(
    shell: Shell, url: str, command: tuple[str, ...]
) -> None:
    shell.export(LUCIUS_URL=url)
    run = shell(*command)
    assert run.code != 0
    assert WORD not in run.out + run.err


def test_what_answers_and_is_not_lucius_is_named_without_its_credential(
    shell: Shell, server: Double
) -> None:
    server.answers("GET", "/v1/jobs", Answer(200, b"hello"))
    shell.export(LUCIUS_URL=server.url.replace("http://", f"http://u:{WORD}@"))
    run = shell("jobs", "list")
    assert run.code == 3
    assert "is not LUCIUS" in run.err
    assert WORD not in run.err
