import pytest

from contract_tests.runner import run
from contract_tests.verdicts import Verdict
from tests.conform.broken_services.flaws import Flaw
from tests.conform.broken_services.flaws.repeating import FLAWS
from tests.conform.broken_services.in_process import PATIENCE
from tests.conform.broken_services.trial import check_found, contract_of, each


@each(FLAWS)
async def test_flaw_is_found(flaw: Flaw) -> None:
    await check_found(flaw)


@pytest.mark.check
async def test_the_message_of_a_frozen_service_does_not_come_again_before_it_is_judged() -> None:
    """Were it taken over, the late work would be fenced off, and the flaw now and then not seen."""
    flaw = next(flaw for flaw in FLAWS if flaw.name == "reports-after-the-lease")
    report = await run(contract_of(flaw), only=flaw.only, patience=PATIENCE)
    (failure,) = report.of(Verdict.FAIL)
    texts = [moment.text for moment in failure.timeline]
    assert any("is frozen" in text for text in texts)
    assert not any(text.startswith("lock lost") for text in texts)
