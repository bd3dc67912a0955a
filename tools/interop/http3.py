"""Talks HTTP/3 to the program with aioquic: `http3.py PROGRAM`.

Requests one after the other and many at a time, uploads and downloads, clients that reset, and a soft
stop during a download.
"""

import asyncio
import http.server
import os
import random
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamReset

DEADLINE = 60
BIG = bytes(range(256)) * 12_000

CONFIG = """
global
 nbthread 2
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 5s
frontend tcp
 bind 127.0.0.1:{port} ssl crt {crt}
 http-response set-header alt-svc 'h3=":{port}"; ma=900'
 http-request return status 204
frontend web
 bind quic4@127.0.0.1:{port} ssl crt {crt} alpn h3
 http-request return status 200 content-type text/plain lf-string "%HV %[ssl_fc_alpn] %[ssl_fc_sni] %[req.hdr(cookie)]" if {{ path / }}
 http-request deny deny_status 429 if {{ path /denied }}
 default_backend origin
backend origin
 server s 127.0.0.1:{origin}
"""


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers with what was uploaded, or with BIG."""

    protocol_version = "HTTP/1.1"

    def body(self):
        if "transfer-encoding" not in self.headers:
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self):
        body = self.body()
        content = BIG if self.path == "/big" else body or self.path.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class OriginServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *_):
        """Connections of requests that were given up end in the middle."""


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.waiting = {}

    def quic_event_received(self, event):
        if isinstance(event, StreamReset) and event.stream_id in self.waiting:
            self.waiting[event.stream_id]["done"].set_exception(ConnectionResetError(event.error_code))
        for got in self.http.handle_event(event):
            answer = self.waiting.get(getattr(got, "stream_id", None))
            if answer is None:
                continue
            if isinstance(got, HeadersReceived):
                answer["fields"] += got.headers
            if isinstance(got, DataReceived):
                answer["body"] += got.data
            if got.stream_ended and not answer["done"].done():
                answer["done"].set_result(answer)

    def begin(self, path, body=None, method=None, fields=()):
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        # A test that gives up does not look at its end.
        done.add_done_callback(lambda ended: ended.exception())
        self.waiting[stream] = {"fields": [], "body": b"", "done": done}
        method = method or ("GET" if body is None else "POST")
        head = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path), *fields]
        head = [(name.encode(), value.encode()) for name, value in head]
        self.http.send_headers(stream, head, end_stream=body is None)
        if body is not None:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        return stream, done

    async def ask(self, *args, **kwargs):
        _, done = self.begin(*args, **kwargs)
        answer = await asyncio.wait_for(done, DEADLINE)
        return dict(answer["fields"])[b":status"], answer["body"]


def client(port):
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost"
    )
    return connect("127.0.0.1", port, configuration=configuration, create_protocol=Client)


async def requests(port):
    async with client(port) as one:
        answer = await one.ask("/", fields=[("cookie", "a=1"), ("cookie", "b=2")])
        assert answer == (b"200", b"HTTP/3.0 h3 localhost a=1; b=2"), answer
        assert (await one.ask("/denied"))[0] == b"429"
        answers = await asyncio.gather(*[one.ask(f"/{number}") for number in range(60)])
        assert answers == [(b"200", f"/{number}".encode()) for number in range(60)]
        upload = os.urandom(700_000)
        answers = await asyncio.gather(
            *[one.ask("/big") for _ in range(3)], *[one.ask("/up", body=upload) for _ in range(3)]
        )
        assert answers == [(b"200", BIG)] * 3 + [(b"200", upload)] * 3


async def many_clients(port):
    async def some():
        async with client(port) as one:
            for _ in range(10):
                assert (await one.ask("/"))[0] == b"200"

    await asyncio.gather(*[some() for _ in range(30)])


async def clients_that_give_up(port):
    async with client(port) as one:
        for number in range(200):
            stream, _ = one.begin("/big")
            if number % 3:
                one._quic.reset_stream(stream, 0x10C)
            one._quic.stop_stream(stream, 0x10C)
            one.transmit()
            if number % 10 == 0:
                await asyncio.sleep(0.01)
        assert (await one.ask("/"))[0] == b"200"


def garbage(port):
    """Packets that are none, from a socket that reads no answers."""
    rng = random.Random(1)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(5_000):
        packet = bytearray(rng.randbytes(1200))
        if number % 2:
            packet[:6] = bytes([0xC0 | rng.randrange(16), 0, 0, 0, 1, 8])
            packet[14] = 8
        sender.sendto(packet, ("127.0.0.1", port))


async def soft_stop(port, program):
    async with client(port) as idle, client(port) as busy:
        await idle.ask("/")
        _, done = busy.begin("/big")
        while not busy.waiting[0]["body"]:
            await asyncio.sleep(0.001)
        program.send_signal(signal.SIGUSR1)
        answer = await asyncio.wait_for(done, DEADLINE)
        assert answer["body"] == BIG


def free_port():
    with socket.socket() as tcp:
        tcp.bind(("127.0.0.1", 0))
        return tcp.getsockname()[1]


def main():
    origin = OriginServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        crt, config = f"{folder}/crt", f"{folder}/cfg"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
            + ["-addext", "subjectAltName=DNS:localhost", "-keyout", f"{crt}.key", "-out", crt],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, crt=crt, origin=origin.server_address[1]))
        program = subprocess.Popen([sys.argv[1], "-db", "-f", config], stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + DEADLINE
            while time.monotonic() < end:
                with socket.socket() as tcp:
                    if tcp.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            asyncio.run(requests(port))
            asyncio.run(many_clients(port))
            asyncio.run(clients_that_give_up(port))
            garbage(port)
            asyncio.run(requests(port))
            asyncio.run(soft_stop(port, program))
            assert program.wait(DEADLINE) == 0
        finally:
            program.kill()
    print("interop: HTTP/3 with aioquic: requests, uploads, downloads, resets and a soft stop: ok")


main()
