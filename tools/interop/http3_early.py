"""Early data over HTTP/3 (RFC 9001 section 4.6, RFC 8470) with aioquic: `http3_early.py PROGRAM`.

The tests decide when the client's datagrams go: the server has early data, and no end of the handshake, for as
long as a test needs that.
"""

import contextlib
import socket
import sys
import threading
import time

from h3_client import DEADLINE, Origin, OriginServer, certificate, free_port, running
from h3_steps import Client, Memory

# `timeout client-hs`, seconds, before the reload.
HANDSHAKE = 1
DATAGRAM = 1200
# Streams that a client may have after limits were lowered.
LOWER = 2

CONFIG = """
global
 nbthread 2
 stats socket {crt}.sock level admin
 log stderr format raw local0
 {tune}
defaults
 mode http
 log global
 log-format "%HM %HPO %ST %ts"
 timeout client 60s
 timeout client-hs {handshake}s
 timeout server 60s
 timeout connect 5s
frontend tcp
 bind 127.0.0.1:{port} ssl crt {crt}
 http-request return status 204
frontend web
 bind quic4@127.0.0.1:{port} ssl crt {crt} allow-0rtt
 bind quic4@127.0.0.1:{certificates} ssl crt {crt} allow-0rtt verify optional ca-file {crt}
 http-request wait-for-handshake if {{ path_beg /wait }}
 http-request set-header x-early "%[ssl_fc_has_early] %[ssl_fc_early_rcvd]"
 default_backend origin
frontend without
 bind quic4@127.0.0.1:{without} ssl crt {crt}
 http-request set-header x-early "%[ssl_fc_has_early] %[ssl_fc_early_rcvd]"
 default_backend origin
backend origin
 server s 127.0.0.1:{origin}
"""


class EarlyOrigin(Origin):
    """Answers with the values of `x-early` and `Early-Data`; keeps the paths of all requests."""

    paths = []

    def answer(self):
        self.paths.append(self.path)
        if self.path.startswith("/slow"):
            return self.slow()
        content = f"{self.headers.get('x-early')} {self.headers.get('early-data')}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer


def first_visit(port):
    """What a client keeps of its first connection."""
    memory = Memory()
    with Client(port, memory) as one:
        assert one.answer(one.ask("/first")) == b"0 0 None"
        one.until(lambda: memory.ticket and memory.token)
    return memory


def requests_of_the_first_flight(port):
    """They are answered before the handshake is complete, except the one that waits for it."""
    with Client(port, first_visit(port)) as one:
        waits, goes = one.ask("/wait"), one.ask("/")
        one.send()
        assert one.answer(goes, sends=False) == b"1 1 1"
        assert waits not in one.ended
        assert one.answer(waits) == b"0 1 None"
        assert one.completed.early_data_accepted
        assert one.answer(one.ask("/more")) == b"0 1 None"


def without_a_token(port):
    """A client that has not shown that it has its address is answered after the handshake."""
    with Client(port, first_visit(port), token=False) as one:
        stream = one.ask("/")
        one.send()
        sent = sum(len(datagram) for datagram in one.sent)
        one.until(lambda: one.completed, sends=False)
        assert one.completed.early_data_accepted
        assert one.received < 3 * sent + DATAGRAM, (one.received, sent)
        assert stream not in one.ended
        assert one.answer(stream) == b"0 1 None"


def with_client_certificates(port):
    """Where clients may show certificates, requests wait for the handshake."""
    with Client(port, first_visit(port)) as one:
        stream = one.ask("/")
        one.send()
        one.until(lambda: one.completed, sends=False)
        assert one.completed.early_data_accepted and stream not in one.ended
        assert one.answer(stream) == b"0 1 None"


def where_it_is_not_allowed(port):
    memory = Memory()
    with Client(port, memory) as one:
        one.answer(one.ask("/"))
        one.until(lambda: memory.ticket)
    assert memory.ticket.max_early_data_size is None
    with Client(port, memory) as one:
        assert one.answer(one.ask("/")) == b"0 0 None"
        assert one.quic.tls.session_resumed


def used_sessions(port):
    """A session is used once: early data of a second connection with it is refused, and its requests come again."""
    memory = first_visit(port)
    ticket = memory.ticket
    for is_accepted in (True, False, False):
        memory.ticket = ticket
        with Client(port, memory) as one:
            stream = one.ask("/")
            one.send()
            assert one.answer(stream, sends=not is_accepted) == (b"1 1 1" if is_accepted else b"0 0 None")
            assert one.completed.early_data_accepted == is_accepted


def replayed_flight(port, crt):
    """Someone else sends the first flight of a client again."""
    before = failed_handshakes(crt)
    with Client(port, first_visit(port)) as one:
        stream = one.ask("/replayed")
        one.send()
        flight = list(one.sent)
        one.answer(stream)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.connect(("127.0.0.1", port))
        other.settimeout(0.2)
        end = time.monotonic() + DEADLINE
        # The server answers with a handshake once it has forgotten the client's connection.
        while time.monotonic() < end:
            for datagram in flight:
                other.send(datagram)
            try:
                assert other.recv(65536)[0] & 0x80
                break
            except TimeoutError:
                pass
        else:
            raise AssertionError("no answer to the flight")
    # The handshake is never completed.
    end = time.monotonic() + DEADLINE
    while failed_handshakes(crt) == before and time.monotonic() < end:
        time.sleep(0.05)
    assert failed_handshakes(crt) == before + 1
    assert EarlyOrigin.paths.count("/replayed") == 1, EarlyOrigin.paths


