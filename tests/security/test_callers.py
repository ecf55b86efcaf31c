"""Roles, verbs and tenants."""

import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.security.callers import ACROSS_TENANTS, NEEDS, Caller, Role, Verb
from tests.security.refusals import refused

CHANGES = {
    Verb.CANCEL,
    Verb.PAUSE,
    Verb.RESUME,
    Verb.REDRIVE,
    Verb.TOMBSTONE,
    Verb.RESTORE,
}
OVERVIEWS = {
    Verb.LIST_JOBS,
    Verb.LIST_DEAD_LETTERS,
    Verb.READ_SERVICES,
    Verb.READ_METRICS,
    Verb.READ_ARTIFACTS,
}
EVERYBODYS = {Verb.READ_JOB, Verb.READ_PROTOCOLS, Verb.READ_UPLOAD}
MAY = {
    Role.SUBMIT: {Verb.SUBMIT, Verb.UPLOAD, Verb.PUBLISH} | EVERYBODYS,
    Role.READ: EVERYBODYS | OVERVIEWS,
    Role.OPERATE: EVERYBODYS | OVERVIEWS | CHANGES | {Verb.READ_READINESS},
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


@pytest.mark.parametrize("verb", sorted(ACROSS_TENANTS))
@pytest.mark.parametrize("role", Role)
def test_what_cannot_be_told_apart_by_tenant_is_for_callers_with_all_tenants(
    role: Role, verb: Verb
) -> None:
    with refused(ErrorCode.FORBIDDEN):
        caller(role, tenants=frozenset({"acme"})).require(verb)


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
