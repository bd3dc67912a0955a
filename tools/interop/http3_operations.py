"""What operators see and decide of HTTP/3, with aioquic as the client: `http3_operations.py PROGRAM`.

The rules `quic-initial`: each action, by the address of the client.
"""

import asyncio
import contextlib
import socket
import sys

from aioquic.quic.connection import QuicConnection

from h3_client import DEADLINE, Client, certificate, configuration, free_port, origin, running

CONFIG = """
global
 nbthread 2
defaults rules
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 5s
 log 127.0.0.1:{log} len 500 format raw local0
 quic-initial do-log if {{ src 127.0.0.2 127.0.0.3 }}
 quic-initial dgram-drop if {{ src 127.0.0.2 }}
frontend tcp from rules
 bind 127.0.0.1:{port} ssl crt {crt}
 http-request return status 204
frontend web from rules
 bind quic4@127.0.0.1:{port} name h3 ssl crt {crt}
 log-format "%OG %ci %cp %fi %fp %f"
 quic-initial accept if {{ src 127.0.0.3 }}
 quic-initial send-retry if {{ src 127.0.0.4 }}
 quic-initial reject unless {{ src 127.0.0.1 }} {{ dst_port {port} }} {{ dst 127.0.0.1 }}
 http-request return status 200 content-type text/plain string ok if {{ path / }}
 default_backend origin
backend origin from rules
 server s 127.0.0.1:{origin}
"""


@contextlib.asynccontextmanager
async def client_of(address, port):
    """A client with this address of the loopback network, whose handshake has begun."""
    loop = asyncio.get_running_loop()
    connection = QuicConnection(configuration=configuration())
    transport, one = await loop.create_datagram_endpoint(lambda: Client(connection), local_addr=(address, 0))
    one.connect(("127.0.0.1", port))
    try:
        yield one
    finally:
        one.close()
        transport.close()


class Lines(asyncio.DatagramProtocol):
    """The log lines of the program."""

    def __init__(self):
        self.all = asyncio.Queue()

    def datagram_received(self, data, _):
        self.all.put_nowait(data.decode().strip())

    async def next_of(self, first):
        """The next line that begins with this word."""
        while True:
            line = await asyncio.wait_for(self.all.get(), DEADLINE)
            if line.split()[0] == first:
                return line


async def served(one, retries):
    await asyncio.wait_for(one.wait_connected(), DEADLINE)
    assert one._quic._retry_count == retries
    assert await one.ask("/") == (b"200", b"ok")


async def rules(port, lines):
    """Each client meets the rule for its address."""
    async with client_of("127.0.0.1", port) as one:
        await served(one, 0)
    # The rule `accept` precedes the one that would reject.
    async with client_of("127.0.0.3", port) as one:
        await served(one, 0)
        own = one._transport.get_extra_info("sockname")[1]
        found = await lines.next_of("quic-init")
        assert found == f"quic-init 127.0.0.3 {own} 127.0.0.1 {port} web", found
    async with client_of("127.0.0.4", port) as one:
        await served(one, 1)
    async with client_of("127.0.0.5", port) as one:
        ended = await asyncio.wait_for(one.is_over, DEADLINE)
        assert ended.error_code == 2, ended
    async with client_of("127.0.0.2", port) as one:
        received = []
        one.datagram_received = lambda *_: received.append(True)
        own = one._transport.get_extra_info("sockname")[1]
        # It asks again, and gets no answer to that either.
        for _ in range(3):
            found = await lines.next_of("quic-init")
            assert found == f"quic-init 127.0.0.2 {own} 127.0.0.1 {port} web", found
        assert not received


async def talk(port, log):
    loop = asyncio.get_running_loop()
    transport, lines = await loop.create_datagram_endpoint(Lines, sock=log)
    await rules(port, lines)
    transport.close()


def main():
    port = free_port()
    log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    log.bind(("127.0.0.1", 0))
    with certificate() as crt:
        config = f"{crt}.cfg"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, crt=crt, origin=origin(), log=log.getsockname()[1]))
        with running([sys.argv[1], "-db", "-f", config], port):
            asyncio.run(talk(port, log))
    print("interop: HTTP/3 with aioquic: rules for new connections: ok")


main()
