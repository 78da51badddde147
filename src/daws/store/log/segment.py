"""One file of the log that grows. Bytes that could not be saved are kept, and written again from where the file is
safe."""

import os

from daws.store.log.folder import Folder, opening
from daws.store.log.frames import frame
from daws.store.log.logged import StoreSettings


class Segment:
    def __init__(self, folder: Folder, number: int, settings: StoreSettings, durable: bool = True) -> None:
        """Make a new file. It gets its name when its beginning is safe."""
        self.path = folder.log(number)
        self.safe_bytes = 0
        self._unsafe = [opening(settings)]
        part = folder.unfinished(self.path)
        self._fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self.save(durable)
            os.replace(part, self.path)
            if durable:
                folder.sync()
        except OSError:
            os.close(self._fd)
            part.unlink(missing_ok=True)  # the log before it is still the last one
            raise

    def add(self, payload: bytes) -> None:
        self._unsafe.append(frame(payload, self.safe_bytes))

    def save(self, durable: bool) -> None:
        """Write all added payloads. Raises OSError if that fails, and may then be called again.

        Bytes behind `safe_bytes` in the file were never acknowledged, and are overwritten.
        """
        self._unsafe = [b"".join(self._unsafe)]
        unsafe = memoryview(self._unsafe[0])
        done = 0
        while done < len(unsafe):
            done += os.pwrite(self._fd, unsafe[done:], self.safe_bytes + done)
        if done and durable:
            os.fdatasync(self._fd)
        self.safe_bytes += done
        self._unsafe.clear()

    def seal(self, durable: bool) -> None:
        """Mark the end: no more calls will follow, and all are safe. An empty frame says so to a reader that finds
        damage before it."""
        self.save(durable)
        self.add(b"")
        self.save(durable)

    def close(self) -> None:
        os.close(self._fd)
