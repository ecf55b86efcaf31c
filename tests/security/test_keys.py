"""API keys: the file that keeps them, and who bears one."""

import asyncio
import hashlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.security.callers import Caller, Role
from lucius_orchestrator.security.key_document import KeyInfo
from lucius_orchestrator.security.keys import KeyAuthenticator, KeyFile, KeyFileUnreadable, NewKey
from tests.runner.deadlines import PROCESS_DEADLINE
from tests.security.clock import START, Clock
from tests.security.refusals import refused

ACME = frozenset({"acme"})
READ = frozenset({Role.READ})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "keys.json"


@pytest.fixture
def keys(path: Path, clock: Clock) -> KeyFile:
    return KeyFile(path, clock)


@pytest.fixture
def authenticator(keys: KeyFile) -> KeyAuthenticator:
    return KeyAuthenticator(keys)


def kept(keys: KeyFile) -> Sequence[KeyInfo]:
    return keys.keys()


def bearer(key: NewKey) -> str:
    return f"Bearer {key.secret}"


async def test_the_bearer_of_a_key_is_the_caller_that_it_names(
    keys: KeyFile, authenticator: KeyAuthenticator
) -> None:
    key = keys.create("ingest", ACME, frozenset({Role.SUBMIT, Role.READ}))
    caller = await authenticator.authenticate(bearer(key))
    assert caller == Caller("ingest", ACME, frozenset({Role.SUBMIT, Role.READ}))


async def test_a_key_may_be_for_all_tenants(keys: KeyFile, authenticator: KeyAuthenticator) -> None:
    key = keys.create("ops", None, READ)
    assert (await authenticator.authenticate(bearer(key))).tenants is None


def test_the_secret_names_its_key_and_is_random(keys: KeyFile) -> None:
    first, second = (keys.create("ingest", ACME, READ) for _ in range(2))
    prefix, key_id, random = first.secret.split("_")
    assert (prefix, key_id) == ("lk", first.key_id)
    assert len(random) == 64
    assert second.secret.split("_")[2] != random


def test_the_file_holds_the_hash_and_not_the_secret(keys: KeyFile, path: Path) -> None:
    key = keys.create("ingest", ACME, READ)
    content = path.read_text()
    assert key.secret.split("_")[2] not in content
    assert hashlib.sha256(key.secret.encode()).hexdigest() in content


def test_only_its_owner_may_read_the_file(keys: KeyFile, path: Path) -> None:
    keys.create("ingest", ACME, READ)
    path.chmod(0o644)
    keys.create("other", ACME, READ)
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_what_is_kept_of_a_key_can_be_listed(keys: KeyFile, clock: Clock) -> None:
    created = keys.create("ingest", ACME, READ)
    clock.advance(days=1)
    keys.revoke(created.key_id)
    (key,) = keys.keys()
    assert (key.key_id, key.name, key.tenants, key.roles) == (
        created.key_id,
        "ingest",
        ACME,
        READ,
    )
    assert (key.created_at, key.revoked_at) == (START, clock.now)


def test_a_file_that_is_not_there_has_no_keys(keys: KeyFile, path: Path) -> None:
    assert keys.keys() == []
    assert keys.find("lk_1_2") is None
    assert not path.exists()


async def test_without_a_file_nobody_is_let_in(authenticator: KeyAuthenticator) -> None:
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate("Bearer lk_0011223344556677_00")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda secret: secret[:-1] + ("0" if secret[-1] != "0" else "1"),
        lambda secret: secret[:-1],
        lambda secret: secret + "0",
        lambda secret: secret.upper(),
        lambda secret: secret.removeprefix("lk_"),
        lambda secret: "_".join(secret.split("_")[:2]),
        lambda secret: "_".join(secret.split("_")[:2]) + "_",
        lambda secret: secret + "é",
        lambda secret: secret + "\udcff",
        lambda _: "lk_",
        lambda _: "lk___",
    ],
)
async def test_a_secret_that_is_not_exactly_the_key_is_refused(
    keys: KeyFile, authenticator: KeyAuthenticator, spoil: Callable[[str], str]
) -> None:
    key = keys.create("ingest", ACME, READ)
    with refused(ErrorCode.UNAUTHENTICATED, hiding=key.secret.split("_")[2][:-1]):
        await authenticator.authenticate(f"Bearer {spoil(key.secret)}")


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer{}"])
async def test_a_key_comes_as_bearer_or_not_at_all(
    keys: KeyFile, authenticator: KeyAuthenticator, header: str | None
) -> None:
    key = keys.create("ingest", ACME, READ)
    with refused(ErrorCode.UNAUTHENTICATED, hiding=key.secret):
        await authenticator.authenticate(header and header.format(key.secret))


async def test_the_scheme_is_known_in_any_case(
    keys: KeyFile, authenticator: KeyAuthenticator
) -> None:
    key = keys.create("ingest", ACME, READ)
    assert (await authenticator.authenticate(f"bearer  {key.secret}")).name == "ingest"


