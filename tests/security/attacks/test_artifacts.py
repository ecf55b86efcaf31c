"""What one tenant tries to learn of another's content, to publish in another's name, and to plant
in what is handed out."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from lucius_artifacts.ports.policy import Allow, Quarantine
from tests.api.artifact_stage import ArtifactStage, artifact_stage, digest_of, proof_of
from tests.api.stage import FOREIGN, LIFE, code, pointers
from tests.engine.plane import TENANT

SECRET = b"salary of ann: 84213"
HOURS_KEPT = 8 * 24
"""Of content that nobody refers to: the grace and the retention of the collector."""

KINDS = ["memory", "sqlite"]


@pytest.fixture(params=KINDS)
async def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ArtifactStage]:
    """`mallory` has the tenant globex, `ada` has acme."""
    async with artifact_stage(request.param, tmp_path) as stage:
        yield stage


async def guess(stage: ArtifactStage, content: bytes) -> dict[str, Any]:
    """What mallory is answered on the fast path, with a right proof of the guess."""
    upload = await stage.begin(content, "mallory", FOREIGN)
    proof = {"proof": proof_of(upload["challenge"], content)}
    answer = await stage.post(upload["links"]["dedupe"], "mallory", json=proof)
    looked_at = await stage.get(upload["links"]["self"], "mallory")
    await stage.post(upload["links"]["abort"], "mallory")
    said = {"status": answer.status_code, "body": answer.text, "upload": looked_at.text}
    return {name: anonymous(str(value), content) for name, value in said.items()}


def anonymous(text: str, content: bytes) -> str:
    """Without ids, digests and the rest that is random or the guess's own."""
    text = text.replace(digest_of(content), "DIGEST")
    return re.sub(r"(up_|req_)?[0-9a-f]{16,}", "ID", text)


async def test_a_salary_cannot_be_guessed_digit_by_digit(artifacts: ArtifactStage) -> None:
    await artifacts.uploaded(SECRET)
    await artifacts.published("payroll", SECRET)
    right = await guess(artifacts, SECRET)
    for digit in range(10):
        wrong = SECRET[:-1] + str(digit).encode()
        if wrong != SECRET:
            assert await guess(artifacts, wrong) == right


