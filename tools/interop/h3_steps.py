"""An HTTP/3 client whose datagrams go when a test says so."""

import socket
import ssl
import time

from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted
from h3_client import DEADLINE


class Memory:
    """What a client keeps of its connections."""

    def __init__(self):
        self.ticket, self.token = None, b""

    def keep_ticket(self, ticket):
        self.ticket = ticket

    def keep_token(self, token):
        self.token = token


class Client:
    """A connection whose datagrams go when a test says so; the end of its context closes it."""

    def __init__(self, port, memory=None, token=True, **options):
        memory = memory or Memory()
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost", **options
        )
        configuration.session_ticket = memory.ticket
        configuration.token = memory.token if token else b""
        self.peer = ("127.0.0.1", port)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(self.peer)
        self.quic = QuicConnection(
            configuration=configuration,
            session_ticket_handler=memory.keep_ticket,
            token_handler=memory.keep_token,
        )
        self.quic.connect(self.peer, time.monotonic())
        self.http = H3Connection(self.quic)
        self.answers, self.ended = {}, []
        self.completed, self.terminated = None, None
        self.sent, self.received = [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.quic.close()
        self.send()
        self.socket.close()

    def ask(self, path):
        stream = self.quic.get_next_available_stream_id()
        head = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in head], end_stream=True)
        self.answers[stream] = b""
        return stream

    def send(self):
        for datagram, _ in self.quic.datagrams_to_send(time.monotonic()):
            self.sent.append(datagram)
            self.socket.send(datagram)

    def receive(self, seconds):
        """Reads a datagram, if one comes within this time."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            datagram = self.socket.recv(65536)
        except (TimeoutError, ConnectionRefusedError):
            return
        self.received += len(datagram)
        self.quic.receive_datagram(datagram, self.peer, time.monotonic())
        while event := self.quic.next_event():
            if isinstance(event, HandshakeCompleted):
                self.completed = event
            if isinstance(event, ConnectionTerminated):
                self.terminated = event
            for got in self.http.handle_event(event):
                stream = getattr(got, "stream_id", None)
                if isinstance(got, DataReceived):
                    self.answers[stream] += got.data
                if isinstance(got, (DataReceived, HeadersReceived)) and got.stream_ended:
                    self.ended.append(stream)

    def until(self, done, sends=True):
        """Goes on until `done`. Without `sends`, nothing is sent meanwhile: no acknowledgements either."""
        end = time.monotonic() + DEADLINE
        while not done():
            assert time.monotonic() < end, (self.answers, self.ended, self.completed, self.terminated)
            due = self.quic.get_timer() if sends else None
            if due is not None and due <= time.monotonic():
                self.quic.handle_timer(time.monotonic())
            if sends:
                self.send()
                due = self.quic.get_timer()
            seconds = 1 if due is None else min(due - time.monotonic(), 1)
            self.receive(seconds)

    def answer(self, stream, sends=True):
        self.until(lambda: stream in self.ended, sends)
        return self.answers[stream]
