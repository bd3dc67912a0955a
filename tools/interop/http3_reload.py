"""Reloads of the program under HTTP/3 with aioquic: `http3_reload.py PROGRAM [RELOADS-IN-PLACE]`.

Connections live on over reloads by another process, one after the other, and over reloads in place.
Clients are told when the process ends at once.
"""

import asyncio
import os
import signal
import socket
import sys
import time

from h3_client import DEADLINE, SLOW_PARTS, certificate, client, free_port, origin, running

RELOADS = 3
# Shorter than the time after which a connection without packets ends.
DEADLINE_OF_IDLE = 15

CONFIG = """
global
 nbthread {threads}
 stats socket {crt}.sock level admin expose-fd listeners
 hard-stop-after 60s
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 5s
frontend tcp
 bind 127.0.0.1:{port} ssl crt {crt}
 http-request return status 204
frontend web
 bind quic4@127.0.0.1:{port} ssl crt {crt} alpn h3
 http-request return status 200 content-type text/plain lf-string "%pid {name}" if {{ path / }}
 default_backend origin
backend origin
 server s 127.0.0.1:{origin}
"""


def command(path, text):
    with socket.socket(socket.AF_UNIX) as cli:
        cli.connect(path)
        cli.sendall(text.encode() + b"\n")
        answer = b""
        while part := cli.recv(65536):
            answer += part
        return answer.decode()


class Files:
    """The configuration, which names itself."""

    def __init__(self, crt, port):
        self.crt, self.port, self.origin = crt, port, origin()
        self.path, self.socket = f"{crt}.cfg", f"{crt}.sock"

    def write(self, name, threads=2, without=None):
        text = CONFIG.format(crt=self.crt, port=self.port, origin=self.origin, name=name, threads=threads)
        if without:
            text = "\n".join(line for line in text.splitlines() if without not in line) + "\n"
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)


async def serves(port, name):
    """Waits until new clients get a configuration. Returns the number of its process."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        try:
            async with client(port) as one:
                status, body = await one.ask("/")
                pid, found = body.decode().split()
                if status == b"200" and found == name:
                    return pid
        except ConnectionError:
            pass
        await asyncio.sleep(0.05)
    raise AssertionError(f"nobody serves {name}")


async def busy(one):
    """A long download and an upload in parts, which last over reloads."""
    _, down = one.begin("/slow")
    stream, up = one.begin("/up", body=b"", method="POST", ends=False)
    sent = b""
    for _ in range(20):
        part = os.urandom(20_000)
        sent += part
        one.http.send_data(stream, part, end_stream=False)
        one.transmit()
        await asyncio.sleep(0.2)
    one.http.send_data(stream, b"", end_stream=True)
    one.transmit()
    answer = await asyncio.wait_for(up, DEADLINE)
    assert answer["body"] == sent, (len(answer["body"]), len(sent))
    answer = await asyncio.wait_for(down, DEADLINE)
    assert len(answer["body"]) == 4 * SLOW_PARTS


async def socket_of(one, stop):
    """A WebSocket whose messages go and come back until `stop`. Returns their number."""
    stream, answer = one.begin_socket("/chat")
    sent, messages = b"", 0
    while not stop.is_set():
        part = os.urandom(2_000)
        sent, messages = sent + part, messages + 1
        one.http.send_data(stream, part, end_stream=False)
        one.transmit()
        end = time.monotonic() + DEADLINE
        while len(answer["body"]) < len(sent):
            assert time.monotonic() < end and not one.is_over.done(), (len(answer["body"]), len(sent))
            await asyncio.sleep(0.005)
        assert answer["body"] == sent
        await asyncio.sleep(0.05)
    one.http.send_data(stream, b"", end_stream=True)
    one.transmit()
    assert dict(answer["fields"])[b":status"] == b"200", answer["fields"]
    return messages


async def by_processes(files, reload):
    """Several clients are busy while one process follows the other, with other numbers of workers."""
    pids = {await serves(files.port, "0")}
    async with client(files.port) as idle, client(files.port) as one, client(files.port) as two:
        await idle.ask("/")
        work = [asyncio.create_task(busy(each)) for each in (one, two)]
        stop = asyncio.Event()
        sockets = [asyncio.create_task(socket_of(each, stop)) for each in (one, two)]
        await asyncio.sleep(0.5)
        for number in range(1, RELOADS + 1):
            files.write(str(number), threads=1 + number % 3)
            reload()
            pids.add(await serves(files.port, str(number)))
        assert len(pids) == RELOADS + 1, pids
        stop.set()
        assert min(await asyncio.gather(*sockets)) > RELOADS
        # It was told to go, after the time that idle clients have.
        await asyncio.wait_for(idle.is_over, DEADLINE_OF_IDLE)
        await asyncio.gather(*work)


async def repeats(one, stop):
    """Downloads and uploads, one after the other, until `stop`."""
    while not stop.is_set():
        await busy(one)


async def in_place(files, reloads):
    files.write("0")
    async with client(files.port) as one:
        assert (await one.ask("/"))[1].endswith(b"0")
        stop = asyncio.Event()
        work = asyncio.create_task(repeats(one, stop))
        chat = asyncio.create_task(socket_of(one, stop))
        for number in range(1, reloads + 1):
            files.write(str(number))
            answer = await asyncio.to_thread(command, files.socket, "reload")
            assert "is in use" in answer, answer
            assert (await one.ask("/"))[1].endswith(str(number).encode())
        stop.set()
        await work
        assert await chat > 0
        # The line goes, and its clients are told; then it comes again.
        files.write("0", without="bind quic4@")
        assert "is in use" in await asyncio.to_thread(command, files.socket, "reload")
        await asyncio.wait_for(one.is_over, DEADLINE_OF_IDLE)
    files.write("1")
    assert "is in use" in await asyncio.to_thread(command, files.socket, "reload")
    await serves(files.port, "1")
    info = await asyncio.to_thread(command, files.socket, "show info")
    assert "Panics: 0" in info, info


async def at_once(port, program):
    async with client(port) as one:
        await one.ask("/")
        program.send_signal(signal.SIGTERM)
        await asyncio.wait_for(one.is_over, DEADLINE_OF_IDLE)


def main():
    program = sys.argv[1]
    port = free_port()
    with certificate() as crt:
        files = Files(crt, port)
        files.write("0")
        with running([program, "-W", "-db", "-f", files.path], port) as master:
            asyncio.run(by_processes(files, lambda: master.send_signal(signal.SIGUSR2)))
            asyncio.run(at_once(port, master))
    with certificate() as crt:
        files = Files(crt, port)
        files.write("0")
        with running([program, "-db", "-f", files.path], port) as first:
            asyncio.run(in_place(files, int((sys.argv[2:] or [RELOADS])[0])))
            files.write("0")
            command(files.socket, "reload")
            followers, last = [], [first]

            def follow():
                others = ["-x", files.socket, "-sf", str(last[0].pid)]
                following = running([program, "-db", "-f", files.path, *others], port)
                followers.append(following)
                last[0] = following.__enter__()

            try:
                asyncio.run(by_processes(files, follow))
                asyncio.run(at_once(port, last[0]))
            finally:
                for following in followers:
                    following.__exit__(None, None, None)
    print("interop: HTTP/3 with aioquic over reloads by processes, in place, and at the end: ok")


main()
