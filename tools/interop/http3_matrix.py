"""The cases of the QUIC interop runner, over a network that this script makes: `http3_matrix.py PROGRAM [QUIC-GO]`.

Each case runs with aioquic and quic-go as the client of the program, and as the server behind it. Prints a table.
"""

import asyncio
import json
import socket
import ssl
import subprocess
import sys
import time
import traceback

from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import Epoch
from h3_client import DEADLINE, Client, certificate, free_port, origin, running
from h3_server import content, server
from network import HANDSHAKE, INITIAL, RETRY, SHORT, VERSION_NEGOTIATION, ZERO_RTT, Network

CHACHA20 = "TLS_CHACHA20_POLY1305_SHA256"
V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2
AS_SERVER, AS_CLIENT = "aioquic → Spangate", "Spangate → aioquic"
GO_AS_CLIENT, GO_AS_SERVER = "quic-go → Spangate", "Spangate → quic-go"
# All clients, networks and aioquic's servers share one thread: with more, handshakes wait for seconds.
CASES_AT_A_TIME = 8
# Datagrams of a server between two new addresses of its client.
BETWEEN_MOVES = 300
# ECN bits of RFC 3168.
ECT_0 = 2

HEAD = """
global
 nbthread 2
 expose-experimental-directives
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 60s
 retries 0
frontend tcp
 bind 127.0.0.1:{tcp} ssl crt {crt}
 http-request return status 204
backend origin
 server s 127.0.0.1:{origin}
"""
# Spangate is the server.
FRONT = """
frontend {name}
 bind {address}:{port} ssl crt {crt} {options}
 http-request return status 200 content-type text/plain lf-string %[path] if {{ path_beg /n }}
 default_backend origin
"""
# Spangate is the client; it tells its own client of the connection.
BEHIND = """
listen {name}
 bind quic4@127.0.0.1:{port} ssl crt {crt}
 http-response set-header x-facts "%[ssl_bc_is_resumed] %[ssl_bc_cipher]"
 {lines}
 server s {server} ssl verify none sni str(localhost) {options}
"""


async def ask(to, path, count=1, connections=1, early=False, versions=(V1,), during=None):
    """Requests from aioquic, `count` at a time on each connection. Returns the facts of the last connection."""
    facts, ticket, token = {}, [], []
    for _ in range(connections):
        configuration = QuicConfiguration(
            is_client=True,
            alpn_protocols=["h3"],
            verify_mode=ssl.CERT_NONE,
            server_name="localhost",
            supported_versions=list(versions),
            original_version=versions[0],
        )
        configuration.session_ticket = ticket[-1] if ticket else None
        configuration.token = token[-1] if token else b""
        async with connect(
            *to,
            configuration=configuration,
            create_protocol=Client,
            session_ticket_handler=ticket.append,
            token_handler=token.append,
            wait_connected=not early,
        ) as one:
            asked = [one.begin(path)[1]]
            if count > 1:
                # It makes the connection to the server; the others use it.
                await asyncio.wait_for(asked[0], DEADLINE)
                asked += [one.begin(path)[1] for _ in range(count - 1)]
            if during:
                await during(one)
            for answer in asked:
                answer = await asyncio.wait_for(answer, DEADLINE)
                fields = dict(answer["fields"])
                assert fields[b":status"] == b"200", fields
                assert answer["body"] == content(path), (path, len(answer["body"]))
            tls = one._quic.tls
            facts = {
                "resumed": tls.session_resumed,
                "early": tls.early_data_accepted,
                "cipher": "TLS_" + tls.key_schedule.cipher_suite.name.removeprefix("TLS_"),
                "version": f"v{one._quic._version}",
                "phase": one._quic._cryptos[Epoch.ONE_RTT].recv.key_phase,
                "behind": fields.get(b"x-facts", b"").decode().split(),
                "early behind": fields.get(b"x-early") == b"true",
            }
            if connections > 1:
                # The session comes after the handshake.
                await asyncio.sleep(0.2)
    return facts