async def test_a_key_revoked_elsewhere_is_refused_from_the_next_look_on(
    keys: KeyFile, authenticator: KeyAuthenticator, path: Path, clock: Clock
) -> None:
    key = keys.create("ingest", ACME, READ)
    await authenticator.authenticate(bearer(key))
    assert KeyFile(path, clock).revoke(key.key_id)
    clock.advance(seconds=1)
    with refused(ErrorCode.UNAUTHENTICATED, hiding=key.secret):
        await authenticator.authenticate(bearer(key))


async def test_a_key_revoked_here_is_refused_at_once(
    keys: KeyFile, authenticator: KeyAuthenticator
) -> None:
    key = keys.create("ingest", ACME, READ)
    await authenticator.authenticate(bearer(key))
    keys.revoke(key.key_id)
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(bearer(key))


async def test_a_key_created_elsewhere_is_found_from_the_next_look_on(
    authenticator: KeyAuthenticator, path: Path, clock: Clock
) -> None:
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate("Bearer lk_1_2")
    key = KeyFile(path, clock).create("ingest", ACME, READ)
    clock.advance(seconds=1)
    assert (await authenticator.authenticate(bearer(key))).name == "ingest"


async def test_the_file_is_looked_at_no_more_than_once_a_second(
    keys: KeyFile, authenticator: KeyAuthenticator, path: Path, clock: Clock
) -> None:
    key = keys.create("ingest", ACME, READ)
    await authenticator.authenticate(bearer(key))
    path.unlink()
    clock.advance(seconds=0.999)
    assert (await authenticator.authenticate(bearer(key))).name == "ingest"
    clock.advance(seconds=0.001)
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(bearer(key))


async def test_the_file_is_looked_at_when_the_clock_was_set_back(
    keys: KeyFile, authenticator: KeyAuthenticator, path: Path, clock: Clock
) -> None:
    key = keys.create("ingest", ACME, READ)
    await authenticator.authenticate(bearer(key))
    path.unlink()
    clock.advance(hours=-1)
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(bearer(key))


def test_revoking_says_whether_there_was_a_key_to_revoke(keys: KeyFile, clock: Clock) -> None:
    key = keys.create("ingest", ACME, READ)
    assert keys.revoke(key.key_id)
    clock.advance(days=1)
    assert not keys.revoke(key.key_id)
    assert not keys.revoke("unknown")
    assert [key.revoked_at for key in kept(keys)] == [START]


def test_revoking_one_key_leaves_the_others(keys: KeyFile) -> None:
    first, second = keys.create("first", ACME, READ), keys.create("second", ACME, READ)
    keys.revoke(first.key_id)
    assert keys.find(first.secret) is None
    found = keys.find(second.secret)
    assert found is not None
    assert found.name == "second"


@pytest.mark.parametrize(
    ("name", "tenants", "roles"),
    [
        ("", ACME, READ),
        ("a\nb", ACME, READ),
        ("n" * 129, ACME, READ),
        ("ingest", frozenset[str](), READ),
        ("ingest", frozenset({""}), READ),
        ("ingest", frozenset({"*"}), READ),
        ("ingest", ACME, frozenset[Role]()),
    ],
)
def test_a_key_that_says_too_little_is_not_created(
    keys: KeyFile, name: str, tenants: frozenset[str], roles: frozenset[Role]
) -> None:
    with pytest.raises(ValueError, match="key"):
        keys.create(name, tenants, roles)
    assert keys.keys() == []


def changed(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda document: {**document, "keys": [{**document["keys"][0], **fields}]}


MALFORMED = [
    lambda _: [],
    lambda _: {},
    lambda _: {"version": 1},
    lambda document: {**document, "version": 2},
    lambda document: {**document, "more": 1},
    lambda document: {**document, "keys": document["keys"] * 2},
    lambda document: {**document, "keys": {}},
    changed(roles=["read", "emperor"]),
    changed(roles=[]),
    changed(roles="read"),
    changed(tenants=[]),
    changed(tenants=[""]),
    changed(tenants=["*"]),
    changed(tenants="acme"),
    changed(tenants=None),
    changed(sha256="abc"),
    changed(sha256=None),
    changed(revoked_at="yesterday"),
    changed(created_at="2026-03-01T12:00:00"),
    changed(name=""),
    changed(key_id="A_B"),
    changed(more=1),
]


@pytest.mark.parametrize("spoil", MALFORMED)
async def test_nobody_is_let_in_by_a_file_that_is_malformed(
    keys: KeyFile,
    authenticator: KeyAuthenticator,
    path: Path,
    spoil: Callable[[dict[str, Any]], Any],
) -> None:
    key = keys.create("ingest", ACME, READ)
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    with refused(ErrorCode.UNAVAILABLE, hiding="ingest"):
        await authenticator.authenticate(bearer(key))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'"hunter2"', b'{"hunter2": 1}'])
