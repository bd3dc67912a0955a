//! The load: requests that are made once and sent again and again with other trace identifiers.

use otlp::write;

const SERVICES: usize = 24;
const INSTANCES: usize = 2;
pub const BATCH_SPANS: usize = 512;
pub const SPANS_OF_TRACE: u64 = 8;
/// Different requests, sent again and again with other trace identifiers.
const REQUESTS: usize = 192;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 20) % bound
    }
}

fn text(out: &mut Vec<u8>, field: u32, key: &str, value: &str) {
    write::message(out, field, |out| {
        write::bytes(out, 1, key.as_bytes());
        write::message(out, 2, |out| write::bytes(out, 1, value.as_bytes()));
    });
}

fn number(out: &mut Vec<u8>, key: &str, value: u64) {
    write::message(out, 9, |out| {
        write::bytes(out, 1, key.as_bytes());
        write::message(out, 2, |out| write::uint(out, 3, value));
    });
}

/// One of eight spans of a trace; its identifier is at the beginning. A hard one has two
/// identifiers of its own and a size.
fn span(out: &mut Vec<u8>, random: &mut Random, service: usize, hard: bool) {
    let route = random.below(20);
    let failed = random.below(400) == 0;
    let start = 1_700_000_000_000_000_000 + random.below(1 << 30);
    let slow = if random.below(400) == 0 {
        3_000_000_000
    } else {
        0
    };
    write::bytes(out, 1, &[0; 16]);
    write::bytes(out, 2, &random.next().to_be_bytes());
    write::bytes(out, 4, &random.next().to_be_bytes());
    write::bytes(out, 5, format!("GET /api/v1/resource-{route}").as_bytes());
    write::uint(out, 6, 2);
    write::fixed64(out, 7, start);
    write::fixed64(out, 8, start + slow + random.below(200_000_000));
    text(out, 9, "http.request.method", "GET");
    text(
        out,
        9,
        "url.path",
        &format!("/api/v1/resource-{route}/{}", random.below(90) + 10),
    );
    text(
        out,
        9,
        "http.route",
        &format!("/api/v1/resource-{route}/:id"),
    );
    number(
        out,
        "http.response.status_code",
        if failed { 500 } else { 200 },
    );
    text(
        out,
        9,
        "server.address",
        &format!("service-{service}.cluster"),
    );
    number(out, "server.port", 8080);
    text(
        out,
        9,
        "user_agent.original",
        "Mozilla/5.0 (X11; Linux x86_64) Bench/1.0",
    );
    text(out, 9, "network.protocol.version", "1.1");
    text(
        out,
        9,
        "customer.tier",
        if random.below(300) == 0 {
            "gold"
        } else {
            "bronze"
        },
    );
    number(out, "thread.id", random.below(64));
    if hard {
        let unique = [random.next(), random.next(), random.next(), random.next()];
        text(
            out,
            9,
            "session.id",
            &format!("{:016x}{:016x}", unique[0], unique[1]),
        );
        text(
            out,
            9,
            "enduser.id",
            &format!("{:016x}{:016x}", unique[2], unique[3]),
        );
        number(out, "http.response.body.size", random.below(1 << 20));
    }
    if failed {
        write::message(out, 15, |out| write::uint(out, 3, 2));
    }
}

fn request(random: &mut Random, resource: usize, hard: bool) -> Vec<u8> {
    let service = resource / INSTANCES;
    let mut out = Vec::new();
    write::message(&mut out, 1, |out| {
        write::message(out, 1, |out| {
            text(out, 1, "service.name", &format!("service-{service}"));
            text(
                out,
                1,
                "service.instance.id",
                &format!("instance-{resource}-0123456789abcdef"),
            );
            text(out, 1, "telemetry.sdk.name", "opentelemetry");
            text(
                out,
                1,
                "k8s.pod.name",
                &format!("service-{service}-6f7d8c9b5-x{resource}"),
            );
        });
        write::message(out, 2, |out| {
            write::message(out, 1, |out| {
                write::bytes(out, 1, b"io.opentelemetry.http-server")
            });
            for _ in 0..BATCH_SPANS {
                write::message(out, 2, |out| span(out, random, service, hard));
            }
        });
    });
    out
}

/// Where the trace identifiers of a request are.
fn places(request: &[u8]) -> Vec<usize> {
    let needle = [&[0x0a, 16][..], &[0; 16]].concat();
    let found = memchr::memmem::find_iter(request, &needle);
    found.map(|at| at + 2).collect()
}

/// Requests without end.
pub struct Load {
    requests: Vec<Vec<u8>>,
    places: Vec<Vec<usize>>,
    sent: u64,
}

impl Load {
    pub fn new(hard: bool) -> Load {
        let mut random = Random(7);
        let requests: Vec<_> = (0..REQUESTS)
            .map(|at| request(&mut random, at % (SERVICES * INSTANCES), hard))
            .collect();
        Load {
            places: requests.iter().map(|request| places(request)).collect(),
            requests,
            sent: 0,
        }
    }

    /// Bytes of a span.
    pub fn span_bytes(&self) -> usize {
        let bytes: usize = self.requests.iter().map(Vec::len).sum();
        bytes / REQUESTS / BATCH_SPANS
    }

    /// Spans of all requests so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The next request, and how many of its traces are new.
    pub fn next(&mut self) -> (&[u8], u64) {
        let batch = self.sent / BATCH_SPANS as u64;
        let at = batch as usize % REQUESTS;
        // Eight requests in a row are of the same 512 traces.
        let first = batch / SPANS_OF_TRACE * BATCH_SPANS as u64;
        let request = &mut self.requests[at];
        for (trace, place) in self.places[at].iter().enumerate() {
            let mut id = Random((first + trace as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            request[*place..place + 8].copy_from_slice(&id.next().to_be_bytes());
            request[place + 8..place + 16].copy_from_slice(&id.next().to_be_bytes());
        }
        self.sent += BATCH_SPANS as u64;
        let new = if batch.is_multiple_of(SPANS_OF_TRACE) {
            BATCH_SPANS as u64
        } else {
            0
        };
        (request, new)
    }
}
