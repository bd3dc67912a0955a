"""Clients that break the rules of QUIC and HTTP/3: with chosen frames in 1-RTT packets, and with datagrams from many
addresses. They use parts of aioquic that are not public."""

import collections
import contextlib
import logging
import os
import random
import select
import socket
import ssl
import struct
import time

from aioquic.quic import connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.tls import Epoch
from h3_client import DEADLINE
from h3_steps import Client

QUIC_1 = 1
ID_BYTES = 8
TAG_BYTES = 16
INITIAL_BYTES = 1200
# An encrypted packet has at least so many bytes of frames (RFC 9001 section 5.4.2).
FRAMES_BYTES_MIN = 4
# A sender waits while more than this is queued at the sockets of a port, so that no datagram is lost.
QUEUED_BYTES_MAX = 64 << 10
# A sender looks at the queues, and reads what has come, after so many datagrams.
DATAGRAMS_AHEAD = 16
# How long a client waits for permission to open a stream or to send more.
PATIENCE = 0.5
# Linux's number of the option, which Python 3.11 does not name.
IP_PKTINFO = 8

# These clients are not understood by design.
logging.getLogger("quic").setLevel(logging.CRITICAL)


def number(value):
    """A number with its length (RFC 9000 section 16)."""
    for power, size in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * size - 2):
            return (value | power << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError(value)


def frame(kind, payload, length=None):
    """A frame of HTTP/3. `length`: what it says, where that is not the length of the payload here."""
    return number(kind) + number(len(payload) if length is None else length) + payload


def stream_frame(stream, offset, data, ends=False):
    return number(0x0E | ends) + number(stream) + number(offset) + number(len(data)) + data


def prefixed(first, bits, value):
    """An integer of QPACK (RFC 7541 section 5.1)."""
    largest = (1 << bits) - 1
    if value < largest:
        return bytes([first | value])
    out, value = [first | largest], value - largest
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def literal(name, value):
    """A field line that needs no table."""
    return prefixed(0x20, 3, len(name)) + name + prefixed(0, 7, len(value)) + value


def request(path=b"/good", more=b"", method=b"GET", prefix=b"\0\0"):
    """The field section of a request."""
    method = b"\xd1" if method == b"GET" else literal(b":method", method)
    head = b"\xd7" + literal(b":authority", b"localhost") + literal(b":path", path)
    return prefix + method + head + more


def wait_for_room(port):
    """Waits until most datagrams that were sent to a port have been read."""
    end = time.monotonic() + DEADLINE
    local = f":{port:04X}"
    while time.monotonic() < end:
        queued = 0
        with open("/proc/net/udp", encoding="ascii") as sockets:
            for line in sockets:
                fields = line.split()
                if fields[1].endswith(local):
                    queued += int(fields[4].split(":")[1], 16)
        if queued <= QUEUED_BYTES_MAX:
            return
        time.sleep(0.001)


class Ignored(Exception):
    """Part of a packet is not understood."""


class Deaf:
    """HTTP/3 of a client that opens no streams."""

    def handle_event(self, _):
        return []


class Hostile(Client):
    """A connection whose 1-RTT packets have chosen frames."""

    def __init__(self, port, parameters=None, is_silent=False, **options):
        """`parameters`: transport parameters that differ. `is_silent`: opens no streams on its own."""
        original = connection.QuicTransportParameters
        connection.QuicTransportParameters = lambda **fields: original(**(fields | (parameters or {})))
        try:
            super().__init__(port, **options)
        finally:
            connection.QuicTransportParameters = original
        self.answers = collections.defaultdict(bytes)
        self.port, self.shots, self.next_stream, self.sent_bytes = port, 0, 0, 0
        self.offsets, self.patience = {}, PATIENCE
        if is_silent:
            self.quic._streams.clear()
            self.quic._streams_queue.clear()
            self.http = Deaf()
        self.control, self.encoder = 2, 6

    def establish(self):
        """Completes the handshake, and reads the server's first frames."""
        self.until(lambda: self.quic._handshake_confirmed or self.terminated)
        # It goes on, whatever it does not understand.
        self.quic.close = self.not_understood
        # It resets no streams on its own: it does not know what was sent on them.
        self.quic._write_reset_stream_frame = lambda *_, **__: None
        for _ in range(2):
            self.pump(0.002)

    def not_understood(self, *_, **__):
        """The rest of a packet is ignored."""
        raise Ignored

    def packet(self, frames):
        """A 1-RTT packet."""
        crypto, place = self.quic._cryptos[Epoch.ONE_RTT], self.quic._packet_number
        self.quic._packet_number += 1
        header = bytes([0x41 | crypto.key_phase << 2]) + self.quic._peer_cid.cid + (place & 0xFFFF).to_bytes(2, "big")
        return crypto.encrypt_packet(header, frames.ljust(FRAMES_BYTES_MIN, b"\0"), place)

    def shoot(self, datagram):
        """Sends a datagram as it is."""
        self.shots += 1
        if self.shots % DATAGRAMS_AHEAD == 0:
            wait_for_room(self.port)
            self.pump()
        self.sent_bytes += len(datagram)
        with contextlib.suppress(OSError):
            self.socket.send(datagram)

    def inject(self, frames):
        """Sends a 1-RTT packet with these frames."""
        self.shoot(self.packet(frames))

    def pump(self, seconds=0.0):
        """Reads what has come, and acknowledges it."""
        while select.select([self.socket], [], [], seconds)[0]:
            with contextlib.suppress(Ignored):
                self.receive(0)
        with contextlib.suppress(OSError):
            self.send()

    def wait(self, done):
        """Waits a little, unless it has waited in vain before. Returns whether it has come to be."""
        end = time.monotonic() + self.patience
        while not done() and self.end_code is None and time.monotonic() < end:
            self.pump(0.002)
        if not done():
            self.patience = 0
        return done()

    @property
    def end_code(self):
        """The code with which the server has closed the connection."""
        event = self.quic._close_event
        return event and event.error_code

    def new_stream(self):
        """The number of the next request, once the server permits it; none if it does not."""
        place = self.next_stream // 4
        if not self.wait(lambda: place < self.quic._remote_max_streams_bidi):
            return None
        self.next_stream += 4
        return self.next_stream - 4

    def on(self, stream, data, ends=False):
        """The frame with the next bytes of a stream."""
        if stream not in self.offsets:
            begun = self.quic._streams.get(stream)
            if begun is None and not stream & 2:
                begun = self.quic._get_or_create_stream_for_send(stream)
            self.offsets[stream] = begun.sender._buffer_stop if begun else 0
        offset = self.offsets[stream]
        self.offsets[stream] = offset + len(data)
        return stream_frame(stream, offset, data, ends)

    def room(self, stream):
        """How many more bytes the server takes of a unidirectional stream."""
        known = self.quic._streams.get(stream)
        most = known.max_stream_data_remote if known else self.quic._remote_max_stream_data_uni
        return most - self.offsets.get(stream, known.sender._buffer_stop if known else 0)

    def vanish(self):
        """Leaves without a word."""
        self.socket.close()


class Crowd:
    """Sockets whose datagrams seem to come from all over the loopback network."""

    SOCKETS = 32

    def __init__(self, port):
        self.port, self.shots, self.sent_bytes, self.received_bytes = port, 0, 0, 0
        self.dice = random.Random(1)
        self.sockets, self.readers = [], select.epoll()
        for _ in range(self.SOCKETS):
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.bind(("0.0.0.0", 0))
            one.setblocking(False)
            self.readers.register(one, select.EPOLLIN)
            self.sockets.append(one)
        self.by_number = {one.fileno(): one for one in self.sockets}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.read(0.05)
        for one in self.sockets:
            one.close()
        self.readers.close()

    def shoot(self, datagram):
        self.shots += 1
        if self.shots % DATAGRAMS_AHEAD == 0:
            wait_for_room(self.port)
            self.read()
        source = bytes([127, *(self.dice.randrange(1, 255) for _ in range(3))])
        information = struct.pack("=i4s4s", 0, source, bytes(4))
        one = self.sockets[self.shots % self.SOCKETS]
        one.sendmsg([datagram], [(socket.IPPROTO_IP, IP_PKTINFO, information)], 0, ("127.0.0.1", self.port))
        self.sent_bytes += len(datagram)

    def read(self, seconds=0.0):
        """Counts what the server has sent to these addresses."""
        while ready := self.readers.poll(seconds):
            for place, _ in ready:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        self.received_bytes += len(self.by_number[place].recv(65536))


def hello():
    """The first message of a client's handshake, and the connection id that it names."""
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost"
    )
    quic = QuicConnection(configuration=configuration)
    quic.connect(("127.0.0.1", 1), time.monotonic())
    return bytes(quic._crypto_streams[Epoch.INITIAL].sender._buffer), quic.host_cid


def initial(message, named):
    """A protected Initial packet with a message of `hello`, as a datagram. Its ids and its random bytes are new."""
    destination, source = os.urandom(ID_BYTES), os.urandom(ID_BYTES)
    # The random bytes of the hello are behind its type, its length and its version.
    text = message[:6] + os.urandom(32) + message[38:].replace(named, source)
    payload = b"\x06\x00" + number(len(text)) + text
    header = b"\xc1" + QUIC_1.to_bytes(4, "big")
    header += bytes([ID_BYTES]) + destination + bytes([ID_BYTES]) + source + b"\0"
    # Two bytes of length, two of the packet's number.
    payload = payload.ljust(INITIAL_BYTES - len(header) - 4 - TAG_BYTES, b"\0")
    header += (0x4000 | 2 + len(payload) + TAG_BYTES).to_bytes(2, "big") + b"\0\0"
    keys = CryptoPair()
    keys.setup_initial(cid=destination, is_client=True, version=QUIC_1)
    return keys.encrypt_packet(header, payload, 0)


def initials(count):
    """First datagrams of as many clients."""
    message, named = hello()
    return [initial(message, named) for _ in range(count)]
