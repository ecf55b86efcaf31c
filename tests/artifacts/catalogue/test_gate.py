"""Many at once, or one alone."""

import asyncio

import pytest

from lucius_artifacts.catalogue.postgres.gate import Gate


class Crowd:
    """Who has entered, until they are let out."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.inside: list[str] = []
        self._out: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def send(self, name: str, *, alone: bool = False) -> None:
        self._out[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._stay(name, alone))
        await _settled()

    async def let_out(self, name: str) -> None:
        self._out[name].set()
        await self._tasks[name]
        await _settled()

    async def call_back(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await _settled()

    async def _stay(self, name: str, alone: bool) -> None:
        async with self.gate.alone() if alone else self.gate.among_others():
            self.inside.append(name)
            try:
                await self._out[name].wait()
            finally:
                self.inside.remove(name)


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_who_is_alone_waits_for_all_and_lets_nobody_in() -> None:
    crowd = Crowd()
    for name in ("a", "b"):
        await crowd.send(name)
    await crowd.send("hermit", alone=True)
    await crowd.send("c")
    assert crowd.inside == ["a", "b"]
    await crowd.let_out("a")
    assert crowd.inside == ["b"]
    await crowd.let_out("b")
    assert crowd.inside == ["hermit"]
    await crowd.let_out("hermit")
    assert crowd.inside == ["c"]
    await crowd.let_out("c")


@pytest.mark.parametrize("inside", [True, False])
async def test_one_that_is_called_back_leaves_the_gate_as_it_was(inside: bool) -> None:
    crowd = Crowd()
    await crowd.send("a")
    await crowd.send("hermit", alone=True)
    await crowd.send("b")
    await crowd.call_back("a" if inside else "hermit")
    assert crowd.inside == (["hermit"] if inside else ["a", "b"])
    await crowd.call_back("hermit")
    await crowd.send("last", alone=True)
    for name in list(crowd.inside):
        await crowd.call_back(name)
    assert crowd.inside == ["last"]
    await crowd.let_out("last")