async def test_nothing_that_is_stored_is_read_for_a_guess(
    artifacts: ArtifactStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await artifacts.uploaded(SECRET)
    read: list[str] = []
    monkeypatch.setattr(artifacts.objects, "read", lambda key, *_: read.append(key))
    await guess(artifacts, SECRET)
    assert read == []


@asynccontextmanager
async def two_worlds(kind: str, folder: Path) -> AsyncIterator[list[ArtifactStage]]:
    """One where another tenant has published the secret, and one where nobody has it."""
    for world in ("with", "without"):
        (folder / world).mkdir()
    async with (
        artifact_stage(kind, folder / "with") as known,
        artifact_stage(kind, folder / "without") as unknown,
    ):
        await known.published("payroll", SECRET)
        await unknown.published("payroll", b"salary of bob: 31337")
        yield [known, unknown]


async def brought(stage: ArtifactStage) -> list[str]:
    """All that mallory is answered when it brings the secret, reads it, and publishes it."""
    upload = await stage.begin(SECRET, "mallory", FOREIGN)
    (part, *_) = await stage.signed(upload, [1], "mallory")
    answers: list[httpx.Response] = []
    await stage.bring(upload, SECRET, caller="mallory")
    answers.append(await stage.complete(upload, "mallory"))
    answers.append(await stage.located(answers[0].json()["uri"], "mallory"))
    answers.append(await stage.publish("mine", SECRET, caller="mallory", tenant=FOREIGN))
    address = httpx.URL(answers[1].json()["url"])
    same_object = address.path in httpx.URL(part["url"]).path
    content = await stage.get(str(address), None)
    shown = [each for each in content.headers.multi_items() if each[0] != "date"]
    texts = [anonymous(answer.text, SECRET) for answer in answers]
    return [
        *map(str, (answer.status_code for answer in answers)),
        *texts,
        anonymous(str(shown), SECRET),
        f"the object that was brought is read: {same_object}",
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_who_brings_a_content_is_answered_as_if_it_were_the_first(
    kind: str, tmp_path: Path
) -> None:
    async with two_worlds(kind, tmp_path) as worlds:
        known, unknown = [await brought(stage) for stage in worlds]
    assert known == unknown
    assert known[-1].endswith("True")


@pytest.mark.parametrize("kind", KINDS)
async def test_content_leaves_a_tenant_at_the_same_time_whoever_else_keeps_it(
    kind: str, tmp_path: Path
) -> None:
    async with two_worlds(kind, tmp_path) as worlds:
        histories = []
        for stage in worlds:
            uri = await stage.uploaded(SECRET, "mallory", FOREIGN)
            history = []
            for _ in range(4):
                stage.plane.later(hours=HOURS_KEPT // 3)
                await stage.run()
                history.append((await stage.located(uri, "mallory")).status_code)
            histories.append([*history, (await guess(stage, SECRET))["status"]])
    assert histories[0] == histories[1]
    assert histories[0][-2:] == [404, "409"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_draft_cannot_ask_whether_somebody_else_has_kept_its_content(
    kind: str, tmp_path: Path
) -> None:
    async with two_worlds(kind, tmp_path) as worlds:
        answers = []
        for stage in worlds:
            await stage.uploaded(SECRET, "mallory", FOREIGN)
            stage.policy.verdict = Quarantine("odd")
            await stage.publish("mine", SECRET, caller="mallory", tenant=FOREIGN)
            stage.policy.verdict = Allow()
            for _ in range(4):
                stage.plane.later(hours=HOURS_KEPT)
                await stage.run()
            path = "/v1/artifacts/mine/versions/1:publish"
            answer = await stage.post(path, "mallory", json={"tenant_id": FOREIGN})
            answers.append((answer.status_code, anonymous(answer.text, SECRET)))
    assert answers[0] == answers[1]
    assert answers[0][0] == 410


@pytest.mark.parametrize("uri", ["artifact://blobs/{digest}", "artifact://payroll/v1/files/0.txt"])
async def test_neither_digest_nor_name_of_another_tenants_content_is_answered_otherwise(
    artifacts: ArtifactStage, uri: str
) -> None:
    await artifacts.published("payroll", SECRET)
    answers = []
    for content in (SECRET, b"never seen"):
        asked = uri.format(digest=digest_of(content))
        answer = await artifacts.located(asked, "mallory")
        answers.append((answer.status_code, anonymous(answer.text, content)))
        published = await artifacts.publish("mine", content, caller="mallory", tenant=FOREIGN)
        answers.append((published.status_code, anonymous(published.text, content)))
    assert answers[:2] == answers[2:]
    assert {status for status, _ in answers} == {404}


RUN = {"jobId": "job_1", "stepId": "step_01", "attempt_no": 1, "epoch": 1}


async def published_by_a_job(stage: ArtifactStage) -> str:
    """The uri of the one file that attempt 1 of job_1 has published."""
    await stage.uploaded(b"the answer")
    answer = await stage.publish("answers", b"the answer", producer=stage.producer())
    uri: str = answer.json()["entries"][0]["uri"]
    return uri


FORGED = ["", "0" * 64, "1.99999999999.x.y", "attempt", "job", "tenant", "callback"]


def forged(stage: ArtifactStage, kind: str) -> str:
    ends = stage.plane.clock() + LIFE
    match kind:
        case "attempt":
            return str(stage.producer(attempt_no=1)["token"])
        case "job":
            return str(stage.producer(attempt_no=2, job_id="job_2")["token"])
        case "tenant":
            return str(stage.producer(attempt_no=2, tenant=FOREIGN)["token"])
        case "callback":
            return stage.tokens.issue("job_1", "step_01", 2, TENANT, ends)
    return kind


@pytest.mark.parametrize("kind", FORGED)
async def test_who_only_submits_cannot_tombstone_a_version_as_a_later_attempt_of_its_job(
    artifacts: ArtifactStage, kind: str
) -> None:
    uri = await published_by_a_job(artifacts)
    await artifacts.uploaded(b"forged", "submitter")
    later = {**RUN, "attempt_no": 2, "token": forged(artifacts, kind)}
    for caller in ("submitter", "ada", "root"):
        answer = await artifacts.publish("answers", b"forged", caller=caller, producer=later)
        assert code(answer) == (403, "FORBIDDEN")
        assert pointers(answer) == ["/producer/token"]
    assert await artifacts.read(uri) == b"the answer"


async def test_who_only_submits_cannot_block_a_job_by_a_fence_that_none_can_reach(
    artifacts: ArtifactStage,
) -> None:
    await artifacts.uploaded(b"forged", "submitter")
    highest = {**RUN, "attempt_no": 2**31 - 1, "epoch": 2**31 - 1}
    for producer in (highest, {**highest, "token": forged(artifacts, "attempt")}):
        answer = await artifacts.publish(
            "answers", b"forged", caller="submitter", producer=producer
        )
        assert answer.status_code in {400, 403}
    assert await artifacts.read(await published_by_a_job(artifacts)) == b"the answer"


async def test_the_token_of_one_tenants_attempt_publishes_nothing_for_another(
    artifacts: ArtifactStage,
) -> None:
    await artifacts.uploaded(b"forged", "mallory", FOREIGN)
    answer = await artifacts.publish(
        "answers", b"forged", caller="mallory", tenant=FOREIGN, producer=artifacts.producer()
    )
    assert code(answer) == (403, "FORBIDDEN")


async def handed_out(stage: ArtifactStage, path: str, media_type: str) -> httpx.Headers:
    """The headers under which a file is sent."""
    await stage.uploaded(b"<script>alert(1)</script>")
    entry = {
        "path": path,
        "digest": digest_of(b"<script>alert(1)</script>"),
        "media_type": media_type,
    }
    asked = {"tenant_id": TENANT, "entries": [entry]}
    version = await stage.post("/v1/artifacts/pages/versions", json=asked)
    assert version.status_code == 201, version.text
    located = await stage.located(version.json()["entries"][0]["uri"])
    return (await stage.get(located.json()["url"], None)).headers


ACTIVE = ["text/html", "image/svg+xml", "application/xhtml+xml", "text/html; charset=utf-7"]


@pytest.mark.parametrize("media_type", ACTIVE)
async def test_nothing_that_is_handed_out_runs_in_a_page(
    artifacts: ArtifactStage, media_type: str
) -> None:
    headers = await handed_out(artifacts, "a.html", media_type)
    assert headers["content-disposition"].startswith("attachment; ")
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ('a";filename="b.exe', "a__filename=_b.exe"),
        ("a/..;b/c\u202efdp.exe", "c_fdp.exe"),
        ("\u2066fdp.exe", "_fdp.exe"),
        ("\u2028x: y", "_x_ y"),
    ],
)
async def test_a_file_name_neither_ends_its_header_nor_hides_its_kind(
    artifacts: ArtifactStage, path: str, shown: str
) -> None:
    disposition = (await handed_out(artifacts, path, "text/plain"))["content-disposition"]
    plain, exact = disposition.split("; ", 1)[1].rsplit("; ", 1)
    assert plain == f'filename="{shown}"'
    assert all(byte not in exact for byte in '"\r\n;')
    assert "%E2%80%AE" not in exact
    assert "%E2%81%A6" not in exact


@pytest.mark.parametrize("name", ["a\r\nx: y", "../a", "a\\b", "/etc/passwd", "a/./b", "a\x00"])
async def test_a_path_that_leads_elsewhere_is_refused(artifacts: ArtifactStage, name: str) -> None:
    await artifacts.uploaded(b"x")
    entry = {"path": name, "digest": digest_of(b"x")}
    asked = {"tenant_id": TENANT, "entries": [entry]}
    answer = await artifacts.post("/v1/artifacts/pages/versions", json=asked)
    assert answer.status_code in {400, 422}


ALTERED = ["number", "length", "expires", "signature", "key", "method", "twice"]


@pytest.mark.parametrize("member", ALTERED)
async def test_an_address_of_a_part_allows_that_part_alone(
    artifacts: ArtifactStage, member: str
) -> None:
    upload = await artifacts.begin(b"0123456789")
    part, other = await artifacts.signed(upload, [1, 2])
    url = httpx.URL(part["url"])
    query = dict(url.params)
    altered = {
        "number": url.copy_with(path=httpx.URL(other["url"]).path),
        "length": url.copy_merge_params({"length": str(2**40)}),
        "expires": url.copy_merge_params({"expires": str(int(query["expires"]) + 3600)}),
        "signature": url.copy_merge_params({"signature": "0" * 64}),
        "key": url.copy_with(path=url.path.replace("/ob_", "/ob_0")),
        "method": url,
        "twice": url.copy_add_param("length", str(2**40)),
    }[member]
    method = "GET" if member == "method" else "PUT"
    answer = await artifacts.ask(method, str(altered), None, content=b"0123")
    assert answer.status_code in {400, 403, 404, 405}
    assert (await artifacts.get(upload["links"]["self"])).json()["received"] == []


@pytest.mark.parametrize("number", ["0", "-1", "01", "10001", "9999999", "1e3", "%31", "1/../2"])
async def test_a_part_number_that_no_content_has_writes_nothing(
    artifacts: ArtifactStage, number: str
) -> None:
    upload = await artifacts.begin(b"0123456789")
    (part,) = await artifacts.signed(upload, [2])
    url = part["url"].replace("/parts/2?", f"/parts/{number}?")
    answer = await artifacts.ask("PUT", url, None, content=b"4567")
    assert answer.status_code in {403, 404, 422} or number == "1/../2"
    received = (await artifacts.get(upload["links"]["self"])).json()["received"]
    assert received == [] or number == "1/../2"


async def test_a_crowd_opens_no_more_uploads_than_a_tenant_may_have(
    artifacts: ArtifactStage,
) -> None:
    asked = [
        {"tenant_id": FOREIGN, "digest": digest_of(bytes([number])), "length": 1}
        for number in range(20)
    ]
    answers = await asyncio.gather(
        *(artifacts.post("/v1/artifacts/uploads", "mallory", json=each) for each in asked)
    )
    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [429] * 15
    assert (await artifacts.begin(b"of another tenant"))["state"] == "initiated"
