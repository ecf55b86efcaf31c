"""Rules and scenarios as data: complete, told, and chosen as asked."""

import re
from pathlib import Path

import pytest

from contract_tests.contract import Contract, load_contract
from contract_tests.explaining import explained, scenarios_of
from contract_tests.rules import RULES, Level, Need, UnknownRule, rule
from contract_tests.runner import NothingChosen, chosen
from contract_tests.scenarios import SCENARIOS, all_cases
from lucius_orchestrator.domain.aggregate import ReplyVia

ROOT = Path(__file__).parents[2]
REFERENCE = load_contract(ROOT / "tests/conform/reference/contract.yaml").contract


def declared(**changes: object) -> Contract:
    return REFERENCE.model_copy(update=changes)


def test_there_are_26_rules_in_order_and_only_the_last_is_beyond_core() -> None:
    assert [each.id for each in RULES] == [f"LC-{number:02}" for number in range(1, 27)]
    assert [each.id for each in RULES if each.level is Level.FULL] == ["LC-26"]


@pytest.mark.parametrize("each", RULES, ids=lambda each: each.id)
def test_a_rule_is_judged_by_scenarios_that_say_what_they_do(each: object) -> None:
    found = scenarios_of(each)  # type: ignore[arg-type]
    assert found
    assert all(scenario.run.__doc__ for scenario in found)


def test_scenarios_have_names_of_their_own() -> None:
    names = [(scenario.rule_id, scenario.name) for scenario in SCENARIOS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("each", RULES, ids=lambda each: each.id)
def test_every_clause_is_a_heading_of_the_service_contract(each: object) -> None:
    page = (ROOT / "docs/reference/service-contract.md").read_text()
    assert f"\n## {each.clause}\n" in page  # type: ignore[attr-defined]


@pytest.mark.parametrize("each", RULES, ids=lambda each: each.id)
def test_an_explanation_has_statement_reason_way_and_command(each: object) -> None:
    text = explained(each)  # type: ignore[arg-type]
    for part in ("Why it matters", "How the harness finds out", "look here first", "To try it"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_rules_are_found_whatever_their_case_and_others_are_told() -> None:
    assert rule("lc-07").id == "LC-07"
    with pytest.raises(UnknownRule, match="LC-01 to LC-26"):
        rule("LC-99")


def test_a_way_to_reply_that_is_not_declared_is_not_played() -> None:
    cases = list(all_cases(declared(reply_via=[ReplyVia.BUS]), Level.FULL))
    assert {case.via for case in cases if case.lacks is None} == {ReplyVia.BUS}
    assert [case.lacks for case in cases if case.rule.id == "LC-08"] == [Need.HTTP_REPLIES]


@pytest.mark.parametrize(
    ("changes", "case_id", "lacks"),
    [
        ({"heartbeats": False}, "LC-26/heartbeats-http", Need.HEARTBEATS),
        ({"artifacts": False}, "LC-10/artifacts", Need.ARTIFACTS),
        ({"concurrency": 1}, "LC-06/at-work", Need.TWO_AT_ONCE),
        ({"shares_store": False}, "LC-05/two-instances", Need.SECOND_INSTANCE),
        (
            {"shares_store": False, "dedup_store": "/var/lib/upper"},
            "LC-22/second-instance",
            Need.TWO_STORES,
        ),
    ],
)
def test_what_is_declared_missing_is_the_only_reason_to_skip(
    changes: dict[str, object], case_id: str, lacks: Need
) -> None:
    cases = {case.id: case.lacks for case in all_cases(declared(**changes), Level.FULL)}
    assert cases[case_id] is lacks
    assert not any(case.lacks for case in all_cases(REFERENCE, Level.FULL))


def test_an_instance_whose_store_is_not_shared_is_judged_beside_one_with_another_store() -> None:
    cases = {case.id: case.lacks for case in all_cases(declared(shares_store=False), Level.FULL)}
    assert cases["LC-22/second-instance"] is None


def test_level_core_leaves_out_what_is_beyond_it() -> None:
    ids = {case.rule.id for case in all_cases(REFERENCE, Level.CORE)}
    assert "LC-26" not in ids
    assert len(ids) == 25


@pytest.mark.parametrize(
    ("only", "pattern"),
    [
        (["LC-07"], r"LC-07/.*"),
        (["lc-07/frozen"], r"LC-07/frozen"),
        (["LC-01/before-work"], r"LC-01/before-work-(http|bus)"),
        (["LC-1*"], r"LC-1\d/.*"),
        (["*-bus"], r".*-bus"),
    ],
)
def test_cases_are_chosen_by_rule_scenario_or_pattern(only: list[str], pattern: str) -> None:
    found = chosen(list(all_cases(REFERENCE, Level.FULL)), only)
    assert found
    assert all(re.fullmatch(pattern, case.id) for case in found)


def test_a_name_that_means_nothing_is_told() -> None:
    with pytest.raises(NothingChosen, match="LC-77"):
        chosen(list(all_cases(REFERENCE, Level.FULL)), ["LC-77"])