class Pairing:
    """One implementation with Spangate, for one case, with a network between them."""

    def __init__(self, name, case, client, options):
        self.name, self.case, self.client, self.options = name, case, client, options
        self.is_server = name in (AS_SERVER, GO_AS_CLIENT)
        self.host, self.network, self.peer = None, None, None
        # It keeps the port until the program starts: the networks get other ones.
        self.kept = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.kept.bind(("127.0.0.1", 0))
        self.front = self.kept.getsockname()[1]

    def begin(self, number, peers):
        """Opens the network. Returns the part of the configuration."""
        name = f"c{number}"
        address = self.options.get("address", "quic4@127.0.0.1")
        self.host = "::1" if address.startswith("quic6") else "127.0.0.1"
        self.peer, port = peers.get((self.name, self.options.get("retries", False)), (None, self.front))
        to = (self.host if self.is_server else "127.0.0.1", port)
        self.network = Network(self.host, to, **self.options.get("network", {}))
        if self.is_server:
            crt = self.options.get("crt", "{crt}")
            options = self.options.get("bind", "") + (" quic-force-retry" if self.options.get("retries") else "")
            return FRONT.format(name=name, address=address, port=self.front, options=options, crt=crt)
        lines, options = self.options.get("lines", ""), self.options.get("server", "")
        server = f"{address}:{self.network.port}"
        return BEHIND.format(name=name, port=self.front, crt="{crt}", server=server, lines=lines, options=options)

    async def get(self, path, during=None, count=1, connections=1, early=False, newer=False):
        """Makes requests through the network. Returns the facts of the QUIC connection in it."""
        if self.name != GO_AS_CLIENT:
            versions = (V2, V1) if newer else (V1,)
            to = (self.host, self.network.port) if self.is_server else ("127.0.0.1", self.front)
            facts = await ask(to, path, count, connections, early, versions, during)
            if not self.is_server:
                resumed, facts["cipher"] = facts["behind"]
                facts["resumed"], facts["early"] = resumed == "1", facts["early behind"]
            return facts
        host = f"[{self.host}]" if ":" in self.host else self.host
        flags = ["-path", path, "-count", count, "-connections", connections]
        flags += ["-early"] * early
        command = [self.client, "ask", *map(str, flags), f"{host}:{self.network.port}"]
        one = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        waits = asyncio.create_task(one.communicate())
        if during:
            await during(None)
        out, _ = await asyncio.wait_for(waits, DEADLINE)
        assert one.returncode == 0
        return json.loads(out)


async def handshake(one):
    await one.get("/n")
    assert INITIAL in one.network.client.types and {HANDSHAKE, SHORT} <= one.network.server.types


async def transfer(one):
    await one.get("/big")


async def longrtt(one):
    await one.get("/n")
    # Nothing was sent again and again meanwhile.
    assert one.network.client.datagrams + one.network.server.datagrams < 60


async def chacha20(one):
    facts = await one.get("/n")
    assert facts["cipher"] in (CHACHA20, CHACHA20.removeprefix("TLS_")), facts


async def multiplexing(one):
    await one.get("/n", count=1000)


async def retry(one):
    await one.get("/n")
    assert RETRY in one.network.server.types


async def resumption(one):
    facts = await one.get("/n", connections=2)
    assert facts["resumed"], facts


async def zerortt(one):
    facts = await one.get("/n", connections=2, early=one.is_server)
    assert facts["early"] and ZERO_RTT in one.network.client.types, facts


async def http3(one):
    await asyncio.gather(one.get("/part", count=10), one.get("/up", count=50))


async def blackhole(one):
    async def dies(_):
        await asyncio.sleep(1)
        one.network.client.is_dead = one.network.server.is_dead = True
        await asyncio.sleep(2)
        one.network.revive()

    await one.get("/slow", during=dies)
    assert one.network.client.dropped + one.network.server.dropped > 0


