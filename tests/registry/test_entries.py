"""What the entries of a store mean, and what is said of those that mean nothing."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.registry import RegistryError, YamlRegistry
from lucius_orchestrator.adapters.registry.entries import Entry, Keys, read_entries
from lucius_orchestrator.adapters.registry.sources import SHIPPED
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.ports.registry import GlobalConfig, Snapshot, TenantConfig
from tests.registry.folder import PROTOCOL, named
from tests.registry.stores import KEYS

JSON = "application/json"
GOOD = Entry("lucius:protocols:translate", PROTOCOL, None)


def read(*entries: Entry, keys: Keys = KEYS) -> Snapshot:
    return read_entries(entries, keys, StepPolicy())


def problems(*entries: Entry, keys: Keys = KEYS) -> list[str]:
    with pytest.raises(RegistryError) as refusal:
        read(*entries, keys=keys)
    assert all(problem.line is None for problem in refusal.value.problems)
    return [str(problem) for problem in refusal.value.problems]


def with_member(text: str) -> Entry:
    return GOOD._replace(value=f"{PROTOCOL}    {text}\n")


@pytest.mark.parametrize(
    ("as_text", "content_type"),
    [
        (lambda text: text, None),
        (lambda text: text, "application/yaml; charset=utf-8"),
        (lambda text: json.dumps(yaml.safe_load(text)), "application/json"),
        (lambda text: json.dumps(yaml.safe_load(text), indent="\t"), "application/json"),
        (
            lambda text: json.dumps(yaml.safe_load(text)),
            "application/vnd.lucius+json;charset=utf-8",
        ),
        (lambda text: json.dumps(yaml.safe_load(text)), None),
    ],
    ids=["yaml", "yaml by type", "json", "json with tabs", "json by suffix", "json as yaml"],
)
def test_the_shipped_files_mean_the_same_as_entries(as_text: Any, content_type: str | None) -> None:
    entries = [
        Entry(f"lucius:protocols:{path.stem}", as_text(path.read_text()), content_type)
        for path in (SHIPPED / "protocols").iterdir()
    ]
    defaults = Entry("lucius:defaults", (SHIPPED / "defaults.yaml").read_text(), None)
    tenants = Entry("lucius:tenants", (SHIPPED / "tenants.yaml").read_text(), None)
    assert read(*entries, defaults, tenants) == YamlRegistry(None).load()


def test_all_that_is_not_there_has_its_default() -> None:
    snapshot = read(GOOD)
    assert (snapshot.defaults, snapshot.tenants) == (GlobalConfig(), {})
    empty = (Entry("lucius:defaults", "", None), Entry("lucius:tenants:acme", None, None))
    assert read(GOOD, *empty).tenants == {"acme": TenantConfig()}


def test_tenants_stand_together_or_below_keys_of_their_own() -> None:
    snapshot = read(
        GOOD,
        Entry("lucius:tenants", "50% off: {max_inflight: 1}", None),
        Entry(
            "lucius:tenants:acme",
            '{"mode": "BURST", "input_places": ["az://scans/{tenant}/"]}',
            JSON,
        ),
        Entry(
            "lucius:tenants:a:b*,\\ é", "{max_inflight: 3, webhook_keys: [2, 1], weight: 5}", None
        ),
    )
    assert snapshot.tenants == {
        "50% off": TenantConfig(max_inflight=1),
        "acme": TenantConfig(mode=Mode.BURST, input_places=("az://scans/{tenant}/",)),
        "a:b*,\\ é": TenantConfig(max_inflight=3, webhook_keys=(2, 1), weight=5),
    }


@given(st.text(min_size=1, max_size=128).filter(lambda text: text.strip()))
def test_the_key_of_a_tenant_ends_in_its_id_whatever_that_is(tenant_id: str) -> None:
    entry = Entry(f"lucius:tenants:{tenant_id}", "max_inflight: 3", None)
    assert read(GOOD, entry).tenants == {tenant_id: TenantConfig(max_inflight=3)}


def test_a_prefix_of_another_name_has_the_same_keys_below_it() -> None:
    keys = Keys("team/", "team/changed")
    entries = (
        Entry("team/protocols:translate", PROTOCOL, None),
        Entry("team/changed", "3", None),
        Entry("team/sentinel", "of old", None),
    )
    assert set(read(*entries, keys=keys).protocols) == {"translate"}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            with_member("lease: 30 bananas"),
            "steps[0].lease: must be a duration like 30s, 15m or 2h, got '30 bananas'",
        ),
        (with_member("leese: 5m"), "steps[0].leese: unknown member; did you mean lease?"),
        (GOOD._replace(value=""), "must be a mapping, got nothing"),
        (
            GOOD._replace(value="a: 1\n b: 2"),
            "is not YAML: mapping values are not allowed here (line 2)",
        ),
        (GOOD._replace(value="a: 1\nb: \0"), "holds a character that YAML does not allow (line 2)"),
        (GOOD._replace(value="a: 1\na: 2"), "a: stands here a second time, after line 1"),
        (GOOD._replace(value="a: \ud800"), "is not UTF-8 (line 1)"),
        (Entry(GOOD.key, '{"a":', JSON), "is not JSON: Expecting value: line 1 column 6 (char 5)"),
        (Entry(GOOD.key, "", JSON), "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (Entry(GOOD.key, '{"a": {"b": 1, "b": 2}}', JSON), "b: stands there a second time"),
        (Entry(GOOD.key, '{"a": NaN}', JSON), "is not JSON: NaN is no number"),
        (Entry(GOOD.key, '{"a": "\\ud800"}', JSON), "holds half of a character"),
        (Entry(GOOD.key, "[" * 100_000, JSON), "is nested too deeply"),
        (Entry(GOOD.key, "[]", JSON), "must be a mapping, got a list of 0"),
    ],
)
def test_a_wrong_entry_is_refused_by_its_key(entry: Entry, problem: str) -> None:
    found = problems(entry, Entry("lucius:protocols:b", named("b"), None))
    assert f"lucius:protocols:translate: {problem}" in found


@pytest.mark.parametrize(
    ("content_type", "what"),
    [
        (
            "application/vnd.microsoft.appconfig.keyvaultref+json;charset=utf-8",
            "a Key Vault reference",
        ),
        ("application/vnd.microsoft.appconfig.ff+json;charset=utf-8", "a feature flag"),
        (
            'application/json; profile="https://azconfig.io/mime-profiles/snapshot-ref"',
            "a snapshot reference",
        ),
    ],
)
def test_what_leads_elsewhere_is_refused_and_not_followed(content_type: str, what: str) -> None:
    entry = Entry("lucius:protocols:b", '{"uri": "https://vault.example/secrets/b"}', content_type)
    assert problems(GOOD, entry) == [
        f"lucius:protocols:b: is {what}, which is not followed; put the content itself here"
    ]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("defaults", "mode: FAST", "defaults: mode: must be one of DEFAULT, SAFE, BURST, got"),
        ("tenants", "acme: {modes: X}", "tenants: acme.modes: unknown member; did you mean mode?"),
        ("tenants:acme", "modes: X", "tenants:acme: modes: unknown member; did you mean mode?"),
        ("tenants:acme", "5", "tenants:acme: must be a mapping, got 5"),
        (
            "tenants:acme",
            "{allowed_modes: [SAFE], mode: BURST}",
            "tenants:acme: mode: BURST is not one of the allowed modes (DEFAULT)",
        ),
        (
            "tenants:acme",
            "webhook_keys: [3, 2, 1]",
            "tenants:acme: webhook_keys: must be a list of 1 to 2",
        ),
        (
            "tenants:acme",
            "webhook_keys: [0]",
            "tenants:acme: webhook_keys[0]: must be a whole number from 1 to 1000000, got 0",
        ),
        (
            "tenants:acme",
            "webhook_keys: [1, 1]",
            "tenants:acme: webhook_keys: names a generation twice",
        ),
        (
            "tenants:acme",
            "weight: 101",
            "tenants:acme: weight: must be a whole number from 1 to 100, got 101",
        ),
        ("tenants: ", "", "tenants: : a tenant id has 1 to 128 characters, not all of them blank"),
        (f"tenants:{'a' * 129}", "", f"tenants:{'a' * 129}: a tenant id has 1 to 128 characters"),
        (
            "protocol:b",
            PROTOCOL,
            "protocol:b: no such entry is known; known are lucius:protocols:ID, lucius:tenants:ID,"
            " lucius:tenants, lucius:defaults and lucius:sentinel",
        ),
        (
            "protocols:b",
            named("c"),
            "protocols:b: protocol_id: c lies below another name; its place is lucius:protocols:c",
        ),
    ],
)
def test_a_wrong_entry_of_another_kind_is_refused_by_its_key(
    key: str, value: str, problem: str
) -> None:
    (only,) = problems(GOOD, Entry(f"lucius:{key}", value, None))
    assert only.startswith(f"lucius:{problem}")


def test_a_tenant_stands_in_one_place_only() -> None:
    entries = (Entry("lucius:tenants", "acme: {}", None), Entry("lucius:tenants:acme", "", None))
    assert problems(GOOD, *entries) == [
        "lucius:tenants:acme: the tenant is in lucius:tenants already"
    ]


def test_names_are_unique_over_all_entries() -> None:
    assert problems(
        Entry("lucius:protocols:a", named("a", more="aliases: [B]\n"), None),
        Entry("lucius:protocols:b", named("b"), None),
    ) == ["lucius:protocols:b: request_type: B is taken by lucius:protocols:a"]


def test_a_store_without_protocols_is_refused() -> None:
    assert problems(Entry("lucius:tenants", "acme: {}", None)) == [
        "lucius:protocols:*: there is none: put the protocols there first"
    ]


def test_all_problems_of_all_entries_are_told_together() -> None:
    found = problems(
        GOOD._replace(value="["),
        Entry("lucius:defaults", "mode: x", None),
        Entry("lucius:tenants:acme", "mode: y", None),
        Entry("lucius:what", "", None),
    )
    assert [problem.split(": ")[0] for problem in found] == [
        "lucius:defaults",
        "lucius:protocols:translate",
        "lucius:tenants:acme",
        "lucius:what",
    ]
