"""What an attack costs a proxy: its CPU time and memory, and what a good client beside the attack gets."""

import asyncio
import contextlib
import dataclasses
import multiprocessing
import os
import re
import socket
import subprocess
import time

from h3_client import DEADLINE, Origin, OriginServer, client, free_port, running

# How many ports are tried.
PORTS = 5

# Of the good client. Its times are in seconds.
REQUESTS_OF_CONNECTION = 5
PAUSE = 0.02
CONNECTION_DEADLINE = 5

CONFIG = """
global
 nbthread 1
 maxconn 8000
 stats socket {folder}/{port}.sock level admin
 tune.quic.fe.max-idle-timeout {timeout}s
 {settings}
defaults
 mode http
 timeout client {timeout}s
 timeout client-hs {timeout}s
 timeout server {timeout}s
 timeout connect 2s
frontend tcp
 bind 127.0.0.1:{port}
 http-request return status 204
frontend web
 bind quic4@127.0.0.1:{port} ssl crt {folder}/crt alpn h3 {options}
 http-request return status 200 content-type text/plain string good if {{ path /good }}
 default_backend origin
backend origin
 server s 127.0.0.1:{origin}
"""


@dataclasses.dataclass
class Good:
    """What the good client got."""

    answered: int = 0
    failed: int = 0
    worst: float = 0.0
    is_served_after: bool = False


@dataclasses.dataclass
class Cost:
    """What an attack has cost."""

    cpu: float
    seconds: float
    peak_kib: int
    good: Good
    after_kib: int = 0
    left: int = 0


def certificate(folder):
    """Makes a certificate with a key of an elliptic curve: signing with RSA would cost more than most attacks."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command = ["openssl", "req", "-x509", *key, "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-keyout", f"{folder}/crt.key", "-out", f"{folder}/crt"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


class Proxy:
    """A process of a proxy that is attacked."""

    def __init__(self, program, folder, origin, timeout, settings="", options=""):
        self.program, self.folder = program, folder
        self.values = {"origin": origin, "timeout": timeout, "settings": settings, "options": options}

    def __enter__(self):
        # A port may be used by a socket of UDP.
        for _ in range(PORTS):
            self.port = free_port()
            config = f"{self.folder}/{self.port}.cfg"
            with open(config, "w", encoding="utf-8") as file:
                file.write(CONFIG.format(folder=self.folder, port=self.port, **self.values))
            self.context = running([self.program, "-db", "-f", config], self.port)
            self.process = self.context.__enter__()
            if self.process.poll() is None:
                self.pid = self.process.pid
                return self
        raise AssertionError("the proxy does not start")

    def __exit__(self, *ends):
        self.context.__exit__(*ends)

    def cpu(self):
        """Seconds on a CPU so far."""
        spent = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{self.pid}/task/{task}/schedstat") as file:
                spent += int(file.read().split()[0])
        return spent / 1e9

    def memory(self, field):
        """`VmRSS`, or `VmHWM`: the largest so far. KiB."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field))

    def forget_peak(self):
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def command(self, text):
        with socket.socket(socket.AF_UNIX) as cli:
            cli.connect(f"{self.folder}/{self.port}.sock")
            cli.sendall(text.encode() + b"\n")
            answer = b""
            while part := cli.recv(65536):
                answer += part
        return answer.decode()

    def connections(self):
        """How many QUIC connections it has."""
        return len(re.findall(r"^(\* )?0x", self.command("show quic all"), re.MULTILINE))


async def _good_client(port, pipe):
    """Asks again and again until it is told to end, and once more then, over a new connection."""
    good = Good()
    while not pipe.poll():
        await _good_connection(port, good, pipe.poll)
    pipe.recv()
    before = good.answered
    await _good_connection(port, good, lambda: good.answered > before)
    good.is_served_after = good.answered > before
    return good


async def _good_connection(port, good, ends):
    """The first request waits for the handshake too."""
    begins = time.monotonic()

    async def requests():
        nonlocal begins
        async with client(port) as one:
            for _ in range(REQUESTS_OF_CONNECTION):
                answer = await one.ask("/good")
                assert answer == (b"200", b"good"), answer
                good.worst = max(good.worst, time.monotonic() - begins)
                good.answered += 1
                if ends():
                    break
                await asyncio.sleep(PAUSE)
                begins = time.monotonic()

    try:
        await asyncio.wait_for(requests(), CONNECTION_DEADLINE)
    except (ConnectionError, asyncio.TimeoutError):
        good.failed += 1
        good.worst = max(good.worst, time.monotonic() - begins)


def _serve_good(pipe):
    pipe.send("is here")
    while True:
        pipe.send(asyncio.run(_good_client(pipe.recv(), pipe)))


def _serve_origin(pipe):
    server = OriginServer(("127.0.0.1", 0), Origin)
    pipe.send(server.server_address[1])
    server.serve_forever()


class Helpers:
    """The origin and the good client, in processes of their own."""

    def __init__(self):
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        ports, port = spawn.Pipe()
        self.processes = [
            spawn.Process(target=_serve_good, args=(theirs,), daemon=True),
            spawn.Process(target=_serve_origin, args=(port,), daemon=True),
        ]
        for process in self.processes:
            process.start()
        assert ports.poll(DEADLINE)
        self.origin = ports.recv()
        self.pipe.recv()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
            process.join()

    @contextlib.contextmanager
    def good_client(self, port):
        """A good client meanwhile. Its results are in the list after the end."""
        results = []
        self.pipe.send(port)
        try:
            yield results
        finally:
            self.pipe.send("ends")
            assert self.pipe.poll(DEADLINE)
            results.append(self.pipe.recv())


def measured(helpers, proxy, attack):
    """Runs an attack on a proxy, beside a good client. Returns what it has cost, and the memory before it, KiB."""
    proxy.forget_peak()
    memory, cpu, begins = proxy.memory("VmRSS"), proxy.cpu(), time.monotonic()
    with helpers.good_client(proxy.port) as good:
        attack()
    peak = proxy.memory("VmHWM") - memory
    cost = Cost(proxy.cpu() - cpu, time.monotonic() - begins, peak, good[0])
    return cost, memory
