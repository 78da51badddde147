"""A real Jupyter kernel for tests: cells are run one after the other, and may be interrupted."""

from pathlib import Path
from queue import Empty
from types import TracebackType
from typing import Any

from jupyter_client.manager import KernelManager

DEADLINE_S = 60


class Cell:
    """What became of a cell: what it printed, what its last line was worth, and what it raised."""

    def __init__(self) -> None:
        self.out = ""
        self.err = ""
        self.shown: list[dict[str, str]] = []
        self.value: dict[str, str] = {}
        self.error = ""
        self.trace = ""

    @property
    def text(self) -> str:
        return self.value.get("text/plain", "")


class Kernel:
    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE_S)

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel()

    def start(self, code: str) -> str:
        return str(self.client.execute(code))

    def finish(self, number: str, until: str = "") -> Cell:
        """All that a cell says until it ends, or until it has printed something."""
        cell = Cell()
        while True:
            try:
                message: dict[str, Any] = self.client.get_iopub_msg(timeout=DEADLINE_S)
            except Empty:
                raise AssertionError(f"the cell has not ended: {cell.out}{cell.err}") from None
            if message["parent_header"].get("msg_id") != number:
                continue
            content = message["content"]
            match message["msg_type"]:
                case "stream" if content["name"] == "stdout":
                    cell.out += content["text"]
                case "stream":
                    cell.err += content["text"]
                case "execute_result":
                    cell.value = content["data"]
                case "display_data" | "update_display_data":
                    cell.shown.append(content["data"])
                case "error":
                    cell.error = content["ename"]
                    cell.trace = "\n".join(content["traceback"])
                case "status" if content["execution_state"] == "idle":
                    return cell
            if until and until in cell.out:
                return cell

    def run(self, code: str) -> Cell:
        cell = self.finish(self.start(code))
        assert not cell.error, cell.trace
        return cell

    def interrupt(self, code: str, until: str) -> Cell:
        """Run a cell, interrupt the kernel when it has printed something, and wait for the cell's end."""
        number = self.start(code)
        self.finish(number, until)
        self.manager.interrupt_kernel()
        return self.finish(number)
