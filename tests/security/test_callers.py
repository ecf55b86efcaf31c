"""Roles, verbs and tenants."""

import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.security.callers import NEEDS, Caller, Role, Verb
from tests.security.refusals import refused

CHANGES = {Verb.CANCEL, Verb.PAUSE, Verb.RESUME, Verb.REDRIVE}
OVERVIEWS = {Verb.LIST_JOBS, Verb.LIST_DEAD_LETTERS, Verb.READ_METRICS}
MAY = {
    Role.SUBMIT: {Verb.SUBMIT, Verb.READ_JOB, Verb.READ_PROTOCOLS},
    Role.READ: {Verb.READ_JOB, Verb.READ_PROTOCOLS} | OVERVIEWS,
    Role.OPERATE: {Verb.READ_JOB, Verb.READ_PROTOCOLS} | OVERVIEWS | CHANGES,
    Role.ADMIN: set(Verb),
}


def caller(*roles: Role, tenants: frozenset[str] | None = None) -> Caller:
    return Caller("somebody", tenants, frozenset(roles))


def allowed(who: Caller, verb: Verb) -> bool:
    try:
        who.require(verb)
    except ContractError:
        return False
    return True


@pytest.mark.parametrize("role", Role)
def test_a_role_may_do_what_is_listed_and_nothing_else(role: Role) -> None:
    assert {verb for verb in Verb if allowed(caller(role), verb)} == MAY[role]


def test_every_verb_needs_a_role() -> None:
    assert set(NEEDS) == set(Verb)
    assert not any(allowed(caller(), verb) for verb in Verb)


def test_one_of_several_roles_is_enough() -> None:
    assert allowed(caller(Role.SUBMIT, Role.OPERATE), Verb.CANCEL)


def test_a_refusal_names_the_roles_that_would_do() -> None:
    with pytest.raises(ContractError, match="cancel needs the role operate or admin") as caught:
        caller(Role.READ).require(Verb.CANCEL)
    assert caught.value.code is ErrorCode.FORBIDDEN


@pytest.mark.parametrize("role", Role)
def test_metrics_are_for_callers_with_all_tenants(role: Role) -> None:
    with refused(ErrorCode.FORBIDDEN):
        caller(role, tenants=frozenset({"acme"})).require(Verb.READ_METRICS)


def test_a_caller_sees_its_own_tenants_only() -> None:
    of_acme = caller(Role.ADMIN, tenants=frozenset({"acme"}))
    assert of_acme.sees("acme")
    assert not of_acme.sees("other")
    assert not of_acme.sees(None)
    assert not of_acme.sees("")


def test_a_caller_with_no_tenant_sees_nothing() -> None:
    nobody = caller(Role.ADMIN, tenants=frozenset())
    assert not nobody.sees("acme")
    assert not nobody.sees(None)


def test_a_caller_with_all_tenants_sees_what_belongs_to_none() -> None:
    assert caller(Role.READ).sees("acme")
    assert caller(Role.READ).sees(None)
