"""`lucius artifacts` beside the real API."""

import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.artifacts.client.server import KEY, TENANT, Server, running_server
from tests.cli.shell import Run, Shell

OF_TENANT = ("--tenant", TENANT)


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    with TemporaryDirectory() as folder, running_server(Path(folder)) as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Server:
    one_server.forget()
    return one_server


@pytest.fixture
def client(shell: Shell, server: Server, tmp_path: Path) -> Shell:
    shell.export(LUCIUS_URL=server.url, LUCIUS_API_KEY=KEY, XDG_STATE_HOME=str(tmp_path / "state"))
    return shell


def blob(content: bytes) -> str:
    return f"artifact://blobs/{sha256(content).hexdigest()}"


def ran(run: Run, code: int = 0) -> Run:
    assert run.code == code, run.err
    return run


def test_files_are_put_and_their_uris_printed(client: Shell, tmp_path: Path) -> None:
    Path("a.txt").write_bytes(b"one")
    Path("b.txt").write_bytes(b"two")
    run = ran(client("artifacts", "put", "a.txt", "b.txt", *OF_TENANT))
    assert run.out == f"{blob(b'one')}\n{blob(b'two')}\n"
    assert run.err == ""
    assert list((tmp_path / "state" / "lucius" / "uploads").iterdir()) == []


def test_put_as_json_says_what_each_file_became(client: Shell) -> None:
    Path("a.txt").write_bytes(b"one")
    (item,) = ran(client("artifacts", "put", "a.txt", *OF_TENANT, "--json")).json["items"]
    uri = blob(b"one")
    assert item == {"file": "a.txt", "uri": uri, "digest": uri[-64:], "length": 3}


def test_put_with_a_name_publishes_a_version_of_all_files(client: Shell, server: Server) -> None:
    Path("a.txt").write_bytes(b"one")
    Path("b.pdf").write_bytes(b"two")
    put = ("artifacts", "put", "a.txt", "b.pdf", "--name", "both", *OF_TENANT)
    assert ran(client(*put)).out == "artifact://both/v1/a.txt\nartifact://both/v1/b.pdf\n"
    assert ran(client(*put, "--json")).json["version"] == 1
    (version,) = server.versions("both")
    assert [each.media_type for each in version.entries] == ["text/plain", "application/pdf"]


def test_put_gives_the_one_file_the_path_that_it_is_told(client: Shell) -> None:
    Path("a.txt").write_bytes(b"one")
    put = ("artifacts", "put", "a.txt", *OF_TENANT)
    run = ran(client(*put, "--name", "pathed", "--path", "in/here.txt"))
    assert run.out == "artifact://pathed/v1/in/here.txt\n"
    for wrong in (("--path", "x"), ("a.txt", "--name", "pathed", "--path", "x")):
        assert "--path" in ran(client(*put, *wrong), 2).err
    assert "not a relative path" in ran(client(*put, "--name", "x", "--path", "../x"), 2).err
    assert "not the name" in ran(client(*put, "--name", "No Name"), 2).err


def test_what_was_put_is_got_into_a_file_a_folder_or_its_own_name(client: Shell) -> None:
    Path("a.txt").write_bytes(b"one")
    ran(client("artifacts", "put", "a.txt", "--name", "got", *OF_TENANT))
    uri = "artifact://got/v1/a.txt"
    assert ran(client("artifacts", "get", uri, "-o", "b.txt")).out == "b.txt\n"
    os.mkdir("folder")
    assert ran(client("artifacts", "get", uri, "-o", "folder")).out == "folder/a.txt\n"
    assert "no folder absent" in ran(client("artifacts", "get", uri, "-o", "absent/a"), 2).err
    assert "a.txt is there already" in ran(client("artifacts", "get", uri), 2).err
    os.unlink("a.txt")
    found = ran(client("artifacts", "get", uri, "--json")).json
    assert found == {"uri": uri, "file": "a.txt", "digest": blob(b"one")[-64:], "length": 3}
    for path in ("a.txt", "b.txt", "folder/a.txt"):
        assert Path(path).read_bytes() == b"one"