async def test_a_refusal_does_not_quote_a_damaged_file(
    keys: KeyFile, authenticator: KeyAuthenticator, path: Path, content: bytes
) -> None:
    key = keys.create("ingest", ACME, READ)
    path.write_bytes(content)
    with refused(ErrorCode.UNAVAILABLE, hiding="hunter2"):
        await authenticator.authenticate(bearer(key))
    with refused(ErrorCode.UNAVAILABLE, hiding="hunter2"):
        keys.keys()


async def test_a_file_damaged_later_keeps_everybody_out_until_it_is_whole(
    keys: KeyFile, authenticator: KeyAuthenticator, path: Path, clock: Clock
) -> None:
    key = keys.create("ingest", ACME, READ)
    await authenticator.authenticate(bearer(key))
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    clock.advance(seconds=1)
    for _ in range(2):
        with refused(ErrorCode.UNAVAILABLE):
            await authenticator.authenticate(bearer(key))
    path.write_bytes(whole)
    clock.advance(seconds=1)
    assert (await authenticator.authenticate(bearer(key))).name == "ingest"


async def test_a_file_that_cannot_be_read_keeps_everybody_out(
    keys: KeyFile, authenticator: KeyAuthenticator, path: Path
) -> None:
    path.mkdir(parents=True)
    with refused(ErrorCode.UNAVAILABLE):
        await authenticator.authenticate("Bearer lk_1_2")
    with pytest.raises(KeyFileUnreadable) as caught:
        keys.keys()
    assert (caught.value.path, caught.value.reason) == (path, "Is a directory")


def test_a_damaged_file_is_not_written_over(keys: KeyFile, path: Path) -> None:
    key = keys.create("ingest", ACME, READ)
    path.write_bytes(b"{")
    with refused(ErrorCode.UNAVAILABLE):
        keys.create("other", ACME, READ)
    with refused(ErrorCode.UNAVAILABLE):
        keys.revoke(key.key_id)
    assert path.read_bytes() == b"{"


def test_operators_are_told_once_that_the_file_is_damaged(
    keys: KeyFile, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir(parents=True)
    with caplog.at_level(logging.ERROR):
        keys.look()
        keys.look()
    assert [record.message for record in caplog.records] == ["keys.unreadable"]


def test_a_new_key_does_not_show_its_secret(keys: KeyFile) -> None:
    key = keys.create("ingest", ACME, READ)
    shown = f"{key!r} {key} {keys.keys()!r} {keys!r}"
    assert key.secret.split("_")[2] not in shown


def test_threads_that_create_keys_at_the_same_time_lose_none(path: Path, clock: Clock) -> None:
    start = threading.Barrier(4)

    def create() -> None:
        start.wait(PROCESS_DEADLINE)
        keys = KeyFile(path, clock)
        for _ in range(10):
            keys.create("ingest", ACME, READ)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PROCESS_DEADLINE)
    assert len(KeyFile(path, clock).keys()) == 40


def test_processes_that_create_keys_at_the_same_time_lose_none(path: Path, clock: Clock) -> None:
    command = [sys.executable, "-m", "tests.security.key_process", str(path)]
    processes = [
        subprocess.Popen(
            [*command, name, "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("left", "right")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    secrets = "".join(
        process.communicate(timeout=PROCESS_DEADLINE)[0] for process in processes
    ).split()
    keys = KeyFile(path, clock)
    assert len(secrets) == 40
    assert all(keys.find(secret) for secret in secrets)


def test_a_writer_that_dies_leaves_the_file_and_the_lock_usable(
    keys: KeyFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = keys.create("ingest", ACME, READ)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", _fails)
        with pytest.raises(OSError, match="disk is full"):
            keys.create("other", ACME, READ)
    assert sorted(file.name for file in path.parent.iterdir()) == ["keys.json", "keys.json.lock"]
    keys.create("third", ACME, READ)
    assert [key.name for key in kept(keys)] == ["ingest", "third"]
    assert keys.find(key.secret) is not None


def _fails(*_: object) -> None:
    raise OSError("disk is full")


def test_a_link_to_the_file_stays_a_link(tmp_path: Path, path: Path, clock: Clock) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(path)
    KeyFile(link, clock).create("ingest", ACME, READ)
    assert link.is_symlink()
    assert [key.name for key in kept(KeyFile(path, clock))] == ["ingest"]


async def test_requests_at_the_same_time_share_one_look(path: Path, clock: Clock) -> None:
    key = KeyFile(path, clock).create("ingest", ACME, READ)
    keys = CountingKeyFile(path, clock)
    authenticator = KeyAuthenticator(keys)
    async with asyncio.timeout(PROCESS_DEADLINE):
        await asyncio.gather(*(authenticator.authenticate(bearer(key)) for _ in range(20)))
    assert keys.looks == 1


class CountingKeyFile(KeyFile):
    looks = 0

    def look(self) -> None:
        self.looks += 1
        super().look()
