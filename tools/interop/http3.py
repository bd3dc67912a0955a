"""Talks HTTP/3 to the program with aioquic: `http3.py PROGRAM`.

Requests one after the other and many at a time, uploads and downloads, clients that reset, and a soft
stop during a download.
"""

import asyncio
import os
import random
import signal
import socket
import sys

from h3_client import BIG, DEADLINE, SLOW_PARTS, certificate, client, free_port, origin, running

# Shorter than the time after which a connection without packets ends.
DEADLINE_OF_IDLE = 15

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


# Another port, with limits that a client can see.
TUNED = """
global
 nbthread 2
 cluster-secret tuned
 tune.quic.fe.max-idle-timeout 20s
 tune.quic.fe.stream.max-concurrent 7
 tune.quic.fe.stream.max-total 12
 tune.quic.fe.stream.rxbuf 100000
 tune.quic.fe.stream.data-ratio 50
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 5s
frontend tcp
 bind 127.0.0.1:{port} ssl crt {crt}
 http-request return status 204
frontend web
 bind quic4@127.0.0.1:{port} ssl crt {crt} quic-force-retry quic-cc-algo {algorithm}
 http-request return status 200 content-type text/plain lf-string "%[quic_enabled]" if {{ path / }}
 default_backend origin
backend origin
 server s 127.0.0.1:{origin}
"""


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


async def heads_before_their_table(port):
    """A request comes before the insertions into the table that its head refers to, with all of its body."""
    async with client(port) as one:
        await one.ask("/")
        encoder, kept = one.http._local_encoder_stream_id, []
        send = one._quic.send_stream_data
        one._quic.send_stream_data = lambda stream, data, end_stream=False: (
            kept.append(data) if stream == encoder else send(stream, data, end_stream)
        )
        for number in range(5):
            field = [("x-field", f"value {number}"), ("x-more", "a" * 50)]
            upload = os.urandom(1_000)
            stream, done = one.begin("/up", body=upload, method="POST", fields=field, ends=False)
            await asyncio.sleep(0.05)
            one.http.send_data(stream, upload, end_stream=False)
            one.transmit()
            # The end comes alone, and nothing comes behind it.
            await asyncio.sleep(0.05)
            assert kept and not done.done()
            insertions, kept[:] = b"".join(kept), []
            send(encoder, insertions)
            one.http.send_data(stream, b"", end_stream=True)
            one.transmit()
            answer = await asyncio.wait_for(done, DEADLINE)
            assert answer["body"] == 2 * upload


async def errors_of_others(port):
    """Connections that end for an error of HTTP/3 have no effect on those that begin meanwhile."""

    async def breaks_a_rule():
        async with client(port) as one:
            stream = one._quic.get_next_available_stream_id()
            # DATA before HEADERS.
            one._quic.send_stream_data(stream, b"\0\1a", end_stream=True)
            one.transmit()
            ended = await asyncio.wait_for(one.is_over, DEADLINE)
            assert ended.error_code == 0x105, ended

    async def goes_on():
        async with client(port) as one:
            for _ in range(12):
                assert (await asyncio.wait_for(one.ask("/"), 5))[0] == b"200"
                await asyncio.sleep(0.1)

    await asyncio.gather(*[breaks_a_rule() for _ in range(4)])
    await asyncio.gather(*[goes_on() for _ in range(8)])


async def asked(connection):
    async with connection as one:
        await one.ask("/")


async def tuned(port):
    async with client(port) as one:
        quic = one._quic
        assert quic._retry_count == 1
        assert await one.ask("/") == (b"200", b"1")
        limits = (quic._remote_max_streams_bidi, quic._remote_max_data, quic._remote_max_stream_data_bidi_remote)
        assert limits[0] >= 7 and limits[1:] == (100_000, 65_536), limits
        assert quic._remote_max_idle_timeout == 20, quic._remote_max_idle_timeout
        for _ in range(3):
            assert await one.ask("/big") == (b"200", BIG)
        for _ in range(8):
            await one.ask("/")
        # This was the last request.
        await asyncio.wait_for(one.is_over, DEADLINE_OF_IDLE)
    # Ports of servers get no answer.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    try:
        await asyncio.wait_for(asked(client(port, local_port=1000)), 1)
        raise AssertionError("a client with the port of a server was served")
    except (asyncio.TimeoutError, PermissionError):
        pass


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
    """A download lasts longer than anything that has a limit; the idle client is told."""
    async with client(port) as idle, client(port) as busy:
        await idle.ask("/")
        _, done = busy.begin("/slow")
        while not busy.waiting[0]["body"]:
            await asyncio.sleep(0.001)
        program.send_signal(signal.SIGUSR1)
        await asyncio.wait_for(idle.is_over, DEADLINE_OF_IDLE)
        answer = await asyncio.wait_for(done, DEADLINE)
        assert len(answer["body"]) == 4 * SLOW_PARTS, answer


def main():
    port = free_port()
    with certificate() as crt:
        config = f"{crt}.cfg"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, crt=crt, origin=origin()))
        with running([sys.argv[1], "-db", "-f", config], port) as program:
            asyncio.run(requests(port))
            asyncio.run(many_clients(port))
            asyncio.run(clients_that_give_up(port))
            asyncio.run(heads_before_their_table(port))
            asyncio.run(errors_of_others(port))
            garbage(port)
            asyncio.run(requests(port))
            asyncio.run(soft_stop(port, program))
            assert program.wait(DEADLINE) == 0
    for algorithm in ("newreno(64k)", "bbr", "nocc(200k)"):
        with certificate() as crt:
            config = f"{crt}.cfg"
            with open(config, "w", encoding="utf-8") as file:
                file.write(TUNED.format(port=port, crt=crt, origin=origin(), algorithm=algorithm))
            with running([sys.argv[1], "-db", "-f", config], port):
                asyncio.run(tuned(port))
    print("interop: HTTP/3 with aioquic: requests, uploads, downloads, resets and a soft stop: ok")


main()