def test_what_was_put_is_got_to_standard_output(client: Shell, server: Server) -> None:
    Path("a.txt").write_bytes(b"one\n")
    ran(client("artifacts", "put", "a.txt", *OF_TENANT))
    assert ran(client("artifacts", "get", blob(b"one\n"), "-o", "-")).out == "one\n"
    assert ran(client("artifacts", "get", blob(b"one\n"), "-o", "-", "--json"), 2).out == ""
    server.gate.trouble("GET", "/objects/", damage_at=0)
    assert "another SHA-256" in ran(client("artifacts", "get", blob(b"one\n"), "-o", "-"), 1).err


def test_artifacts_and_versions_are_listed(client: Shell) -> None:
    Path("a.txt").write_bytes(b"x" * 2048)
    ran(client("artifacts", "put", "a.txt", "--name", "listed", *OF_TENANT))
    lines = ran(client("artifacts", "list", "--all")).out.splitlines()
    assert lines[0].split() == ["NAME", "PUBLISHED", "LATEST", "CHANGED"]
    (row,) = [line.split() for line in lines if line.startswith("listed ")]
    assert row[1:3] == ["v1", "v1"]
    header, row = map(str.split, ran(client("artifacts", "list", "listed")).out.splitlines())
    assert header == ["VERSION", "STATE", "SIZE", "SINCE", "URI"]
    assert row[:4] == ["listed/v1", "published", "2.0", "KiB"]
    assert row[-1] == "artifact://listed/v1/a.txt"
    assert "there is no artifact nobodys" in ran(client("artifacts", "list", "nobodys"), 1).err


def test_a_limit_is_kept_over_pages_and_more_is_announced(client: Shell) -> None:
    for number in (1, 2, 3):
        Path("a.txt").write_text(str(number))
        ran(client("artifacts", "put", "a.txt", "--name", "many", *OF_TENANT))
    run = ran(client("artifacts", "list", "many", "--limit", "2"))
    assert len(run.out.splitlines()) == 3
    assert "there are more" in run.err
    first = ran(client("artifacts", "list", "many", "--limit", "1", "--json")).json
    rest = ("--cursor", first["next_cursor"], "--json", "--all")
    assert [each["version"] for each in first["items"]] == [3]
    items = ran(client("artifacts", "list", "many", *rest)).json["items"]
    assert [each["version"] for each in items] == [2, 1]


def test_files_and_known_content_are_published_together(client: Shell) -> None:
    Path("a.txt").write_bytes(b"one")
    Path("k=v.txt").write_bytes(b"two")
    ran(client("artifacts", "put", "a.txt", "--name", "parts", *OF_TENANT))
    publish = ("artifacts", "publish", "whole", *OF_TENANT)
    run = ran(
        client(*publish, "k=v.txt", "in/a.txt=artifact://parts/v1/a.txt", "b=" + blob(b"one"))
    )
    assert run.out.splitlines() == [
        "artifact://whole/v1/b",
        "artifact://whole/v1/in/a.txt",
        "artifact://whole/v1/k=v.txt",
    ]
    assert "is no file, nor PATH=artifact" in ran(client(*publish, "absent.txt"), 2).err


def test_a_version_in_quarantine_is_said_to_be(client: Shell, server: Server) -> None:
    server.policy.reason = "looks odd"
    Path("a.txt").write_bytes(b"one")
    put = ("artifacts", "put", "a.txt", "--name", "odd", *OF_TENANT)
    run = ran(client(*put), 1)
    assert (run.out, run.err.partition(";")[0]) == ("", "odd/v1 is in quarantine: looks odd")
    assert ran(client(*put, "--json"), 1).json["state"] == "draft"
    server.policy.reason = None
    assert ran(client(*put)).out == "artifact://odd/v1/a.txt\n"


