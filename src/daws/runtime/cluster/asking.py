"""Single questions to the server of a store, for tools: who is there, which sessions, leave."""

import asyncio
from pathlib import Path
from typing import Any

import uvloop

from daws.model.errors import UnavailableError
from daws.runtime.cluster.access import open_for_tool
from daws.runtime.cluster.reach import Reach
from daws.runtime.cluster.words import FromStore, Refused

ANSWER_S = 10.0


def ask(folder: str | Path, question: Any) -> FromStore:
    """Ask, and return the answer. Raise UnavailableError if there is none, or if the question was refused."""
    return uvloop.run(_ask(Reach(folder, "client"), question))


async def _ask(reach: Reach, question: Any) -> FromStore:
    answered: asyncio.Future[FromStore] = asyncio.get_running_loop().create_future()

    def received(said: list[FromStore]) -> None:
        if said and not answered.done():
            answered.set_result(said[0])

    def lost() -> None:
        if not answered.done():
            answered.set_exception(UnavailableError("the store closed the connection; try again", retry=True))

    try:
        link = await open_for_tool(reach, received, lost)
    except UnavailableError as error:
        if not reach.is_embedded or not error.retry:
            raise
        cure = "; 'daws node' starts it" if isinstance(error.__cause__, ConnectionRefusedError) else ""
        raise UnavailableError(f"the store does not answer: {error}{cure}", True) from error
    link.send(question)
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await answered
    except TimeoutError:
        raise UnavailableError("the store did not answer in time; try again", retry=True) from None
    finally:
        await link.close()
    if isinstance(answer, Refused):
        raise UnavailableError(answer.reason, retry=False)
    return answer
