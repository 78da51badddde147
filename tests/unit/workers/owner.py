"""A program that owns a pool and hangs, to be ended by a test: `python owner.py FOLDER FIFO`."""

import asyncio
import pickle
import signal
import sys

from daws.wire.worker import Execute, ReportType
from daws.workers.pool import WorkerPool


async def own(folder: str, fifo: str) -> None:
    def report(batch: list[ReportType]) -> None:
        pass

    pool = WorkerPool(3, folder, asyncio.get_running_loop(), report)
    await pool.start()
    try:
        pool.learn(0, b"ctests.unit.workers.jobs\nleave_child\n.")
        pool.learn(1, b"ctests.unit.workers.jobs\nhang\n.")
        pool.learn(2, b"ctests.unit.workers.jobs\nspin\n.")
        for slot in (0, 1):
            pool.execute(slot, Execute(slot, 0, pickle.dumps(((bool(slot),), {}))))
            pool.execute(slot, Execute(10 + slot, 1 + slot, pickle.dumps(((f"{fifo}{slot}",), {}))))
        pool.flush()
        await asyncio.Event().wait()
    finally:
        await pool.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests in the background ignores it
    try:
        asyncio.run(own(*sys.argv[1:3]))
    except KeyboardInterrupt:
        sys.exit(130)
