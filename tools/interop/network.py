"""A network between a client and a server of QUIC: it loses, damages and delays datagrams, and changes the client's
address as a NAT does."""

import asyncio
import contextlib
import random
import socket

LONG_HEADER, FIXED_BIT = 0x80, 0x40
# RFC 9000 section 17.2: types of packets with a long header, of version 1.
INITIAL, ZERO_RTT, HANDSHAKE, RETRY = range(4)
VERSION_NEGOTIATION = "version negotiation"
SHORT = "short"
# Where Linux puts the ECN bits: cmsg of IP_TOS.
ECN_BITS = 3


def packet_types(datagram):
    """The types of the packets of a datagram (RFC 9000 sections 12.2 and 17.2)."""
    types, at = [], 0
    while at < len(datagram):
        if not datagram[at] & LONG_HEADER:
            # Zeros behind the packets fill the datagram.
            return types + [SHORT] * bool(datagram[at] & FIXED_BIT)
        if datagram[at + 1 : at + 5] == bytes(4):
            return types + [VERSION_NEGOTIATION]
        kind = datagram[at] >> 4 & 3
        types.append(kind)
        if kind == RETRY:
            return types
        try:
            at += 5
            for _ in ("destination", "source"):
                at += 1 + datagram[at]
            if kind == INITIAL:
                token, at = variable(datagram, at)
                at += token
            length, at = variable(datagram, at)
        except IndexError:
            return types
        at += length
    return types


def variable(datagram, at):
    """A number of variable length (RFC 9000 section 16), and where it ends."""
    size = 1 << (datagram[at] >> 6)
    return int.from_bytes(datagram[at : at + size], "big") & (1 << (8 * size - 2)) - 1, at + size


class Direction:
    """What the network saw from one side."""

    def __init__(self):
        self.datagrams = self.bytes = self.dropped = self.carried_bytes = 0
        self.types, self.ecn = set(), set()
        self.is_dead = False


class Network:
    """Relays between clients, who send to `port` at `host`, and the server at `to`.

    `loss` and `damage` are shares of the datagrams, the same for each run. `delay` is seconds, each way. What the client
    sends after the first datagram of the server is lost for `silence` seconds.
    """

    def __init__(self, host, to, loss=0.0, damage=0.0, delay=0.0, silence=0.0, seed=1):
        self.silence = silence
        self.to, self.loss, self.damage, self.delay = to, loss, damage, delay
        self.random = random.Random(seed)
        self.client, self.server = Direction(), Direction()
        # When the client first shows the server that it has its address: what that had sent, and had got, bytes.
        self.before_validation = None
        self.ways = {}
        self.loop = asyncio.get_running_loop()
        self.near = self.bound(host)
        self.port = self.near.getsockname()[1]
        self.loop.add_reader(self.near, self.from_clients)

    def bound(self, source):
        family = socket.AF_INET6 if ":" in source else socket.AF_INET
        one = socket.socket(family, socket.SOCK_DGRAM)
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
        if family == socket.AF_INET:
            one.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        one.bind((source, 0))
        return one

    def close(self):
        for one in [self.near, *self.ways.values()]:
            self.loop.remove_reader(one)
            one.close()

    def way_of(self, client, source=None):
        """The socket which the server knows as this client."""
        if client not in self.ways:
            way = self.ways[client] = self.bound(source or self.to[0])
            self.loop.add_reader(way, self.from_server, way, client)
        return self.ways[client]

    def rebind(self, source="127.0.0.1"):
        """Gives each client another port, and this address."""
        for client, way in list(self.ways.items()):
            self.loop.remove_reader(way)
            way.close()
            del self.ways[client]
            self.way_of(client, source)

    def revive(self):
        self.client.is_dead = self.server.is_dead = False

    def receive(self, one, direction):
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            while True:
                datagram, control, _, source = one.recvmsg(65536, 128)
                ecn = control[0][2][0] & ECN_BITS if control else 0
                direction.datagrams += 1
                direction.bytes += len(datagram)
                direction.types.update(packet_types(datagram))
                direction.ecn.add(ecn)
                yield datagram, ecn, source

    def from_clients(self):
        for datagram, ecn, source in self.receive(self.near, self.client):
            self.carry(self.client, datagram, ecn, lambda source=source: (self.way_of(source), self.to))

    def from_server(self, way, client):
        for datagram, ecn, _ in self.receive(way, self.server):
            if self.silence and self.server.datagrams == 1:
                self.client.is_dead = True
                self.loop.call_later(self.silence, self.revive)
            self.carry(self.server, datagram, ecn, lambda: (self.near, client))

    def carry(self, direction, datagram, ecn, to):
        if direction.is_dead or self.random.random() < self.loss:
            direction.dropped += 1
            return
        if direction is self.client and self.before_validation is None:
            if {HANDSHAKE, SHORT} & set(packet_types(datagram)):
                self.before_validation = (self.server.bytes, self.client.carried_bytes)
        direction.carried_bytes += len(datagram)
        if self.random.random() < self.damage:
            direction.dropped += 1
            damaged = bytearray(datagram)
            damaged[self.random.randrange(len(damaged))] ^= 1 + self.random.randrange(255)
            datagram = bytes(damaged)
        if self.delay:
            self.loop.call_later(self.delay, self.send, datagram, ecn, to)
        else:
            self.send(datagram, ecn, to)

    def send(self, datagram, ecn, to):
        one, address = to()
        # A full socket, or one that nobody has any more, loses the datagram as a network does.
        with contextlib.suppress(OSError):
            if one.family == socket.AF_INET and ecn:
                control = [(socket.IPPROTO_IP, socket.IP_TOS, ecn.to_bytes(4, "little"))]
                one.sendmsg([datagram], control, 0, address)
            else:
                one.sendto(datagram, address)
