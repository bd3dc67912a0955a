"""What operators see and decide of HTTP/3, with aioquic as the client: `http3_operations.py PROGRAM`.

The rules `quic-initial`: each action, by the address of the client. The command `show quic`: its formats and
its filters. The fields of HTTP/3 and QUIC in the statistics. The secrets of TLS, for the decryption of captures.
"""

import asyncio
import contextlib
import dataclasses
import io
import socket
import sys

from aioquic.quic.connection import QuicConnection

from h3_client import DEADLINE, Client, certificate, configuration, free_port, origin, running

CONFIG = """
global
 nbthread 2
 tune.ssl.keylog on
 stats socket {socket} level admin
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
 http-request return status 200 content-type text/plain lf-string "{secrets}" if {{ path /secrets }}
 default_backend origin
backend origin from rules
 server s 127.0.0.1:{origin}
"""


@contextlib.asynccontextmanager
async def client_of(address, port, **options):
    """A client with this address of the loopback network, whose handshake has begun."""
    loop = asyncio.get_running_loop()
    how = dataclasses.replace(configuration(), **options)
    connection = QuicConnection(configuration=how)
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


def ask(path, command):
    """The output of a command."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(DEADLINE)
        one.connect(path)
        one.sendall(f"{command}\n".encode())
        parts = []
        while part := one.recv(65536):
            parts.append(part)
    return b"".join(parts).decode()


async def asked(path, command):
    return await asyncio.to_thread(ask, path, command)


async def line_of(path, command, one):
    """The words of the line of a client, with its state."""
    peer = ":".join(str(part) for part in one._transport.get_extra_info("sockname"))
    end = asyncio.get_running_loop().time() + DEADLINE
    while asyncio.get_running_loop().time() < end:
        lines = (await asked(path, command)).splitlines()
        assert lines[0].startswith("# conn/frontend "), lines
        for line in lines[1:]:
            if peer in line:
                return line.split()
    return None


async def connections(port, path):
    """What `show quic` tells of a client with an unfinished request, and of one that the proxy has closed."""
    async with client_of("127.0.0.1", port) as one:
        assert await one.ask("/") == (b"200", b"ok")
        stream, done = one.begin("/up", body=b"x" * 10, ends=False)
        quic = one._quic
        name, state, in_flight, _, lost, local, foreign, ours, theirs = await line_of(path, "show quic", one)
        own = one._transport.get_extra_info("sockname")[1]
        assert name.startswith("0x") and name.endswith("]/web"), name
        assert (state, in_flight, lost) == ("ESTAB", "-", "0")
        assert (local, foreign) == (f"127.0.0.1:{port}", f"127.0.0.1:{own}")
        assert ours == quic._remote_initial_source_connection_id.hex()
        assert theirs == quic._local_initial_source_connection_id.hex()
        number = name.split("[")[0]
        while "id=4 " not in (full := await asked(path, f"show quic {number}")):
            await asyncio.sleep(0.01)
        assert full.startswith(f"* {name.split('/')[0]}: scid={ours}"), full
        for wanted in (
            "  loc. TPs: odcid=",
            f" iscid={ours}\n    midle_timeout=30000ms mudp_payload_sz=",
            " ms_bidi=100 ms_uni=8\n",
            f"  rem. TPs: iscid={theirs}\n    midle_timeout=60000ms mudp_payload_sz=",
            " ms_bidi=128 ms_uni=128\n",
            "  st=opened           mux=ready\n",
            f"  fd=-1               local_addr=127.0.0.1:{port} foreign_addr=127.0.0.1:{own}\n",
            " srtt=",
            " cwnd=",
            " lostpkts=0 ",
            "  qcc=- flags=- sc=1 hreq=1 bwnd=0/",
            "    qcs=- id=4 flags=- st=OPN rxb=",
            "    qcs=- id=2 flags=- st=HCL rxb=",
        ):
            assert wanted in full, full
        some = await asked(path, f"show quic cc,tp {number}")
        assert "cwnd=" in some and " TPs:" in some and "local_addr" not in some and "qcs=" not in some, some
        streams = (await asked(path, f"show quic stream {number}")).split("\n")
        assert streams[0].startswith(f"{number}.0004: - age=- tx=["), streams
        assert streams[1:] == ["", ""], streams
        for command in ("show quic clo", "show quic be", "show quic oneline 0x1"):
            assert len((await asked(path, command)).strip().splitlines()) == 1, command
        assert "Usage: show quic" in await asked(path, "show quic help")
        assert "Invalid argument" in await asked(path, "show quic none")
        one.http.send_data(stream, b"y", end_stream=True)
        one.transmit()
        assert (await asyncio.wait_for(done, DEADLINE))["body"] == b"x" * 10 + b"y"
        # The proxy closes a connection that breaks a rule: DATA before HEADERS.
        one._quic.send_stream_data(quic.get_next_available_stream_id(), b"\0\1a", end_stream=True)
        one.transmit()
        await asyncio.wait_for(one.is_over, DEADLINE)
        found = await line_of(path, "show quic clo", one)
        assert found[1] == "CLOSE", found
    async with client_of("127.0.0.1", port) as one:
        await one.ask("/")
        # It closes, and says so: the proxy only waits then.
        one.close()
        one.transmit()
        found = await line_of(path, "show quic clo", one)
        assert found[1] == "DRAIN", found
        assert (await line_of(path, "show quic all", one))[0] == found[0]


async def row(path, proxy="web,FRONTEND"):
    names, *rows = (await asked(path, "show stat")).splitlines()
    found = next(one for one in rows if one.startswith(proxy))
    return dict(zip(names.removeprefix("# ").split(","), found.split(",")))


async def until(path, **wanted):
    """Waits until fields of the frontend have these numbers."""
    end = asyncio.get_running_loop().time() + DEADLINE
    while asyncio.get_running_loop().time() < end:
        found = await row(path)
        if all(found[name] == str(number) for name, number in wanted.items()):
            return
    raise AssertionError({name: found[name] for name in wanted})


async def until_alone(path):
    """Waits until no connection is left, not even one that has been closed."""
    end = asyncio.get_running_loop().time() + DEADLINE
    while lines := (await asked(path, "show quic all")).split("\n", 1)[1].strip():
        assert asyncio.get_running_loop().time() < end, lines


async def statistics(port, path):
    """What a client does is counted, as HTTP/3 only."""
    # The packets of an earlier connection count when it is over.
    await until_alone(path)
    await asked(path, "clear counters all")
    async with client_of("127.0.0.4", port) as one:
        await served(one, 1)
        assert (await one.ask("/up", body=b"x" * 100))[0] == b"200"
        await until(
            path,
            h3_headers=2,
            h3_data=1,
            h3_settings=1,
            h3sess=1,
            h3req=2,
            h2req=0,
            h1req=0,
            sess_other=0,
            h1_open_connections=0,
            h1_total_connections=0,
            h1_total_streams=0,
            h1_bytes_in=0,
            h1_bytes_out=0,
            h2_open_connections=0,
            h2_backend_open_streams=0,
            h2_total_connections=0,
            quic_retry_sent=1,
            quic_retry_validated=1,
            quic_half_open_conn=0,
            quic_sent_pkt=0,
        )
        one._quic.close(error_code=0x10C)
        one.transmit()
        await until(path, h3_request_cancelled=1, h3_no_error=0)
    found = await row(path)
    # Packets count when the connection is over.
    assert int(found["quic_sent_pkt"]) > 3 and found["quic_lost_pkt"] == "0", found
    assert found["quic_conn_migration_done"] == found["quic_data_blocked"] == "0"
    assert (await row(path, "origin,BACKEND"))["quic_sent_pkt"] == "0"
    async with client_of("127.0.0.1", port) as one:
        await served(one, 0)
        one._quic.close(error_code=0xA, frame_type=0)
        one.transmit()
        await until(path, quic_transp_err_protocol_violation_error=1)
    async with client_of("127.0.0.1", port, alpn_protocols=["other"]) as one:
        await asyncio.wait_for(one.is_over, DEADLINE)
        await until(path, quic_hdshk_fail=1, ssl_failed_handshake=1, quic_half_open_conn=0)
    async with client_of("127.0.0.2", port):
        await until(path, quic_dropped_pkt=2)
    # A client that reads nothing for a while has not shown its address.
    async with client_of("127.0.0.1", port) as one:
        read, one.datagram_received = one.datagram_received, lambda *_: None
        await until(path, quic_half_open_conn=1)
        one.datagram_received = read
        await served(one, 0)
        await until(path, quic_half_open_conn=0)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stranger.sendto(b"\x40" + bytes(range(100)), ("127.0.0.1", port))
    await until(path, quic_stless_rst_sent=1)
    typed = await asked(path, "show stat typed")
    assert ".177.quic_half_open_conn.1:MGPV:u64:0\n" in typed
    # A reload in place keeps what was counted, and what is open.
    async with client_of("127.0.0.1", port) as one:
        await served(one, 0)
        before = await row(path)
        with open(path.replace(".socket", ".cfg"), "a", encoding="utf-8") as file:
            file.write("backend more from rules\n")
        said = await asked(path, "reload")
        assert "is in use : 1 effect." in said, said
        assert await one.ask("/") == (b"200", b"ok")
        requests = int(before["h3req"]) + 1
        await until(path, quic_stless_rst_sent=1, h3_request_cancelled=1, h3req=requests, h1_open_connections=0)


SECRETS = {
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET": "client_handshake_traffic_secret",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET": "server_handshake_traffic_secret",
    "CLIENT_TRAFFIC_SECRET_0": "client_traffic_secret_0",
    "SERVER_TRAFFIC_SECRET_0": "server_traffic_secret_0",
}


def secrets_format():
    """A log format of the lines of a key log."""
    lines = [f"{label} %[ssl_fc_client_random,hex] %[ssl_fc_{name}]" for label, name in SECRETS.items()]
    return "\\n".join([*lines, "%[ssl_fc_server_random,hex] %[ssl_fc_exporter_secret]"])


async def secrets(port):
    """The proxy's secrets are those of its client, of each connection."""
    randoms = set()
    for _ in range(2):
        kept = io.StringIO()
        async with client_of("127.0.0.1", port, secrets_log_file=kept) as one:
            await served(one, 0)
            *lines, last = (await one.ask("/secrets"))[1].decode().split("\n")
        wanted = [line for line in kept.getvalue().splitlines() if line.split()[0] in SECRETS]
        assert len(wanted) == len(SECRETS)
        assert sorted(line.lower() for line in lines) == sorted(line.lower() for line in wanted), (lines, wanted)
        random, exporter = last.split()
        assert len(random) == 64 and len(exporter) in (64, 96), last
        randoms |= {random, lines[0].split()[1]}
    assert len(randoms) == 4