async def keyupdate(one):
    if one.is_server:
        facts = await one.get("/slow", during=updates)
        assert facts["phase"] == 1, facts
    else:
        await one.get("/update")
        await one.get("/part", count=3)
        phases = [each._quic._cryptos[Epoch.ONE_RTT].recv.key_phase for each in one.peer._protocols.values()]
        assert 1 in phases, phases


async def updates(client):
    await asyncio.sleep(1)
    client._quic.request_key_update()
    client.transmit()


async def ecn(one):
    await one.get("/part")
    assert ECT_0 in one.network.client.ecn and ECT_0 in one.network.server.ecn


async def amplificationlimit(one):
    """The certificate is longer than what may be sent to an address that is not known (RFC 9000 section 8.1)."""
    await one.get("/n")
    sent, got = one.network.before_validation
    assert one.network.client.dropped and got < sent <= 3 * got, (sent, got)


async def many_handshakes(one):
    await one.get("/n", connections=10)
    assert one.network.client.dropped and one.network.server.dropped


async def lossy_transfer(one):
    await one.get("/big")
    assert one.network.server.dropped


async def ipv6(one):
    await one.get("/n")


async def versionnegotiation(one):
    facts = await one.get("/n", newer=True)
    assert VERSION_NEGOTIATION in one.network.server.types and facts["version"] == "v1", facts


def rebinding(addresses):
    async def rebinds(one):
        async def moves(_):
            for number, address in enumerate(addresses, 1):
                while one.network.server.datagrams < number * BETWEEN_MOVES:
                    await asyncio.sleep(0.001)
                one.network.rebind(address)
            assert one.network.server.bytes < len(content("/big")), "the transfer ended before"

        await one.get("/big", during=moves)

    return rebinds


async def connectionmigration(one):
    async def moves(client):
        while one.network.server.datagrams < BETWEEN_MOVES:
            await asyncio.sleep(0.001)
        client._quic.change_connection_id()
        one.network.rebind("127.0.0.2")

    await one.get("/big", during=moves)


# Why a case does not run with a pairing.
NO_API = "its API has no way"
NO_MARKS = "it sends no marks"
ITS_MATTER = "of the server alone"
LOSS_OF_HANDSHAKES, LOSS_OF_TRANSFERS = 0.2, 0.02
TO_SERVERS = {AS_CLIENT: ITS_MATTER, GO_AS_SERVER: ITS_MATTER}
SLOW_NETWORK = {"network": {"delay": 0.03}}
EACH_ALONE = {"lines": "http-reuse never"}
# Name, what it does, options, and pairings that are left out.
CASES = [
    ("handshake", handshake, {}, {}),
    ("transfer", transfer, {}, {}),
    ("longrtt", longrtt, {"network": {"delay": 0.75}}, {}),
    ("chacha20", chacha20, {"bind": f"ciphersuites {CHACHA20}", "server": f"ciphersuites {CHACHA20}"}, {}),
    ("multiplexing", multiplexing, {}, {}),
    ("retry", retry, {"retries": True}, {}),
    ("resumption", resumption, EACH_ALONE, {}),
    ("zerortt", zerortt, {"bind": "allow-0rtt", "server": "allow-0rtt", **EACH_ALONE}, {}),
    ("http3", http3, {}, {}),
    ("blackhole", blackhole, {}, {}),
    ("keyupdate", keyupdate, {}, {GO_AS_CLIENT: NO_API, GO_AS_SERVER: NO_API}),
    ("ecn", ecn, {}, {AS_SERVER: NO_MARKS, AS_CLIENT: NO_MARKS}),
    ("amplificationlimit", amplificationlimit, {"crt": "{crt}.long", "network": {"silence": 1}}, TO_SERVERS),
    ("handshakeloss", many_handshakes, {"network": {"loss": LOSS_OF_HANDSHAKES}, **EACH_ALONE}, {}),
    ("transferloss", lossy_transfer, {"network": {"loss": LOSS_OF_TRANSFERS}}, {}),
    ("handshakecorruption", many_handshakes, {"network": {"damage": LOSS_OF_HANDSHAKES}, **EACH_ALONE}, {}),
    ("transfercorruption", lossy_transfer, {"network": {"damage": LOSS_OF_TRANSFERS}}, {}),
    ("ipv6", ipv6, {"address": "quic6@[::1]"}, {}),
    ("versionnegotiation", versionnegotiation, {}, {GO_AS_CLIENT: NO_API} | TO_SERVERS),
    ("rebind-port", rebinding(["127.0.0.1"] * 3), SLOW_NETWORK, {}),
    ("rebind-addr", rebinding(["127.0.0.2", "127.0.0.3", "127.0.0.1"]), SLOW_NETWORK, {}),
    ("connectionmigration", connectionmigration, SLOW_NETWORK, {GO_AS_CLIENT: NO_API} | TO_SERVERS),
]


