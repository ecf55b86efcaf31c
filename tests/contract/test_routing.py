"""Who decides the mode, and what a missing document means."""

import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.routing import (
    MODE_SPELLINGS,
    DecisionSource,
    Mode,
    ModeDecision,
    Route,
    by_lane,
    directive_topic,
    lane_of,
    resolve_mode,
    route,
    routing_key,
)

BOTH = frozenset(Mode)


@pytest.mark.parametrize(
    ("requested", "tenant", "expected", "source"),
    [
        (Mode.BURST, Mode.DEFAULT, Mode.BURST, DecisionSource.REQUEST),
        (None, Mode.BURST, Mode.BURST, DecisionSource.TENANT_CONFIG),
        (None, None, Mode.DEFAULT, DecisionSource.GLOBAL_CONFIG),
    ],
)
def test_the_request_comes_before_the_tenant_before_the_default(
    requested: Mode | None, tenant: Mode | None, expected: Mode, source: DecisionSource
) -> None:
    decision = resolve_mode(requested, tenant, Mode.DEFAULT, BOTH)
    assert (decision.mode, decision.source) == (expected, source)
    assert decision.reason


def test_safe_is_a_spelling_of_default() -> None:
    assert MODE_SPELLINGS["SAFE"] is Mode.DEFAULT


def test_a_mode_outside_the_tenants_list_is_forbidden_and_the_list_is_named() -> None:
    with pytest.raises(ContractError, match="allowed: DEFAULT") as refused:
        resolve_mode(Mode.BURST, None, Mode.DEFAULT, [Mode.DEFAULT])
    assert refused.value.code is ErrorCode.MODE_FORBIDDEN


def test_the_default_is_no_way_around_the_list() -> None:
    with pytest.raises(ContractError, match="allowed: none"):
        resolve_mode(None, None, Mode.DEFAULT, [])


def test_without_a_list_every_mode_is_allowed() -> None:
    assert resolve_mode(Mode.BURST, None, Mode.DEFAULT).mode is Mode.BURST


def test_burst_without_a_document_is_refused() -> None:
    with pytest.raises(ContractError) as refused:
        routing_key("acme", Mode.BURST)
    assert refused.value.code is ErrorCode.DOC_ID_REQUIRED
    assert [problem.pointer for problem in refused.value.problems] == ["/doc_id"]


def test_a_route_holds_all_that_is_pinned() -> None:
    decision = ModeDecision(Mode.BURST, DecisionSource.REQUEST, "asked for")
    assert route("Acme", " D1 ", decision) == Route(
        Mode.BURST, "acmed1", lane_of("acmed1"), DecisionSource.REQUEST, "asked for"
    )


def test_counts_by_topic_are_counts_by_lane() -> None:
    assert by_lane([(directive_topic(0), 3), (directive_topic(7), 1)]) == {0: 3, 7: 1}
