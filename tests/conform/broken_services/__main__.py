"""The service under test. The environment says in which way it is broken, if in any."""

import asyncio
import os
import sys

from tests.conform.broken_services.flaws import service_type
from tests.conform.broken_services.program import Settings


async def main() -> int:
    service = service_type(os.environ.get("FLAW", ""))
    return await service(Settings.from_environment()).main()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
