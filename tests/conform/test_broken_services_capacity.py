import pytest

from tests.conform.broken_services.flaws import Flaw
from tests.conform.broken_services.flaws.capacity import FLAWS
from tests.conform.broken_services.trial import check_found, each

pytestmark = pytest.mark.check


@each(FLAWS)
async def test_flaw_is_found(flaw: Flaw) -> None:
    await check_found(flaw)