def handshakes_that_never_end(port, crt, log):
    """A client sends its first flight and nothing more: a request that waits for the handshake gets no
    answer, and one that is at a server is ended."""
    memory = first_visit(port)
    before = failed_handshakes(crt)
    with Client(port, memory) as one:
        for path in ("/wait-for-ever", "/", "/slow-for-ever"):
            one.ask(path)
        one.send()
        assert one.answer(4, sends=False) == b"1 1 1"
        lines = until_logged(log, {"GET /wait-for-ever", "GET /slow-for-ever"})
        assert lines["GET /wait-for-ever"].endswith("cR"), lines
        assert lines["GET /slow-for-ever"][-2:] in ("CD", "cD"), lines
    assert "/wait-for-ever" not in EarlyOrigin.paths
    assert failed_handshakes(crt) == before + 1
    # The next client is served.
    first_visit(port)


def clients_that_leave(port, crt, log):
    """A client closes its connection before the end of the handshake."""
    memory = first_visit(port)
    before = failed_handshakes(crt)
    with Client(port, memory) as one:
        one.ask("/slow-left")
        answered = one.ask("/")
        one.send()
        one.answer(answered, sends=False)
    assert until_logged(log, {"GET /slow-left"})["GET /slow-left"].endswith("CD")
    assert failed_handshakes(crt) == before + 1
    assert "Panics: 0" in command(crt, "show info")


def logged(log):
    with open(log, encoding="utf-8") as file:
        lines = [line.strip().split(" ", 2) for line in file]
    return {f"{line[0]} {line[1]}": line[-1] for line in lines if len(line) == 3}


def until_logged(log, requests):
    end = time.monotonic() + DEADLINE
    while requests - set(logged(log)) and time.monotonic() < end:
        time.sleep(0.05)
    return logged(log)


def command(crt, text):
    with socket.socket(socket.AF_UNIX) as cli:
        cli.connect(f"{crt}.sock")
        cli.sendall(text.encode() + b"\n")
        answer = b""
        while part := cli.recv(65536):
            answer += part
    return answer.decode()


def failed_handshakes(crt):
    lines = command(crt, "show stat typed").splitlines()
    lines = [line for line in lines if line.startswith("F.") and ".ssl_failed_handshake." in line]
    return sum(int(line.rsplit(":", 1)[1]) for line in lines)


def refused(port, memory):
    """Early data is refused; its requests come again after the handshake."""
    with Client(port, memory) as one:
        # No more than the lower limit: aioquic sends the streams again without regard to it.
        streams = [one.ask("/") for _ in range(LOWER)]
        one.send()
        for stream in streams:
            assert one.answer(stream) == b"0 0 None"
        assert not one.completed.early_data_accepted


def after_reloads(program, files):
    """Sessions do not outlive their configuration, in place and in another process: its limits may be lower
    than those that their clients know."""
    with files.running(program, "tune.quic.fe.stream.max-concurrent 50"):
        first, second = first_visit(files.port), first_visit(files.port)
        files.handshake += 1
        files.write("tune.quic.fe.stream.max-concurrent 50")
        said = command(files.crt, "reload")
        assert "is in use" in said, said
        refused(files.port, first)
        # With a session of this configuration it is accepted.
        requests_of_the_first_flight(files.port)
    with files.running(program, f"tune.quic.fe.stream.max-concurrent {LOWER}"):
        refused(files.port, second)


class Files:
    def __init__(self, crt):
        server = OriginServer(("127.0.0.1", 0), EarlyOrigin)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.crt, self.origin = crt, server.server_address[1]
        self.port, self.certificates, self.without = free_port(), free_port(), free_port()
        self.log, self.handshake = f"{crt}.log", HANDSHAKE

    def write(self, tune):
        with open(f"{self.crt}.cfg", "w", encoding="utf-8") as file:
            file.write(CONFIG.format(tune=tune, **vars(self)))

    @contextlib.contextmanager
    def running(self, program, tune):
        self.write(tune)
        with open(self.log, "w", encoding="utf-8") as log:
            with running([program, "-db", "-f", f"{self.crt}.cfg"], self.port, log):
                yield


def main():
    program = sys.argv[1]
    with certificate() as crt:
        files = Files(crt)
        with files.running(program, ""):
            requests_of_the_first_flight(files.port)
            without_a_token(files.port)
            with_client_certificates(files.certificates)
            where_it_is_not_allowed(files.without)
            used_sessions(files.port)
            replayed_flight(files.port, crt)
            handshakes_that_never_end(files.port, crt, files.log)
            clients_that_leave(files.port, crt, files.log)
        after_reloads(program, files)
    print("interop: HTTP/3 with aioquic: early data: ok")


main()
