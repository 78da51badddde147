"""`python -m bench.link`: how fast one Python process sends large objects to another, plain and by mutual TLS.

This is where the speed of a link in the simulator's `measured` profile comes from. Needs the `openssl` command.
"""

import multiprocessing
import os
import socket
import ssl
import subprocess
import tempfile
import time
from pathlib import Path

OBJECT_BYTES = 5_000_000
OBJECTS = 200
ROUNDS = 3


def make_certificate(folder: Path) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=bench"
    paths = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command.split(), *paths], check=True, capture_output=True)


def context(folder: Path, server: bool) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.load_verify_locations(folder / "cert.pem")
    made.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return made


def send(port: int, folder: Path | None) -> None:
    link = socket.create_connection(("127.0.0.1", port))
    if folder is not None:
        link = context(folder, server=False).wrap_socket(link)
    some = os.urandom(OBJECT_BYTES)
    for _ in range(OBJECTS):
        link.sendall(some)
    link.recv(1)  # until the other side has all and closes
    link.close()


def receive(folder: Path | None) -> float:
    """Bytes per second, from the first byte to the last."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        sender = multiprocessing.Process(target=send, args=(door.getsockname()[1], folder))
        sender.start()
        link, _ = door.accept()
    if folder is not None:
        link = context(folder, server=True).wrap_socket(link, server_side=True)
    buffer = bytearray(1 << 20)
    total = link.recv_into(buffer)
    began = time.perf_counter()
    while total < OBJECT_BYTES * OBJECTS:
        total += link.recv_into(buffer)
    took_s = time.perf_counter() - began
    link.close()
    sender.join()
    return total / took_s


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_certificate(folder)
        for what, where in (("plain", None), ("mutual TLS 1.3", folder)):
            rates = sorted(receive(where) for _ in range(ROUNDS))
            print(f"{what:15} {rates[0] / 1e6:6,.0f} to {rates[-1] / 1e6:6,.0f} MB/s")


if __name__ == "__main__":
    main()