async def many_connections(port, path):
    """More connections than a worker lists at once: each is there once."""
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for _ in range(140):
            one = await stack.enter_async_context(client_of("127.0.0.1", port))
            await asyncio.wait_for(one.wait_connected(), DEADLINE)
            clients.append(one)
        lines = (await asked(path, "show quic")).splitlines()[1:]
        lines = [line.split() for line in lines if line]
        assert len({line[0] for line in lines}) == len(lines)
        own = {f"127.0.0.1:{one._transport.get_extra_info('sockname')[1]}" for one in clients}
        assert sorted(line[6] for line in lines if line[6] in own) == sorted(own)


async def talk(port, log, path):
    loop = asyncio.get_running_loop()
    transport, lines = await loop.create_datagram_endpoint(Lines, sock=log)
    await rules(port, lines)
    await connections(port, path)
    await statistics(port, path)
    await secrets(port)
    await many_connections(port, path)
    transport.close()


def main():
    port = free_port()
    log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    log.bind(("127.0.0.1", 0))
    with certificate() as crt:
        config = f"{crt}.cfg"
        with open(config, "w", encoding="utf-8") as file:
            path = f"{crt}.socket"
            names = {"port": port, "crt": crt, "origin": origin(), "log": log.getsockname()[1], "socket": path}
            names["secrets"] = secrets_format()
            file.write(CONFIG.format(**names))
        with running([sys.argv[1], "-db", "-f", config], port):
            asyncio.run(talk(port, log, path))
    print("interop: HTTP/3 with aioquic: rules for new connections, show quic, statistics and secrets: ok")


main()