def long_certificate(crt):
    """A certificate of some kilobytes beside another one."""
    names = ",".join(f"DNS:{'a' * 40}{number}.example" for number in range(250))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", f"subjectAltName=DNS:localhost,{names}", "-keyout", f"{crt}.long.key", "-out", f"{crt}.long"],
        check=True,
        stderr=subprocess.DEVNULL,
    )


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
            one.bind(("::1", 0))
        return True
    except OSError:
        return False


async def result(one, does, turns):
    """The text for the table."""
    async with turns:
        try:
            await asyncio.wait_for(does(one), DEADLINE)
            return "ok"
        except Exception as error:  # The table shows all of them.
            print(f"{one.case}, {one.name}:", file=sys.stderr)
            traceback.print_exception(error)
            return f"FAILED: {type(error).__name__}"


async def all_cases(program, client, crt, wanted):
    peers, go = {}, None
    for retries in (False, True):
        peers[AS_CLIENT, retries] = await server(crt, retries)
    names = [AS_SERVER, AS_CLIENT]
    if client:
        names += [GO_AS_CLIENT, GO_AS_SERVER]
        go = await asyncio.create_subprocess_exec(client, "serve", crt, stdout=subprocess.PIPE)
        for retries in (False, True):
            peers[GO_AS_SERVER, retries] = (go, int(await go.stdout.readline()))
    cases = [case for case in CASES if not wanted or case[0] in wanted]
    pairings = {}
    for case, _, options, without in cases:
        for name in names:
            if name in without or ("::1" in str(options) and not has_ipv6()):
                continue
            pairings[case, name] = Pairing(name, case, client, options)
    tcp, path = free_port(), f"{crt}.cfg"
    config = HEAD.format(tcp=tcp, crt=crt, origin=origin())
    for number, one in enumerate(pairings.values()):
        config += one.begin(number, peers).replace("{crt}", crt)
    with open(path, "w", encoding="utf-8") as file:
        file.write(config)
    for one in pairings.values():
        one.kept.close()
    with running([program, "-db", "-f", path], tcp):
        does = {case: do for case, do, _, _ in cases}
        turns = asyncio.Semaphore(CASES_AT_A_TIME)
        results = await asyncio.gather(*[result(one, does[case], turns) for (case, _), one in pairings.items()])
    results = dict(zip(pairings, results))
    if go:
        go.kill()
        await go.wait()
    print("| interop: case |", " | ".join(names), "|")
    print("|---|" + "---|" * len(names))
    for case, _, _, without in cases:
        cells = [results[case, name] if (case, name) in results else without.get(name, "skipped") for name in names]
        print(f"| {case} |", " | ".join(cells), "|")
    return all(outcome == "ok" for outcome in results.values())


def main():
    program, client, *wanted = [*sys.argv[1:], None] if len(sys.argv) == 2 else sys.argv[1:]
    with certificate() as crt:
        long_certificate(crt)
        if not asyncio.run(all_cases(program, client, crt, wanted)):
            sys.exit(1)


main()
