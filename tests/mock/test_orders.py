"""What a script orders is what a service finds on the bus."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Directive, parse_directive
from lucius_contract.refs import tenant_folder
from lucius_contract.routing import lane_of
from lucius_contract.states import StepState
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import MALFORMED, Kind, Mock, MockSettings, What
from orchestrator_mock.orders import FOREIGN
from tests.mock.scene import (
    LANE,
    SERVICE,
    STEP_TYPE,
    TENANT,
    BusService,
    directive_of,
    order,
    properties_of,
    raw_of,
    recorded,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mock(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mock]:
    async with Mock(MockSettings(SERVICE, tmp_path_factory.mktemp("workspace"))) as mock:
        yield mock
        assert mock.defects == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(mock: Mock) -> AsyncIterator[BusService]:
    async with BusService(mock) as service:
        yield service


async def arrived(mock: Mock, service: BusService, kind: Kind) -> tuple[dict[str, Any], bytes]:
    """The directive as the ledger meant it, and as it came."""
    issued = mock.send(order(payload={"dpi": 300}), kind)
    message = await service.taken()
    assert message.message_id == issued.message_id
    return dict(issued.body), raw_of(message)


async def test_a_valid_directive_arrives_as_the_contract_says(
    mock: Mock, service: BusService
) -> None:
    issued = mock.send(order(payload={"dpi": 300}))
    message = await service.taken()
    directive = parse_directive(raw_of(message))
    assert json.loads(raw_of(message)) == issued.body
    assert (directive.tenant_id, directive.lane) == (TENANT, LANE)
    assert directive.payload == {"dpi": 300}
    assert properties_of(message) == issued.properties
    assert properties_of(message)["service"] == SERVICE
    assert message.partition_key == TENANT


async def test_a_directive_lives_as_long_as_its_lease(mock: Mock, service: BusService) -> None:
    mock.send(order(ack_timeout=timedelta(seconds=100), lease=timedelta(seconds=200)))
    message = await service.taken()
    assert message.time_to_live is not None
    assert message.time_to_live.total_seconds() == pytest.approx(300, abs=5)
    ends = parse_directive(raw_of(message)).lease_expires_at
    assert (ends - datetime.now(UTC)).total_seconds() == pytest.approx(300, abs=5)


async def test_a_directive_that_has_expired_arrives_all_the_same(
    mock: Mock, service: BusService
) -> None:
    meant, raw = await arrived(mock, service, Kind.EXPIRED)
    directive = parse_directive(raw)
    assert directive.lease_expires_at < datetime.now(UTC) - timedelta(minutes=59)
    assert json.loads(raw) == {**meant, "lease_expires_at": json.loads(raw)["lease_expires_at"]}


async def test_unknown_fields_stand_beside_and_inside_of_known_ones(
    mock: Mock, service: BusService
) -> None:
    meant, raw = await arrived(mock, service, Kind.UNKNOWN_FIELDS)
    directive, came = parse_directive(raw), json.loads(raw)
    assert directive.schema_version == "1.7"
    assert came.keys() - meant.keys() == {"x_new", "x_more"}
    assert came["input_ref"] == {**meant["input_ref"], "x_region": "north"}


async def test_a_foreign_step_type_is_the_only_thing_that_is_wrong(
    mock: Mock, service: BusService
) -> None:
    meant, raw = await arrived(mock, service, Kind.FOREIGN_STEP_TYPE)
    assert json.loads(raw) == {**meant, "step_type": FOREIGN}
    assert parse_directive(raw).step_type == FOREIGN


async def test_what_is_not_json_is_a_directive_that_breaks_off(
    mock: Mock, service: BusService
) -> None:
    meant, raw = await arrived(mock, service, Kind.NOT_JSON)
    assert json.dumps(meant, ensure_ascii=False).encode().startswith(raw)
    with pytest.raises(ValueError, match=r"delimiter|Unterminated"):
        json.loads(raw)


async def test_what_is_not_an_object_is_a_directive_in_an_array(
    mock: Mock, service: BusService
) -> None:
    meant, raw = await arrived(mock, service, Kind.NOT_AN_OBJECT)
    assert json.loads(raw) == [meant]


async def test_the_missing_field_is_one_that_must_be_there(mock: Mock, service: BusService) -> None:
    meant, raw = await arrived(mock, service, Kind.FIELD_MISSING)
    assert meant.keys() - json.loads(raw).keys() == {"lease_id"}


async def test_another_version_is_another_major_version(mock: Mock, service: BusService) -> None:
    meant, raw = await arrived(mock, service, Kind.OTHER_VERSION)
    assert json.loads(raw) == {**meant, "schema_version": "2"}
    with pytest.raises(ContractError) as refused:
        parse_directive(raw)
    assert refused.value.code is ErrorCode.SCHEMA_VERSION_UNSUPPORTED


@pytest.mark.parametrize("kind", Kind)
async def test_malformed_is_what_cannot_be_read_as_a_directive(
    mock: Mock, service: BusService, kind: Kind
) -> None:
    _, raw = await arrived(mock, service, kind)
    try:
        parse_directive(raw)
    except ContractError:
        is_read = False
    else:
        is_read = True
    assert is_read is (kind not in MALFORMED)


@pytest.mark.parametrize("kind", Kind)
async def test_the_recording_says_how_a_directive_was_spoilt(
    mock: Mock, service: BusService, kind: Kind
) -> None:
    issued = mock.send(order(), kind)
    (published,) = mock.recording.of(issued.job_id, What.PUBLISHED)
    assert published.detail == ("" if kind is Kind.VALID else kind)
    assert published.via == f"global-bus-p{LANE}"
    await service.taken()


async def test_copies_are_the_same_message_so_many_times(mock: Mock, service: BusService) -> None:
    issued = mock.send(order(), copies=3)
    came = [await service.taken() for _ in range(3)]
    assert {message.message_id for message in came} == {issued.message_id}
    assert len({raw_of(message) for message in came}) == 1
    assert len(mock.recording.of(issued.job_id, What.PUBLISHED)) == 3
    assert mock.waiting() == 0


async def test_what_is_published_again_later_is_the_same(mock: Mock, service: BusService) -> None:
    issued = mock.send(order())
    first = raw_of(await service.taken())
    mock.publish(issued)
    assert raw_of(await service.taken()) == first


async def test_what_is_kept_for_later_is_on_no_bus_until_it_is_published(
    mock: Mock, service: BusService
) -> None:
    issued = mock.send(order(), publish=False)
    assert mock.waiting() == 0
    assert mock.job(issued.job_id).active.state is StepState.DISPATCHING
    mock.publish(issued)
    assert mock.job(issued.job_id).active.state is StepState.AWAITING_ACK
    assert (await service.taken()).message_id == issued.message_id


async def test_the_ledger_can_be_made_to_believe_that_it_went_out(mock: Mock) -> None:
    issued = mock.send(order(), publish=False)
    mock.mark_sent(issued)
    assert mock.job(issued.job_id).active.state is StepState.AWAITING_ACK
    assert mock.waiting() == 0


async def test_the_next_attempt_has_a_number_a_lease_and_a_token_of_its_own(
    mock: Mock, service: BusService
) -> None:
    asked = order()
    first = mock.send(asked)
    await service.taken()
    second = mock.next_attempt(first, asked)
    came = parse_directive(raw_of(await service.taken()))
    assert (came.job_id, came.attempt_no) == (first.job_id, 2)
    assert came.lease_id == second.lease_id != first.lease_id
    assert came.callback_token != first.body["callback_token"]
    (given_up, _) = mock.job(first.job_id).active.attempts
    assert given_up.outcome is StepState.FAILED_RETRY


async def test_a_job_has_no_more_attempts_than_were_ordered(mock: Mock) -> None:
    asked = order(max_attempts=1)
    issued = mock.send(asked, publish=False)
    mock.mark_sent(issued)
    with pytest.raises(ContractError) as refused:
        mock.next_attempt(issued, asked)
    assert refused.value.code is ErrorCode.STATE_CONFLICT
    step = mock.job(issued.job_id).active
    assert step.state is StepState.FAILED_FINAL
    assert step.next_attempt_at is None


async def test_what_has_no_attempt_that_could_expire_is_told_so(mock: Mock) -> None:
    issued = mock.send(order(), publish=False)
    with pytest.raises(ContractError, match="DISPATCHING has no attempt") as refused:
        mock.expire(issued.job_id)
    assert refused.value.code is ErrorCode.STATE_CONFLICT


async def test_a_directive_for_another_service_does_not_reach_this_one(
    mock: Mock, service: BusService
) -> None:
    mock.send(order(service="sis"))
    own = mock.send(order())
    assert (await service.taken()).message_id == own.message_id
    assert mock.waiting() == 0


@pytest.mark.parametrize("tenant", ["acme", "bolt", "cord", "Acme "])
async def test_the_tenant_decides_the_lane(mock: Mock, tenant: str) -> None:
    issued = mock.send(order(tenant_id=tenant), publish=False)
    assert issued.lane == issued.body["lane"] == lane_of(tenant.strip().lower())


async def test_what_an_order_says_stands_in_the_directive(mock: Mock) -> None:
    artifact = {"name": "a", "uri": "az://a", "sha256": "ab" * 32, "size": 1}
    given: dict[str, Any] = {
        "input_ref": {"uri": "az://inbox/a.pdf"},
        "workspace_ref": {"uri": "az://workspace/a/"},
        "output_ref": {"uri": "az://outbox/a.txt"},
        "prior_artifacts": {"OCR": [artifact]},
        "correlation_id": "c-1",
        "traceparent": TRACE,
    }
    issued = mock.send(order(heartbeat=timedelta(seconds=7), **given), publish=False)
    assert {name: issued.body[name] for name in given} == given
    assert issued.body["heartbeat_seconds"] == 7
    assert issued.body["step_type"] == STEP_TYPE
    assert directive_of(issued).prior_artifacts["OCR"][0].name == "a"


async def test_refs_that_are_not_ordered_lie_below_the_workspace(mock: Mock) -> None:
    issued = mock.send(order(), publish=False)
    folder = mock.workspace_of(issued.job_id, TENANT)
    assert folder.is_relative_to(mock.settings.workspace)
    assert issued.body["workspace_ref"] == {"uri": f"{folder.as_uri()}/"}
    assert issued.body["output_ref"] == {"uri": mock.output_of(issued.job_id).as_uri()}


@pytest.mark.parametrize("via", ReplyVia)
async def test_a_directive_says_how_to_answer(mock: Mock, via: ReplyVia) -> None:
    directive: Directive = directive_of(mock.send(order(reply_via=via), publish=False))
    has_address = (directive.callback_urls is not None, directive.callback_token is not None)
    assert has_address == (via is ReplyVia.HTTP,) * 2


async def test_an_order_that_fits_into_no_directive_is_refused(mock: Mock) -> None:
    with pytest.raises(ContractError) as refused:
        mock.send(order(payload={"text": "x" * 192 * 1024}))
    assert refused.value.code is ErrorCode.TOO_LARGE


async def test_a_directive_that_nobody_takes_in_time_expires(mock: Mock) -> None:
    moment = timedelta(milliseconds=1)
    issued = mock.send(order(ack_timeout=moment, lease=moment))
    await recorded(mock, issued.job_id, What.EXPIRED)
    assert mock.is_settled(issued)
    assert mock.waiting() == 0


async def test_what_is_kept_outlives_its_lock_and_comes_again_when_it_is_let_go(
    tmp_path: Path,
) -> None:
    lock = 0.5
    while not await is_kept_in_time(tmp_path, lock):
        lock *= 2  # the machine is busy


async def is_kept_in_time(folder: Path, lock: float) -> bool:
    settings = MockSettings(SERVICE, folder, lock_seconds=lock)
    async with Mock(settings) as mock, BusService(mock) as service:
        kept = mock.send(order())
        await service.take()
        mock.keep_messages()
        if mock.recording.of(kept.job_id, What.LOCK_LOST):
            return False
        other = mock.send(order())
        await service.take()
        await recorded(mock, other.job_id, What.LOCK_LOST)
        assert mock.recording.of(kept.job_id, What.LOCK_LOST) == []
        mock.let_messages_go()
        while (await service.take()).message_id != kept.message_id:
            assert mock.recording.of(kept.job_id, What.LOCK_LOST) == []
        return True


async def test_what_is_purged_was_delivered_to_nobody(mock: Mock) -> None:
    issued = mock.send(order(), copies=2)
    assert mock.waiting() == 2
    mock.purge()
    assert mock.waiting() == 0
    assert mock.recording.of(issued.job_id, What.DELIVERED) == []


@pytest.mark.parametrize("tenant", ["../up", "a/b", "50%", ".."])
async def test_whatever_its_name_a_tenant_has_a_folder_of_its_own(mock: Mock, tenant: str) -> None:
    issued = mock.send(order(tenant_id=tenant), publish=False)
    place = mock.workspace_of(issued.job_id, tenant)
    assert place.parent.parent == mock.settings.workspace / "lucius"
    assert issued.body["workspace_ref"]["uri"] == f"{place.as_uri()}/"
    assert issued.body["workspace_ref"]["uri"].split("/")[-3] == tenant_folder(tenant)
