"""An HTTP/3 client and an origin for the scripts of this folder, and how to run the program."""

import asyncio
import base64
import contextlib
import hashlib
import http.server
import signal
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

DEADLINE = 60
BIG = bytes(range(256)) * 12_000
PART = BIG[:300_000]
# `/slow` has this many parts, with a pause before each.
SLOW_PARTS = 24
SLOW_PAUSE = 0.25


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers with what was uploaded, or with BIG, or PART of it."""

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
        if self.headers.get("upgrade"):
            return self.echo()
        body = self.body()
        if self.path == "/slow":
            return self.slow()
        content = {"/big": BIG, "/part": PART}.get(self.path) or body or self.path.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def echo(self):
        """A WebSocket, as far as a proxy sees it: what comes goes back."""
        self.close_connection = True
        self.send_response(101)
        self.send_header("connection", "upgrade")
        self.send_header("upgrade", self.headers["upgrade"])
        # A proxy checks the key itself, or leaves that to its client (RFC 6455 section 4.2.2).
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_header("sec-websocket-accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while part := self.connection.recv(65536):
            self.connection.sendall(part)

    def slow(self):
        self.send_response(200)
        self.send_header("content-length", str(4 * SLOW_PARTS))
        self.end_headers()
        for number in range(SLOW_PARTS):
            time.sleep(SLOW_PAUSE)
            self.wfile.write(b"%4d" % number)
            self.wfile.flush()

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
        self.is_over = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.is_over.set_result(event)
            for answer in self.waiting.values():
                if not answer["done"].done():
                    answer["done"].set_exception(ConnectionResetError(event.error_code))
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

    def begin(self, path, body=None, method=None, fields=(), ends=True):
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        # A test that gives up does not look at its end.
        done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        self.waiting[stream] = {"fields": [], "body": b"", "done": done}
        method = method or ("GET" if body is None else "POST")
        head = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path), *fields]
        head = [(name.encode(), value.encode()) for name, value in head]
        self.http.send_headers(stream, head, end_stream=body is None)
        if body is not None:
            self.http.send_data(stream, body, end_stream=ends)
        self.transmit()
        return stream, done

    def begin_socket(self, path):
        """A WebSocket (RFC 9220). What comes is in the body of the answer."""
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        answer = self.waiting[stream] = {"fields": [], "body": b"", "done": done}
        head = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https")]
        head += [(":authority", "localhost"), (":path", path), ("sec-websocket-version", "13")]
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in head])
        self.transmit()
        return stream, answer

    async def ask(self, *args, **kwargs):
        _, done = self.begin(*args, **kwargs)
        answer = await asyncio.wait_for(done, DEADLINE)
        return dict(answer["fields"])[b":status"], answer["body"]


def configuration():
    return QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost")


def client(port, **options):
    return connect("127.0.0.1", port, configuration=configuration(), create_protocol=Client, **options)


def free_port():
    with socket.socket() as tcp:
        tcp.bind(("127.0.0.1", 0))
        return tcp.getsockname()[1]


def origin():
    """Starts the origin and returns its port."""
    server = OriginServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


@contextlib.contextmanager
def certificate():
    """The path of a certificate for localhost, with its key, in a folder for this test."""
    with tempfile.TemporaryDirectory() as folder:
        crt = f"{folder}/crt"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
            + ["-addext", "subjectAltName=DNS:localhost", "-keyout", f"{crt}.key", "-out", crt],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        yield crt


@contextlib.contextmanager
def running(command, port, log=subprocess.DEVNULL):
    """A process that listens on a TCP port."""
    program = subprocess.Popen(command, stderr=log)
    try:
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and program.poll() is None:
            with socket.socket() as tcp:
                if tcp.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield program
    finally:
        if program.poll() is None:
            program.send_signal(signal.SIGTERM)
            try:
                program.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                program.kill()
