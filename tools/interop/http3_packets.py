"""QUIC's packets outside of streams, with aioquic: `http3_packets.py PROGRAM`.

Key updates (RFC 9001 section 6), version negotiation (RFC 9000 section 6), stateless resets (RFC 9000
section 10.3), and peers that draw out the end of their connections (RFC 9000 section 10.2).
"""

import os
import signal
import socket
import sys
import time

from aioquic.buffer import Buffer
from aioquic.quic import connection
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import Epoch
from h3_client import BIG, DEADLINE, certificate, free_port, origin, running
from h3_steps import Client

UNKNOWN_VERSION = 0x1A2A3A4A
RESET_TOKEN = 16
TLS_PLACES = 8

CONFIG = """
global
 nbthread 2
 {secret}
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 5s
frontend tcp
 bind 127.0.0.1:{port} ssl crt {crt}
 http-request return status 204
frontend web
 bind quic4@127.0.0.1:{port} ssl crt {crt}
 default_backend origin
backend origin
 server s 127.0.0.1:{origin}
"""


def key_updates(port):
    """The client changes its keys between requests and during downloads; the server's packets follow."""
    with Client(port) as one:
        assert one.answer(one.ask("/first")) == b"/first"
        keys = one.quic._cryptos[Epoch.ONE_RTT]
        for number in range(6):
            before = keys.key_phase
            stream = one.ask("/big" if number % 2 else f"/{number}")
            if number % 2:
                one.until(lambda: one.answers[stream])
            one.quic.request_key_update()
            wanted = BIG if number % 2 else f"/{number}".encode()
            assert one.answer(stream) == wanted
            # An answer to what was sent with the new keys.
            assert one.answer(one.ask("/after")) == b"/after"
            assert keys.key_phase != before
        assert one.terminated is None


def version_negotiation(port):
    destination, source = os.urandom(8), os.urandom(5)
    packet = Buffer(capacity=1200)
    packet.push_uint8(0xC0)
    packet.push_uint32(UNKNOWN_VERSION)
    for connection_id in (destination, source):
        packet.push_uint8(len(connection_id))
        packet.push_bytes(connection_id)
    packet = packet.data
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("127.0.0.1", port))
        one.settimeout(DEADLINE)
        # The first one is shorter than a client may send: it gets no answer.
        one.send(packet.ljust(1199, b"\0"))
        one.send(packet.ljust(1200, b"\0"))
        answer = one.recv(65536)
        assert answer[0] & 0x80 and answer[1:5] == bytes(4), answer
        assert answer[5:20] == bytes([5]) + source + bytes([8]) + destination, answer
        versions = {int.from_bytes(answer[at : at + 4], "big") for at in range(20, len(answer), 4)}
        # Reserved versions look like 0x?a?a?a?a (RFC 9000 section 15).
        spoken = {version for version in versions if version & 0x0F0F0F0F != 0x0A0A0A0A}
        assert spoken == {1} and UNKNOWN_VERSION not in versions, versions
        one.settimeout(0.05)
        try:
            raise AssertionError(f"more than one answer: {one.recv(65536)}")
        except TimeoutError:
            pass
    # A client that prefers a later version.
    versions = [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1]
    with Client(port, original_version=versions[0], supported_versions=versions) as one:
        assert one.answer(one.ask("/")) == b"/"
        assert one.quic._version == versions[1]


def stateless_reset(command, port):
    """After a crash, the next process resets a connection that it does not know."""
    client = Client(port)
    with running(command, port) as program:
        assert client.answer(client.ask("/")) == b"/"
        program.send_signal(signal.SIGKILL)
        program.wait(DEADLINE)
    with running(command, port):
        client.ask("/lost")
        token = client.quic._peer_cid.stateless_reset_token
        client.send()
        client.socket.settimeout(DEADLINE)
        answer = client.socket.recv(65536)
        while answer[-RESET_TOKEN:] != token:
            # What the first process has sent at its end.
            answer = client.socket.recv(65536)
        # It is shorter than what it answers, and looks like a packet with a short header.
        assert len(answer) < len(client.sent[-1]) and answer[0] & 0xC0 == 0x40
        client.socket.close()
        with Client(port) as other:
            assert other.answer(other.ask("/")) == b"/"


def slow_ends(port):
    """A closed connection does not count as one with TLS, however long its client says to acknowledge."""
    parameters = connection.QuicTransportParameters

    def slow(**fields):
        return parameters(**(fields | {"max_ack_delay": 16383}))

    connection.QuicTransportParameters = slow
    # Each end takes three times the delay.
    ends = time.monotonic() + DEADLINE
    try:
        for _ in range(4 * TLS_PLACES):
            with Client(port) as one:
                assert one.answer(one.ask("/")) == b"/"
                assert time.monotonic() < ends, "it waits for clients that have gone"
    finally:
        connection.QuicTransportParameters = parameters


def main():
    port = free_port()
    with certificate() as crt:
        config = f"{crt}.cfg"
        command = [sys.argv[1], "-db", "-f", config]

        def write(secret):
            with open(config, "w", encoding="utf-8") as file:
                file.write(CONFIG.format(port=port, crt=crt, origin=origin(), secret=secret))

        write("")
        with running(command, port):
            key_updates(port)
            version_negotiation(port)
        write("cluster-secret shared")
        stateless_reset(command, port)
        write(f"maxsslconn {TLS_PLACES}")
        with running(command, port):
            slow_ends(port)
    print("interop: HTTP/3 with aioquic: key updates, version negotiation, stateless resets, slow ends: ok")


main()
