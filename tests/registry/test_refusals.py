"""Every refusal names file, line, member and reason; all of them at once."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_orchestrator.adapters.registry import RegistryError, YamlRegistry
from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.members import Member, delay, spelled
from lucius_orchestrator.domain.aggregate import StepPolicy
from tests.registry.folder import PROTOCOL, named, write


def problems(folder: Path, policy: StepPolicy | None = None) -> list[str]:
    with pytest.raises(RegistryError) as refusal:
        YamlRegistry(folder, policy).load()
    return [str(problem) for problem in refusal.value.problems]


def with_line(number: int, text: str) -> str:
    """The good protocol with one line replaced."""
    lines = PROTOCOL.splitlines()
    lines[number - 1] = text
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("line", "text", "problem"),
    [
        (1, "protocol_id: a/b", "1: protocol_id: must be 1 to 128 letters"),
        (1, "# none", "2: protocol_id: is missing"),
        (
            2,
            "version: 1.0",
            "2: version: must be 1 to 64 characters of text; a number needs quotes",
        ),
        (2, 'version: ""', "2: version: must be 1 to 64 characters of text"),
        (2, "verson: '1'", "2: verson: unknown member; did you mean version?"),
        (3, "request_type: A→B", "3: request_type: write A_B; the spelling with arrows is always"),
        (3, "request_type: ' A'", "3: request_type: must be 1 to 256 characters without control"),
        (3, 'request_type: "A\\tB"', "3: request_type: must be 1 to 256 characters without"),
        (3, "request_type:", "3: request_type: must be 1 to 256 characters without control"),
        (5, "  - step_type: a/b", "5: steps[0].step_type: must be 1 to 64 letters"),
        (5, "  - step_type: ..", "5: steps[0].step_type: must be 1 to 64 letters"),
        (5, f"  - step_type: {'a' * 65}", "5: steps[0].step_type: must be 1 to 64 letters"),
        (6, "    service: Translate", "6: steps[0].service: must be 1 to 50 lower-case letters"),
        (6, f"    service: {'a' * 51}", "6: steps[0].service: must be 1 to 50 lower-case letters"),
        (6, "    service: a-", "6: steps[0].service: must be 1 to 50 lower-case letters"),
        (6, "    zzz: 1", "6: steps[0].zzz: unknown member; known: step_type, service, payload_"),
        (7, "    lease: 5m", "5: steps[0].payload_schema: is missing"),
    ],
)
def test_a_wrong_member_is_refused_where_it_stands(
    tmp_path: Path, line: int, text: str, problem: str
) -> None:
    found = problems(write(tmp_path, a=with_line(line, text)))
    assert any(one.startswith(f"protocols/a.yaml:{problem}") for one in found), found


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        (
            "ack_timeout: 30 bananas",
            "ack_timeout: must be a duration like 30s, 15m or 2h, got '30 bananas'",
        ),
        ("ack_timeout: 30", "ack_timeout: must be a duration like 30s, 15m or 2h, got 30"),
        ("ack_timeout: 0s", "ack_timeout: must be longer than nothing, got '0s'"),
        ("ack_timeout: -1s", "ack_timeout: must be a duration like 30s, 15m or 2h, got '-1s'"),
        ("timeout: 400d", "timeout: must be at most 366d, got '400d'"),
        ("timeout:", "timeout: must be a duration like 30s, 15m or 2h, got nothing"),
        ("timeout: {h: 1}", "timeout: must be a duration like 30s, 15m or 2h, got a mapping"),
        ("max_attempts: 0", "max_attempts: must be a whole number from 1 to 100, got 0"),
        ("max_attempts: true", "max_attempts: must be a whole number from 1 to 100, got true"),
        ("max_attempts: 2.5", "max_attempts: must be a whole number from 1 to 100, got 2.5"),
        ("backoff: 1m", "backoff: must be a list of 1 to 30, got '1m'"),
        ("backoff: []", "backoff: must be a list of 1 to 30, got a list of 0"),
        ("backoff: [1s, x]", "backoff[1]: must be a duration like 30s, 15m or 2h, got 'x'"),
        ("reply_via: pigeon", "reply_via: must be one of http, bus, got 'pigeon'"),
        ("reply_via: [http]", "reply_via: must be one of http, bus, got a list of 1"),
        ("ack_timout: 5s", "ack_timout: unknown member; did you mean ack_timeout?"),
        ("heartbeat: 15m", "heartbeat: a heartbeat every 15m cannot extend a lease of 15m"),
        ("lease: 3h", "lease: a lease of 3h is longer than the timeout of 2h"),
        ("timeout: 14m", "timeout: a lease of 15m is longer than the timeout of 14m"),
        (
            f"ack_timeout: {'x' * 100}",
            f"ack_timeout: must be a duration like 30s, 15m or 2h, got '{'x' * 59}...",
        ),
    ],
)
def test_a_wrong_timing_is_refused(tmp_path: Path, member: str, problem: str) -> None:
    folder = write(tmp_path, a=f"{PROTOCOL}    {member}\n")
    assert problems(folder) == [f"protocols/a.yaml:8: steps[0].{problem}"]


def test_defaults_that_contradict_each_other_are_told_at_the_step(tmp_path: Path) -> None:
    policy = StepPolicy(lease=timedelta(hours=3))
    assert problems(write(tmp_path, a=PROTOCOL), policy) == [
        "protocols/a.yaml:5: steps[0]: a lease of 3h is longer than the timeout of 2h"
    ]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("5", "payload_schema: must be a JSON Schema, got 5"),
        ("{type: bananas}", "payload_schema.type: is not valid JSON Schema: 'bananas' is not"),
        ("{minLength: x}", "payload_schema.minLength: is not valid JSON Schema: 'x' is not of"),
        (
            "{pattern: '('}",
            "payload_schema.pattern: is not valid JSON Schema: '(' is not a 'regex'",
        ),
        (
            "{properties: {a: {$ref: 'https://example.com/a.json'}}}",
            "payload_schema.properties.a.$ref: must point into this schema, as #/$defs/name does; "
            "https://example.com/a.json is never fetched",
        ),
        (
            "{properties: {default: {$ref: other.json}}}",
            "payload_schema.properties.default.$ref: must point into this schema",
        ),
        ("{allOf: [{$ref: '#a'}]}", "payload_schema.allOf[0].$ref: must point into this schema"),
        ("{$ref: '#/$defs/a'}", "payload_schema.$ref: #/$defs/a leads nowhere in this schema"),
        ("{$ref: '#/allOf/1', allOf: [true]}", "payload_schema.$ref: #/allOf/1 leads nowhere"),
        ("{$ref: '#'}", "payload_schema: refers to itself without end"),
        ("{items: {$id: x}}", "payload_schema.items.$id: can only stand at the top of a schema"),
        (
            "{$schema: 'http://json-schema.org/draft-07/schema#'}",
            "payload_schema.$schema: must be https://json-schema.org/draft/2020-12/schema",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(tmp_path: Path, schema: str, problem: str) -> None:
    folder = write(tmp_path, a=with_line(7, f"    payload_schema: {schema}"))
    (only,) = problems(folder)
    assert only.startswith(f"protocols/a.yaml:7: steps[0].{problem}")


@pytest.mark.parametrize(
    "schema",
    [
        "{}",
        "{$id: 'https://example.com/a', $ref: '#/$defs/a~1b', $defs: {a/b: {type: object}}}",
        "{$schema: 'https://json-schema.org/draft/2020-12/schema'}",
        "{properties: {$ref: {type: string}, x: {const: {$ref: elsewhere}}}}",
        "{properties: {next: {$ref: '#'}}}",
        "{allOf: [true, {$ref: '#/allOf/0'}]}",
    ],
)
def test_a_schema_that_stands_alone_is_taken(tmp_path: Path, schema: str) -> None:
    YamlRegistry(write(tmp_path, a=with_line(7, f"    payload_schema: {schema}"))).load()


def test_step_types_that_share_a_payload_key_are_refused(tmp_path: Path) -> None:
    step = "  - {step_type: translate, service: b, payload_schema: {}}\n"
    assert problems(write(tmp_path, a=PROTOCOL + step)) == [
        "protocols/a.yaml:8: steps[1].step_type: "
        "translate has the payload key of steps[0], translate"
    ]


@pytest.mark.parametrize("count", [0, 31])
def test_a_protocol_has_1_to_30_steps(tmp_path: Path, count: int) -> None:
    step = "  - {{step_type: s{0}, service: s, payload_schema: {{}}}}\n"
    steps = "".join(step.format(number) for number in range(count)) or "  []\n"
    head = PROTOCOL.partition("  - ")[0]
    assert problems(write(tmp_path, a=head + steps)) == [
        f"protocols/a.yaml:4: steps: must be a list of 1 to 30, got a list of {count}"
    ]


def test_names_are_unique_over_all_files(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a=named("a", more="aliases: [X→Y, B]\n"),
        b=named("b"),
        c=named("c", request_type="X_Y"),
        d=named("a", request_type="D", more="aliases: [E, E]\n"),
    )
    assert problems(folder) == [
        "protocols/b.yaml:3: request_type: B is taken by protocols/a.yaml:8",
        "protocols/c.yaml:3: request_type: X_Y is taken by protocols/a.yaml:8",
        "protocols/d.yaml:1: protocol_id: a is in protocols/a.yaml:1 already",
        "protocols/d.yaml:8: aliases[1]: E is taken by protocols/d.yaml:8",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mode: FAST", "1: mode: must be one of DEFAULT, SAFE, BURST, got 'FAST'"),
        ("max_inflight: -1", "1: max_inflight: must be a whole number from 0, got -1"),
        ("max_inflite: 1", "1: max_inflite: unknown member; did you mean max_inflight?"),
        ("max_inflight_per_mode: 5", "1: max_inflight_per_mode: must be a mapping, got 5"),
        (
            "max_inflight_per_mode: {BRUST: 5}",
            "1: max_inflight_per_mode.BRUST: unknown member; did you mean BURST?",
        ),
        (
            "max_inflight_per_mode:\n  DEFAULT: 5\n  SAFE: 6",
            "3: max_inflight_per_mode.SAFE: is a spelling of DEFAULT, which has a limit already",
        ),
        ("job_sla: 0h", "1: job_sla: must be longer than nothing, got '0h'"),
        (
            "input_places: az://inbox/",
            "1: input_places: must be a list of 0 to 100, got 'az://inbox/'",
        ),
        (
            "input_places:\n  - az://inbox/\n  - 5",
            "3: input_places[1]: must be a prefix of uris, as az://inbox/{tenant}/, got 5",
        ),
        (
            "output_places:\n  - az://outbox/\n  - az://outbox/{tenant}",
            "3: output_places[1]: must end with a '/',"
            " or names that begin alike would be within it",
        ),
        (
            "output_places: ['https://files.example/']",
            "1: output_places[0]: must begin with one of az://, file://, s3://",
        ),
        (
            "input_places: ['az://inbox/../']",
            "1: input_places[0]: has a dot segment",
        ),
        ("[]", "1: must be a mapping, got a list of 0"),
    ],
)
def test_wrong_defaults_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert problems(write(tmp_path, defaults=text)) == [f"defaults.yaml:{problem}"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("acme: {mode: FAST}", "1: acme.mode: must be one of DEFAULT, SAFE, BURST, got 'FAST'"),
        ("acme: 5", "1: acme: must be a mapping, got 5"),
        ("acme: {weight: 0}", "1: acme.weight: must be a whole number from 1 to 100, got 0"),
        ("acme: {weight: 1.5}", "1: acme.weight: must be a whole number from 1 to 100, got 1.5"),
        ("\nacme: {allowed_modes: []}", "2: acme.allowed_modes: must be a list of 1 to 3, got a"),
        ("acme: {modes: SAFE}", "1: acme.modes: unknown member; did you mean mode?"),
        (
            "acme:\n  allowed_modes: [SAFE]\n  mode: BURST",
            "3: acme.mode: BURST is not one of the allowed modes (DEFAULT)",
        ),
        ("' ': {}", "1:  : a tenant id has 1 to 128 characters, not all of them blank"),
        (f"{'a' * 129}: {{}}", f"1: {'a' * 129}: a tenant id has 1 to 128 characters"),
        ("42: {}", "1: a key must be text; put it in quotes"),
        ("- acme", "1: must be a mapping from tenant ids to their settings, got a list of 1"),
    ],
)
def test_wrong_tenants_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    (only,) = problems(write(tmp_path, tenants=text))
    assert only.startswith(f"tenants.yaml:{problem}")


def test_all_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a=with_line(6, "    service: A\n    lease: long"),
        b="protocol_id: [",
        defaults="mode: x",
        tenants="acme: {mode: y}",
    )
    assert [problem.split(": ")[0] for problem in problems(folder)] == [
        "defaults.yaml:1",
        "protocols/a.yaml:6",
        "protocols/a.yaml:7",
        "protocols/b.yaml:1",
        "tenants.yaml:1",
    ]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path / "x") == [f"{tmp_path / 'x'}: is not a folder"]


def test_a_folder_without_protocol_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "protocols").mkdir()
    assert problems(tmp_path) == ["protocols: holds no *.yaml file"]


def test_protocols_that_are_not_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "protocols").write_text("")
    assert problems(tmp_path) == ["protocols: cannot be read: Not a directory"]


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path, a=PROTOCOL)
    (tmp_path / "protocols" / "b.yaml").mkdir()
    assert problems(tmp_path) == ["protocols/b.yaml: cannot be read: Is a directory"]


def test_files_that_would_be_overlooked_are_refused(tmp_path: Path) -> None:
    write(tmp_path, a=PROTOCOL)
    (tmp_path / "protocols" / "b.yml").write_text(named("b"))
    (tmp_path / "tenants.yml").write_text("")
    assert problems(tmp_path) == [
        "protocols/b.yml: is not read under this name; call it b.yaml",
        "tenants.yml: is not read under this name; call it tenants.yaml",
    ]


@given(st.integers(0, 366 * 24 * 60 * 60 * 1000))
def test_a_duration_is_spelled_as_it_is_read(milliseconds: int) -> None:
    length = timedelta(milliseconds=milliseconds)
    document = Document("x")
    text = spelled(length)
    if len(text.rstrip("smhd")) <= 9:
        assert delay(Member(document, (), text)) == length
        assert not document.problems


def test_a_duration_finer_than_a_millisecond_has_a_spelling_too() -> None:
    assert spelled(timedelta(microseconds=5)) == "0:00:00.000005"
