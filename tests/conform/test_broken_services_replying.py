import pytest

from tests.conform.broken_services.flaws import Flaw
from tests.conform.broken_services.flaws.replying import FLAWS
from tests.conform.broken_services.trial import check_found

pytestmark = pytest.mark.check


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: f"{flaw.rule_id}-{flaw.name}")
async def test_flaw_is_found(flaw: Flaw) -> None:
    await check_found(flaw)
