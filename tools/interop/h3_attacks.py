"""Attacks over QUIC with datagrams and with frames of the transport, as small functions."""

import contextlib
import os
import random
import time

from h3_hostile import Crowd, Hostile, number


class Field:
    """Where an attack takes place: how many units it has, and what it counts."""

    def __init__(self, port, units, hellos):
        self.port, self.units, self.hellos = port, units, hellos
        self.sent_bytes = self.received_bytes = self.done = 0
        self.ends = {}

    @contextlib.contextmanager
    def client(self, **options):
        """A client that is connected. At the end it vanishes."""
        one = Hostile(self.port, **options)
        one.establish()
        try:
            yield one
        finally:
            one.pump(0.01)
            self.count(one)

    def count(self, one):
        self.sent_bytes += one.sent_bytes + sum(map(len, one.sent))
        self.received_bytes += one.received
        if one.end_code is not None:
            self.ends[one.end_code] = self.ends.get(one.end_code, 0) + 1
        one.vanish()

    @contextlib.contextmanager
    def crowd(self):
        with Crowd(self.port) as crowd:
            yield crowd
        self.sent_bytes += crowd.sent_bytes
        self.received_bytes += crowd.received_bytes
        self.done += crowd.shots

    def packets(self, connections, frames, **options):
        """Sends packets with these frames over some connections."""
        for _ in range(connections):
            with self.client(**options) as one:
                for nth in range(self.units // connections):
                    one.inject(frames(one, nth))
                    self.done += 1

    def streams(self, connections, frames, **options):
        """The same with a new request stream for each packet. `frames` may return several packets."""
        for _ in range(connections):
            with self.client(**options) as one:
                for nth in range(self.units // connections):
                    stream = one.new_stream()
                    if stream is None:
                        break
                    for packet in frames(one, stream, nth):
                        one.inject(packet)
                    self.done += 1


# ---- datagrams without a connection


def nothing(field):
    time.sleep(field.units)
    field.done = field.units


def hellos(field):
    with field.crowd() as crowd:
        for datagram in field.hellos[: field.units]:
            crowd.shoot(datagram)


def bad_tags(field):
    with field.crowd() as crowd:
        for datagram in field.hellos[: field.units]:
            crowd.shoot(datagram[:-8] + b"\0" * 8)


def short_hellos(field):
    with field.crowd() as crowd:
        for datagram in field.hellos[: field.units]:
            crowd.shoot(datagram[:1199])


def unknown_versions(field):
    with field.crowd() as crowd:
        for datagram in field.hellos[: field.units]:
            crowd.shoot(datagram[:1] + b"\x1a\x2a\x3a\x4a" + datagram[5:])


def garbage(field):
    dice = random.Random(2)
    with field.crowd() as crowd:
        for _ in range(field.units):
            crowd.shoot(dice.randbytes(dice.randrange(1, 1400)))


def short_headers(field):
    dice = random.Random(3)
    with field.crowd() as crowd:
        for _ in range(field.units):
            crowd.shoot(b"\x41\0\0" + dice.randbytes(dice.randrange(20, 1300)))


def truncated(field):
    """First packets, and those of a connection, cut anywhere."""
    dice = random.Random(4)
    with field.crowd() as crowd:
        for datagram in field.hellos[: field.units // 2]:
            crowd.shoot(datagram[: dice.randrange(1, len(datagram))])
    with field.client() as one:
        for _ in range(field.units // 2):
            datagram = one.packet(one.on(0, bytes(800)))
            one.shoot(datagram[: dice.randrange(1, len(datagram))])
            field.done += 1


def repeated(field):
    with field.client() as one:
        datagram = one.packet(b"\x01")
        for _ in range(field.units):
            one.shoot(datagram)
            field.done += 1


def shuffled(field):
    dice = random.Random(5)
    with field.client() as one:
        while field.done < field.units:
            some = [one.packet(b"\x01") for _ in range(100)]
            dice.shuffle(some)
            for datagram in some:
                one.shoot(datagram)
                field.done += 1


def replayed(field):
    """All that a client has sent in a connection that has ended, from other addresses."""
    with Hostile(field.port) as one:
        for _ in range(3):
            assert one.answer(one.ask("/good")) == b"good"
    recorded = one.sent
    with field.crowd() as crowd:
        while crowd.shots < field.units:
            for datagram in recorded:
                crowd.shoot(datagram)


def handshakes(field):
    """Whole handshakes of clients that ask for nothing."""
    for _ in range(field.units):
        with field.client():
            field.done += 1


# ---- frames of QUIC


def pings(field):
    field.packets(4, lambda one, nth: b"\x01")


def path_challenges(field):
    field.packets(4, lambda one, nth: b"\x1a" + nth.to_bytes(8, "big"))


def credit(field):
    frames = b"\x10" + number(1 << 30) + b"\x12" + number(1 << 20) + b"\x13" + number(1 << 20)
    field.packets(4, lambda one, nth: frames * 80)


def new_connection_ids(field):
    def frames(_, nth):
        place = number(100 + nth)
        return b"\x18" + place + place + b"\x08" + os.urandom(8) + os.urandom(16)

    field.packets(4, frames)


def retired_connection_ids(field):
    for _ in range(4):
        with field.client() as one:
            for _ in range(field.units // 4):
                if not one.wait(lambda: one.quic._peer_cid_available):
                    break
                one.quic.change_connection_id()
                one.pump()
                one.sent_bytes += 40
                field.done += 1


def tiny_stream_frames(field):
    """One byte in each packet, from the back, with gaps."""
    share = field.units // 4
    field.packets(4, lambda one, nth: b"\x0e\0" + number(2 * (share - nth)) + b"\1x")


def packed_stream_frames(field):
    """As many of such frames as there is room for."""
    most = 120_000 // 150 - 1

    def frames(_, nth):
        first = 150 * (most - nth % most)
        return b"".join(b"\x0e\0" + number(2 * (first - each) + 1) + b"\1x" for each in range(150))

    field.packets(4, frames)


def crypto_gaps(field):
    def frames(_, nth):
        return b"".join(b"\x06" + number(2 * (100 * nth + each) % 4000 + 1) + b"\1x" for each in range(100))

    field.packets(4, frames)


def optimistic_acks(field):
    def frames(one, nth):
        space = one.quic._spaces
        largest = max(each.largest_received_packet for each in space.values()) + 1000 + nth
        return b"\x02" + number(largest) + b"\0\0\0"

    field.packets(4, frames)


def ack_ranges(field):
    """Each range has one packet of a download; there is one packet between two of them."""
    with field.client() as one:
        one.next_stream = 4
        one.answer(one.ask("/big"))
        top = max(each.largest_received_packet for each in one.quic._spaces.values())
        count = min(500, top // 2 - 1)
        for _ in range(field.units):
            one.inject(b"\x02" + number(top) + b"\0" + number(count) + b"\0" + b"\0\0" * count)
            field.done += 1
