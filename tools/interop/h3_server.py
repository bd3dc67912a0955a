"""An HTTP/3 server in aioquic with the contents of the origin."""

import asyncio

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from h3_client import BIG, PART, SLOW_PARTS, SLOW_PAUSE


def content(path):
    """The bytes of a path."""
    if path == "/big":
        return BIG
    if path == "/part":
        return PART
    if path == "/slow":
        return b"".join(b"%4d" % number for number in range(SLOW_PARTS))
    return path.encode()


class Server(QuicConnectionProtocol):
    """Answers with what was uploaded, or with the content of the path. `/update` begins an update of the keys."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http, self.requests, self.tasks = None, {}, set()

    def quic_event_received(self, event):
        self.http = self.http or H3Connection(self._quic)
        for got in self.http.handle_event(event):
            stream = getattr(got, "stream_id", None)
            if isinstance(got, HeadersReceived):
                self.requests[stream] = [dict(got.headers)[b":path"].decode(), b""]
            if isinstance(got, DataReceived):
                self.requests[stream][1] += got.data
            if stream in self.requests and got.stream_ended:
                task = asyncio.create_task(self.answer(stream, *self.requests.pop(stream)))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)

    async def answer(self, stream, path, uploaded):
        body = uploaded or content(path)
        early = b"true" if self._quic.tls.early_data_accepted else b"false"
        fields = [(b":status", b"200"), (b"content-length", b"%d" % len(body)), (b"x-early", early)]
        if path == "/update":
            self._quic.request_key_update()
        self.http.send_headers(stream, fields)
        if path == "/slow":
            size = len(body) // SLOW_PARTS
            for at in range(0, len(body) - size, size):
                await asyncio.sleep(SLOW_PAUSE)
                self.http.send_data(stream, body[at : at + size], end_stream=False)
                self.transmit()
            body = body[-size:]
        self.http.send_data(stream, body, end_stream=True)
        self.transmit()


async def server(crt, retry=False):
    """Serves with a certificate on a port of its own. Returns the server and its port."""
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(crt, f"{crt}.key")
    tickets = {}
    one = await serve(
        "127.0.0.1",
        0,
        configuration=configuration,
        create_protocol=Server,
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        retry=retry,
    )
    return one, one._transport.get_extra_info("sockname")[1]
