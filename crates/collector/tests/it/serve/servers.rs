//! Servers of all components, with the same options.

use super::*;

/// A server over HTTP and a request that it answers.
pub struct HttpServer {
    /// The section and the component's options, with `@` in the place of the server's.
    component: (&'static str, &'static str),
    /// What [`address`] calls it.
    pub name: &'static str,
    /// The first line of a request, without the version.
    pub line: &'static str,
    /// Its media type and its body, where it has one.
    pub body: Option<(&'static str, &'static [u8])>,
}

/// A `Batch` of Jaeger's Thrift: a process without a name and a span without anything.
const THRIFT: &[u8] = b"\x0c\0\x01\x0b\0\x01\0\0\0\x01s\0\x0f\0\x02\x0c\0\0\0\x01\x0a\0\x01\0\0\0\0\0\0\0\x09\x0a\0\x02\0\0\0\0\0\0\0\x07\x0a\0\x03\0\0\0\0\0\0\0\x03\0\0";
const ZIPKIN: &[u8] = br#"[{"traceId":"5af7183fb1d4cf5f","id":"1"}]"#;
/// One span of OTLP.
const OTLP: &[u8] = b"\x0a\x22\x12\x20\x12\x1e\x0a\x101234567890123456\x12\x0812345678\x2a\0";

/// Those that take spans.
pub const RECEIVERS: [HttpServer; 3] = [
    HttpServer {
        component: ("receivers", "otlp: { protocols: { http: { @ } } }"),
        name: "otlp http",
        line: "POST /v1/traces",
        body: Some(("application/x-protobuf", OTLP)),
    },
    HttpServer {
        component: ("receivers", "zipkin: { @ }"),
        name: "zipkin http",
        line: "POST /api/v2/spans",
        body: Some(("application/json", ZIPKIN)),
    },
    HttpServer {
        component: ("receivers", "jaeger: { protocols: { thrift_http: { @ } } }"),
        name: "jaeger thrift_http",
        line: "POST /api/traces",
        body: Some(("application/x-thrift", THRIFT)),
    },
];

/// Those of pages.
pub const PAGES: [HttpServer; 4] = [
    HttpServer {
        component: ("extensions", "health_check: { @ }"),
        name: "health_check",
        line: "GET /",
        body: None,
    },
    HttpServer {
        component: ("extensions", "healthcheckv2: { @ }"),
        name: "healthcheckv2",
        line: "GET /",
        body: None,
    },
    HttpServer {
        component: ("extensions", "healthcheckv2: { use_v2: true, http: { @ } }"),
        name: "healthcheckv2",
        line: "GET /status",
        body: None,
    },
    HttpServer {
        component: ("exporters", "prometheus: { @ }"),
        name: "prometheus",
        line: "GET /metrics",
        body: None,
    },
];

/// All of them.
pub fn http_servers() -> impl Iterator<Item = &'static HttpServer> {
    RECEIVERS.iter().chain(&PAGES)
}

impl HttpServer {
    /// A collector with this server, anywhere, with more options of it.
    pub fn start(&self, options: &str) -> Collector {
        self.start_with(&format!("endpoint: '127.0.0.1:0', {options}"), "nop:")
    }

    /// The same with all options of it, and an exporter.
    pub fn start_with(&self, options: &str, exporter: &str) -> Collector {
        started(self.component, options, exporter)
    }

    /// A request with more fields, each with its line end.
    pub fn request(&self, fields: &str) -> Vec<u8> {
        self.request_of(self.line, fields)
    }

    /// The same with another first line.
    pub fn request_of(&self, line: &str, fields: &str) -> Vec<u8> {
        let mut request = format!("{line} HTTP/1.1\r\nhost: x\r\n{fields}").into_bytes();
        if let Some((media, body)) = self.body {
            let len = body.len();
            let more = format!("content-type: {media}\r\ncontent-length: {len}\r\n\r\n");
            request.extend(more.bytes());
            request.extend(body);
        } else {
            request.extend(b"\r\n");
        }
        request
    }
}

/// A server over gRPC.
pub struct GrpcServer {
    component: (&'static str, &'static str),
    /// What [`address`] calls it.
    pub name: &'static str,
    /// A method that it has.
    pub method: &'static str,
}

/// All of them.
pub const GRPC_SERVERS: [GrpcServer; 3] = [
    GrpcServer {
        component: ("receivers", "otlp: { protocols: { grpc: { @ } } }"),
        name: "otlp grpc",
        method: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    },
    GrpcServer {
        component: ("receivers", "jaeger: { protocols: { grpc: { @ } } }"),
        name: "jaeger grpc",
        method: "/jaeger.api_v2.CollectorService/PostSpans",
    },
    GrpcServer {
        component: ("extensions", "healthcheckv2: { use_v2: true, grpc: { @ } }"),
        name: "healthcheckv2 grpc",
        method: "/grpc.health.v1.Health/Check",
    },
];

impl GrpcServer {
    /// A collector with this server, anywhere, with more options of it.
    pub fn start(&self, options: &str) -> Collector {
        self.start_with(&format!("endpoint: '127.0.0.1:0', {options}"))
    }

    /// The same with all options of it.
    pub fn start_with(&self, options: &str) -> Collector {
        started(self.component, options, "nop:")
    }
}

/// A collector with one component, an authenticator that knows the token `key`, and an exporter.
fn started((section, component): (&str, &str), options: &str, exporter: &str) -> Collector {
    let component = component.replace('@', options);
    let id = component.split(':').next().expect("an id").to_owned();
    let token = "bearertokenauth: { token: key }";
    let exporter_id = exporter.split(':').next().expect("an id").to_owned();
    let (mut receivers, mut receiver) = ("nop:".to_owned(), "nop".to_owned());
    let (mut exporters, mut exporter) = (exporter.to_owned(), exporter_id);
    let (mut more, mut extension) = (String::new(), String::new());
    let mut signal = "traces";
    match section {
        "receivers" => (receivers, receiver) = (component, id),
        "exporters" => (exporters, exporter, signal) = (component, id, "metrics"),
        _ => (more, extension) = (format!(", {component}"), format!(", {id}")),
    }
    start(&format!(
        "receivers: {{ {receivers} }}\nextensions: {{ {token}{more} }}\nexporters: {{ {exporters} }}\n\
         service: {{ {NO_METRICS}, extensions: [bearertokenauth{extension}], \
         pipelines: {{ {signal}: {{ receivers: [{receiver}], exporters: [{exporter}] }} }} }}"
    ))
}