def test_a_version_is_deleted_and_restored(client: Shell, server: Server) -> None:
    Path("a.txt").write_bytes(b"one")
    ran(client("artifacts", "put", "a.txt", "--name", "gone", *OF_TENANT))
    delete = ("artifacts", "delete", "artifact://gone/v1/a.txt", *OF_TENANT)
    run = ran(client(*delete, "--retention", "12h", "--reason", "wrong file"))
    assert run.out == "gone/v1 tombstoned\n"
    assert f"lucius artifacts restore gone/v1 --tenant {TENANT}" in run.err
    (version,) = server.versions("gone")
    assert version.retained_until is not None
    assert (version.retained_until - server.clock()).total_seconds() == 12 * 3600
    assert version.reason == "wrong file"
    assert "ARTIFACT_GONE" in ran(client("artifacts", "get", "artifact://gone/v1/a.txt"), 1).err
    restore = ("artifacts", "restore", "gone/v1", *OF_TENANT)
    assert ran(client(*restore)).out == "gone/v1 published\n"
    assert "STATE_CONFLICT" in ran(client(*restore), 1).err
    assert ran(client(*delete, "--json")).json["state"] == "tombstoned"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("delete", "gone"), "is no version"),
        (("delete", "gone/v0"), "is no version"),
        (("delete", blob(b"")), "is no version"),
        (("delete", "gone/v1", "--retention", "long"), "is no span of time"),
        (("restore", "artifact://gone"), "is no version"),
    ],
)
def test_what_is_no_version_is_told(client: Shell, words: tuple[str, ...], told: str) -> None:
    assert told in ran(client("artifacts", *words, *OF_TENANT), 2).err


@pytest.mark.parametrize("uri", ["a.txt", "artifact://a", "artifact://a/v1", "artifact://blobs/x"])
def test_what_is_no_uri_of_content_is_told(client: Shell, uri: str) -> None:
    ran(client("artifacts", "get", uri), 2)


def test_a_collection_says_what_it_did_and_what_it_would_do(client: Shell) -> None:
    client.export(LUCIUS_API_KEY="root")
    Path("a.txt").write_bytes(b"for the collector")
    ran(client("artifacts", "put", "a.txt", "--name", "kept", *OF_TENANT))
    assert ran(client("artifacts", "gc", "--dry-run", "--json")).json["report"] is None
    assert ran(client("artifacts", "gc", "--dry-run")).code == 0
    assert "run id" in ran(client("artifacts", "gc")).out
    assert ran(client("artifacts", "gc", "--json")).json["report"]["run_id"]


def test_what_the_server_refuses_is_said_with_its_code(client: Shell, server: Server) -> None:
    Path("a.txt").write_bytes(b"one")
    run = ran(client("artifacts", "put", "a.txt", "--tenant", "globex"), 1)
    assert run.err.startswith("FORBIDDEN")
    assert "/tenant_id" in run.err
    client.export(LUCIUS_API_KEY="nobody")
    assert "LUCIUS_API_KEY was not accepted" in ran(client("artifacts", "list"), 1).err
    assert "ARTIFACT_NOT_FOUND" in _as(client, KEY, "get", "artifact://absent/v1/a").err


def _as(client: Shell, key: str, *words: str) -> Run:
    client.export(LUCIUS_API_KEY=key)
    return client("artifacts", *words)


def test_without_a_server_it_says_so_at_once(client: Shell) -> None:
    client.export(LUCIUS_URL="http://127.0.0.1:1")
    run = ran(client("artifacts", "list"), 3)
    assert run.err.startswith("no LUCIUS at http://127.0.0.1:1")


def test_usage_is_checked_before_anything_is_sent(client: Shell, server: Server) -> None:
    for words in (("put", "absent.txt", *OF_TENANT), ("put", *OF_TENANT), ("restore", "a/v1")):
        ran(client("artifacts", *words), 2)
    assert server.gate.asked == []


def test_a_bar_is_drawn_on_a_terminal_alone(client: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_bytes(b"one")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    run = ran(client("artifacts", "put", "a.txt", *OF_TENANT))
    assert "a.txt" in run.err
    assert run.out == f"{blob(b'one')}\n"
