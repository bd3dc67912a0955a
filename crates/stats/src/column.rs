//! The table of all fields of frontends, listeners, servers and backends. Names, order and types
//! are HAProxy's (management guide §9.1).

use crate::row::Kind;
use crate::tags::Nature::{
    self, Age, Average, Counter, Duration, Gauge, Limit, Max, Name, Output, Rate,
};
use crate::tags::Origin::{self, Config, Key, Metric, Status};
use crate::tags::Scope::{Process, Service};
use crate::tags::Tags;

/// The kinds of objects that have a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

const fn bit(kind: Kind) -> u8 {
    1 << kind as u8
}

const F_BIT: u8 = bit(Kind::Frontend);
const B_BIT: u8 = bit(Kind::Backend);
const S_BIT: u8 = bit(Kind::Server);
const L_BIT: u8 = bit(Kind::Listener);

/// Keys and texts, which exporters of numbers do not show.
const NONE: Kinds = Kinds(0);
const ALL: Kinds = Kinds(F_BIT | B_BIT | S_BIT | L_BIT);
const LFB: Kinds = Kinds(L_BIT | F_BIT | B_BIT);
const LF: Kinds = Kinds(L_BIT | F_BIT);
const FBS: Kinds = Kinds(F_BIT | B_BIT | S_BIT);
const FB: Kinds = Kinds(F_BIT | B_BIT);
const BS: Kinds = Kinds(B_BIT | S_BIT);
const F: Kinds = Kinds(F_BIT);
const B: Kinds = Kinds(B_BIT);
const S: Kinds = Kinds(S_BIT);

impl Kinds {
    /// Whether objects of this kind have it.
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & bit(kind) != 0
    }

    /// Whether frontends or listeners have it.
    #[must_use]
    pub const fn is_front(self) -> bool {
        self.0 & (F_BIT | L_BIT) != 0
    }

    /// Whether backends or servers have it.
    #[must_use]
    pub const fn is_back(self) -> bool {
        self.0 & (B_BIT | S_BIT) != 0
    }
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in CSV.
    pub name: &'static str,
    /// The properties of its value.
    pub tags: Tags,
    /// The kinds that have it.
    pub kinds: Kinds,
    /// Its name in Prometheus; empty if it is not exported.
    pub metric: &'static str,
    /// Several processes may count it together, and a file may set its initial value.
    pub is_shared: bool,
    /// One line of description.
    pub about: &'static str,
}

const fn own(
    name: &'static str,
    tags: Tags,
    kinds: Kinds,
    metric: &'static str,
    about: &'static str,
) -> Field {
    Field {
        name,
        tags,
        kinds,
        metric,
        is_shared: false,
        about,
    }
}

const fn shared(
    name: &'static str,
    tags: Tags,
    kinds: Kinds,
    metric: &'static str,
    about: &'static str,
) -> Field {
    Field {
        is_shared: true,
        ..own(name, tags, kinds, metric, about)
    }
}

macro_rules! columns {
    ($($column:ident: $field:expr;)*) => {
        /// A field, by its index.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Column { $($column),* }

        /// All fields, by [`Column`].
        pub const FIELDS: &[Field] = &[$($field),*];

        impl Column {
            /// All fields in order.
            pub const ALL: &[Column] = &[$(Column::$column),*];
        }
    };
}

#[rustfmt::skip]
columns! {
    Pxname: own("pxname", (Key, Name, Service), NONE, "", "Name of the proxy");
    Svname: own("svname", (Key, Name, Service), NONE, "", "Name of the server or listener, FRONTEND or BACKEND");
    Qcur: own("qcur", (Metric, Gauge, Process), BS, "current_queue", "Requests that wait in the queue now");
    Qmax: own("qmax", (Metric, Max, Process), BS, "max_queue", "Most requests that waited in the queue at once");
    Scur: own("scur", (Metric, Gauge, Process), ALL, "current_sessions", "Connections or streams now");
    Smax: own("smax", (Metric, Max, Process), ALL, "max_sessions", "Most connections or streams at once");
    Slim: own("slim", (Config, Limit, Process), ALL, "limit_sessions", "Limit of connections or streams: maxconn, or fullconn of a backend");
    Stot: shared("stot", (Metric, Counter, Process), ALL, "sessions_total", "Connections or streams since the start");
    Bin: shared("bin", (Metric, Counter, Process), ALL, "bytes_in_total", "Bytes of requests received from clients");
    Bout: shared("bout", (Metric, Counter, Process), ALL, "bytes_out_total", "Bytes of responses received from servers");
    Dreq: shared("dreq", (Metric, Counter, Process), LFB, "requests_denied_total", "Requests that a rule denied");
    Dresp: shared("dresp", (Metric, Counter, Process), ALL, "responses_denied_total", "Responses that a rule denied");
    Ereq: shared("ereq", (Metric, Counter, Process), LF, "request_errors_total", "Requests that were not understood or did not come in time");
    Econ: shared("econ", (Metric, Counter, Process), BS, "connection_errors_total", "Connections to servers that failed");
    Eresp: shared("eresp", (Metric, Counter, Process), BS, "response_errors_total", "Responses that were not understood or did not come in time");
    Wretr: shared("wretr", (Metric, Counter, Process), BS, "retry_warnings_total", "Connections to servers that were tried again");
    Wredis: shared("wredis", (Metric, Counter, Process), BS, "redispatch_warnings_total", "Requests that went to another server after a failure");
    Status: own("status", (Status, Gauge, Process), ALL, "status", "State: OPEN or STOP, UP or DOWN, or that of the server's checks");
    Weight: own("weight", (Metric, Average, Process), BS, "weight", "Effective weight");
    Act: own("act", (Metric, Gauge, Process), BS, "active_servers", "Active servers that take traffic; of a server, whether it is one");
    Bck: own("bck", (Metric, Gauge, Process), BS, "backup_servers", "Backup servers that take traffic; of a server, whether it is one");
    Chkfail: shared("chkfail", (Metric, Counter, Process), S, "check_failures_total", "Health checks that failed");
    Chkdown: shared("chkdown", (Metric, Counter, Process), BS, "check_up_down_total", "Changes from UP to DOWN");
    Lastchg: shared("lastchg", (Metric, Age, Process), BS, "check_last_change_seconds", "Seconds since the state changed");
    Downtime: own("downtime", (Metric, Counter, Process), BS, "downtime_seconds_total", "Seconds spent in state DOWN");
    Qlimit: own("qlimit", (Config, Gauge, Service), S, "queue_limit", "Limit of requests that wait for the server (maxqueue)");
    Pid: own("pid", (Key, Gauge, Process), NONE, "", "Number of the process, always 1");
    Iid: own("iid", (Key, Gauge, Service), NONE, "", "Number of the proxy (id)");
    Sid: own("sid", (Key, Gauge, Service), NONE, "", "Number of the server or listener (id)");
    Throttle: own("throttle", (Metric, Average, Process), S, "current_throttle", "Share of its weight that a starting server has, in per cent");
    Lbtot: shared("lbtot", (Metric, Counter, Process), BS, "loadbalanced_total", "Requests that balancing sent here");
    Tracked: own("tracked", (Config, Name, Service), NONE, "", "The server whose state this one follows");
    Type: own("type", (Config, Gauge, Service), NONE, "", "0 for a frontend, 1 for a backend, 2 for a server, 3 for a listener");
    Rate: shared("rate", (Metric, Rate, Process), FBS, "current_session_rate", "Connections or streams of the last second");
    RateLim: own("rate_lim", (Config, Limit, Process), F, "limit_session_rate", "Limit of new connections a second (rate-limit sessions)");
    RateMax: own("rate_max", (Metric, Max, Process), FBS, "max_session_rate", "Most connections or streams within a second");
    CheckStatus: own("check_status", (Metric, Output, Process), S, "check_status", "Result of the last health check, with '* ' while one runs");
    CheckCode: own("check_code", (Metric, Output, Process), S, "check_code", "Status code that the last health check got");
    CheckDuration: own("check_duration", (Metric, Duration, Process), S, "check_duration_seconds", "Milliseconds that the last health check took");
    Hrsp1xx: shared("hrsp_1xx", (Metric, Counter, Process), FBS, "http_responses_total", "Responses with status 100 to 199");
    Hrsp2xx: shared("hrsp_2xx", (Metric, Counter, Process), FBS, "http_responses_total", "Responses with status 200 to 299");
    Hrsp3xx: shared("hrsp_3xx", (Metric, Counter, Process), FBS, "http_responses_total", "Responses with status 300 to 399");
    Hrsp4xx: shared("hrsp_4xx", (Metric, Counter, Process), FBS, "http_responses_total", "Responses with status 400 to 499");
    Hrsp5xx: shared("hrsp_5xx", (Metric, Counter, Process), FBS, "http_responses_total", "Responses with status 500 to 599");
    HrspOther: shared("hrsp_other", (Metric, Counter, Process), FBS, "http_responses_total", "Responses with another status");
    Hanafail: shared("hanafail", (Metric, Counter, Process), S, "", "Failures that were observed in traffic");
    ReqRate: shared("req_rate", (Metric, Rate, Process), F, "", "Requests of the last second");
    ReqRateMax: own("req_rate_max", (Metric, Max, Process), F, "http_requests_rate_max", "Most requests within a second");
    ReqTot: shared("req_tot", (Metric, Counter, Process), FBS, "http_requests_total", "Requests since the start");
    CliAbrt: shared("cli_abrt", (Metric, Counter, Process), BS, "client_aborts_total", "Streams that the client ended early");
    SrvAbrt: shared("srv_abrt", (Metric, Counter, Process), BS, "server_aborts_total", "Streams that the server ended early");
    CompIn: shared("comp_in", (Metric, Counter, Process), FB, "http_comp_bytes_in_total", "Bytes given to compression");
    CompOut: shared("comp_out", (Metric, Counter, Process), FB, "http_comp_bytes_out_total", "Bytes that compression gave");
    CompByp: shared("comp_byp", (Metric, Counter, Process), FB, "http_comp_bytes_bypassed_total", "Bytes that compression left as they were");
    CompRsp: shared("comp_rsp", (Metric, Counter, Process), FB, "http_comp_responses_total", "Responses that were compressed");
    Lastsess: shared("lastsess", (Metric, Age, Process), BS, "last_session_seconds", "Seconds since the last stream");
    LastChk: own("last_chk", (Metric, Output, Process), NONE, "", "What the last health check found");
    LastAgt: own("last_agt", (Metric, Output, Process), NONE, "", "What the last agent check found");
    Qtime: own("qtime", (Metric, Average, Process), BS, "queue_time_average_seconds", "Milliseconds in queues, averaged over the last requests");
    Ctime: own("ctime", (Metric, Average, Process), BS, "connect_time_average_seconds", "Milliseconds until the connection to the server stood, averaged over the last requests");
    Rtime: own("rtime", (Metric, Average, Process), BS, "response_time_average_seconds", "Milliseconds until the response began, averaged over the last requests");
    Ttime: own("ttime", (Metric, Average, Process), BS, "total_time_average_seconds", "Milliseconds in all, averaged over the last requests");
    AgentStatus: own("agent_status", (Metric, Output, Process), S, "agent_status", "Result of the last agent check, with '* ' while one runs");
    AgentCode: own("agent_code", (Metric, Output, Process), S, "agent_code", "Status code that the last agent check got");
    AgentDuration: own("agent_duration", (Metric, Duration, Process), S, "agent_duration_seconds", "Milliseconds that the last agent check took");
    CheckDesc: own("check_desc", (Metric, Output, Process), NONE, "", "What the result of the last health check means");
    AgentDesc: own("agent_desc", (Metric, Output, Process), NONE, "", "What the result of the last agent check means");
    CheckRise: own("check_rise", (Config, Gauge, Service), NONE, "", "Good health checks after which a server is UP (rise)");
    CheckFall: own("check_fall", (Config, Gauge, Service), NONE, "", "Failed health checks after which a server is DOWN (fall)");
    CheckHealth: own("check_health", (Config, Gauge, Service), NONE, "", "Health by checks: below rise is DOWN");
    AgentRise: own("agent_rise", (Config, Gauge, Service), NONE, "", "Good agent checks after which a server is UP");
    AgentFall: own("agent_fall", (Config, Gauge, Service), NONE, "", "Failed agent checks after which a server is DOWN");
    AgentHealth: own("agent_health", (Config, Gauge, Service), NONE, "", "Health by agent checks: below agent_rise is DOWN");
    Addr: own("addr", (Config, Gauge, Service), NONE, "", "Address and port");
    Cookie: own("cookie", (Config, Name, Service), NONE, "", "Name of the backend's cookie, or value of the server's");
    Mode: own("mode", (Config, Gauge, Service), NONE, "", "Mode of the proxy");
    Algo: own("algo", (Config, Gauge, Service), NONE, "", "Balancing algorithm");
    ConnRate: shared("conn_rate", (Metric, Rate, Process), F, "", "Connections accepted in the last second");
    ConnRateMax: own("conn_rate_max", (Metric, Max, Process), F, "connections_rate_max", "Most connections accepted within a second");
    ConnTot: shared("conn_tot", (Metric, Counter, Process), LF, "connections_total", "Connections accepted since the start");
    Intercepted: shared("intercepted", (Metric, Counter, Process), F, "intercepted_requests_total", "Requests that the frontend answered by itself");
    Dcon: shared("dcon", (Metric, Counter, Process), LF, "denied_connections_total", "Connections that a rule denied");
    Dses: shared("dses", (Metric, Counter, Process), LF, "denied_sessions_total", "Sessions that a rule denied");
    Wrew: shared("wrew", (Metric, Counter, Process), ALL, "failed_header_rewriting_total", "Rewrites of headers that failed");
    Connect: shared("connect", (Metric, Counter, Process), BS, "connection_attempts_total", "Connections to servers that were tried");
    Reuse: shared("reuse", (Metric, Counter, Process), BS, "connection_reuses_total", "Requests that went over a connection that had served before");
    CacheLookups: shared("cache_lookups", (Metric, Counter, Process), FB, "http_cache_lookups_total", "Requests that were looked up in the cache");
    CacheHits: shared("cache_hits", (Metric, Counter, Process), FB, "http_cache_hits_total", "Requests that the cache answered");
    SrvIcur: own("srv_icur", (Metric, Gauge, Process), S, "idle_connections_current", "Idle connections to the server now");
    SrvIlim: own("src_ilim", (Config, Limit, Process), S, "idle_connections_limit", "Limit of idle connections to the server (pool-max-conn)");
    QtMax: own("qtime_max", (Metric, Max, Process), BS, "max_queue_time_seconds", "Most milliseconds in queues");
    CtMax: own("ctime_max", (Metric, Max, Process), BS, "max_connect_time_seconds", "Most milliseconds until the connection to the server stood");
    RtMax: own("rtime_max", (Metric, Max, Process), BS, "max_response_time_seconds", "Most milliseconds until the response began");
    TtMax: own("ttime_max", (Metric, Max, Process), BS, "max_total_time_seconds", "Most milliseconds in all");
    Eint: shared("eint", (Metric, Counter, Process), ALL, "internal_errors_total", "Internal errors");
    IdleConnCur: own("idle_conn_cur", (Metric, Gauge, Process), S, "unsafe_idle_connections_current", "Idle connections to the server now");
    SafeConnCur: own("safe_conn_cur", (Metric, Gauge, Process), S, "safe_idle_connections_current", "Idle connections now that are known to be safe for any request");
    UsedConnCur: own("used_conn_cur", (Metric, Gauge, Process), S, "used_connections_current", "Connections to the server in use now");
    NeedConnEst: own("need_conn_est", (Metric, Gauge, Process), S, "need_connections_current", "Connections that the server is estimated to need");
    Uweight: own("uweight", (Metric, Average, Process), BS, "uweight", "Configured weight, or the sum of those of the servers in use");
    AggSrvStatus: own("agg_server_status", (Metric, Gauge, Process), B, "agg_server_status", "Servers by state");
    AggSrvCheckStatus: own("agg_server_check_status", (Metric, Gauge, Process), B, "agg_server_check_status", "Servers by state (deprecated)");
    AggCheckStatus: own("agg_check_status", (Metric, Gauge, Process), B, "agg_check_status", "Servers by the result of their last check");
    Srid: own("srid", (Metric, Counter, Process), NONE, "", "Number that tells apart servers that had the same number");
    SessOther: own("sess_other", (Metric, Counter, Process), NONE, "", "Sessions of other protocols than HTTP");
    H1sess: shared("h1sess", (Metric, Counter, Process), F, "", "Sessions of HTTP/1");
    H2sess: shared("h2sess", (Metric, Counter, Process), F, "", "Sessions of HTTP/2");
    H3sess: shared("h3sess", (Metric, Counter, Process), F, "", "Sessions of HTTP/3");
    ReqOther: shared("req_other", (Metric, Counter, Process), F, "", "Requests of other protocols than HTTP");
    H1req: shared("h1req", (Metric, Counter, Process), F, "", "Requests of HTTP/1");
    H2req: shared("h2req", (Metric, Counter, Process), F, "", "Requests of HTTP/2");
    H3req: shared("h3req", (Metric, Counter, Process), F, "", "Requests of HTTP/3");
    Proto: own("proto", (Status, Gauge, Process), NONE, "", "Protocol of the listener");
    PrivIdleCur: own("priv_idle_cur", (Metric, Gauge, Process), S, "private_idle_connections_current", "Idle connections now that belong to one client");
    ReqIn: shared("reqbin", (Metric, Counter, Process), ALL, "req_bytes_in_total", "Bytes of requests received from clients");
    ReqOut: shared("reqbout", (Metric, Counter, Process), ALL, "req_bytes_out_total", "Bytes of requests sent to servers");
    ResIn: shared("resbin", (Metric, Counter, Process), ALL, "res_bytes_in_total", "Bytes of responses received from servers");
    ResOut: shared("resbout", (Metric, Counter, Process), ALL, "res_bytes_out_total", "Bytes of responses sent to clients");
    CacheHintHits: shared("cache_hint_hits", (Metric, Counter, Process), FB, "http_cache_hint_hits_total", "Requests whose early hints came from the cache");
    // The fields of HAProxy's modules.
    H2HeadersRcvd: own("h2_headers_rcvd", (Metric, Counter, Process), FB, "h2_headers_rcvd", "HEADERS frames received");
    H2DataRcvd: own("h2_data_rcvd", (Metric, Counter, Process), FB, "h2_data_rcvd", "DATA frames received");
    H2SettingsRcvd: own("h2_settings_rcvd", (Metric, Counter, Process), FB, "h2_settings_rcvd", "SETTINGS frames received");
    H2RstStreamRcvd: own("h2_rst_stream_rcvd", (Metric, Counter, Process), FB, "h2_rst_stream_rcvd", "RST_STREAM frames received");
    H2GoawayRcvd: own("h2_goaway_rcvd", (Metric, Counter, Process), FB, "h2_goaway_rcvd", "GOAWAY frames received");
    H2ConnErrors: own("h2_detected_conn_protocol_errors", (Metric, Counter, Process), FB, "h2_detected_conn_protocol_errors", "Errors of HTTP/2 peers that ended the connection");
    H2StrmErrors: own("h2_detected_strm_protocol_errors", (Metric, Counter, Process), FB, "h2_detected_strm_protocol_errors", "Errors of HTTP/2 peers that ended a stream");
    H2RstStreamResp: own("h2_rst_stream_resp", (Metric, Counter, Process), FB, "h2_rst_stream_resp", "RST_STREAM frames sent");
    H2GoawayResp: own("h2_goaway_resp", (Metric, Counter, Process), FB, "h2_goaway_resp", "GOAWAY frames sent");
    H2OpenConn: own("h2_open_connections", (Metric, Gauge, Process), FB, "h2_open_connections", "HTTP/2 connections now");
    H2OpenStreams: own("h2_backend_open_streams", (Metric, Gauge, Process), FB, "h2_backend_open_streams", "HTTP/2 streams now");
    H2TotalConn: own("h2_total_connections", (Metric, Counter, Process), FB, "h2_total_connections", "HTTP/2 connections since the start");
    H2TotalStreams: own("h2_backend_total_streams", (Metric, Counter, Process), FB, "h2_backend_total_streams", "HTTP/2 streams since the start");
    SslSess: own("ssl_sess", (Metric, Counter, Process), ALL, "ssl_sess", "Completed TLS handshakes");
    SslReusedSess: own("ssl_reused_sess", (Metric, Counter, Process), ALL, "ssl_reused_sess", "TLS handshakes that resumed a session");
    SslFailed: own("ssl_failed_handshake", (Metric, Counter, Process), ALL, "ssl_failed_handshake", "Failed TLS handshakes");
    SslOcspStaple: own("ssl_ocsp_staple", (Metric, Counter, Process), NONE, "", "TLS handshakes with a stapled status");
    SslFailedOcsp: own("ssl_failed_ocsp_staple", (Metric, Counter, Process), NONE, "", "TLS handshakes whose status had expired");
    H3Data: own("h3_data", (Metric, Counter, Process), FB, "h3_data", "HTTP/3 DATA frames received");
    H3Headers: own("h3_headers", (Metric, Counter, Process), FB, "h3_headers", "HTTP/3 HEADERS frames received");
    H3CancelPush: own("h3_cancel_push", (Metric, Counter, Process), FB, "h3_cancel_push", "HTTP/3 CANCEL_PUSH frames received");
    H3PushPromise: own("h3_push_promise", (Metric, Counter, Process), FB, "h3_push_promise", "HTTP/3 PUSH_PROMISE frames received; clients must not send any");
    H3MaxPushId: own("h3_max_push_id", (Metric, Counter, Process), FB, "h3_max_push_id", "HTTP/3 MAX_PUSH_ID frames received");
    H3Goaway: own("h3_goaway", (Metric, Counter, Process), FB, "h3_goaway", "HTTP/3 GOAWAY frames received");
    H3Settings: own("h3_settings", (Metric, Counter, Process), FB, "h3_settings", "HTTP/3 SETTINGS frames received");
    H3NoError: own("h3_no_error", (Metric, Counter, Process), FB, "h3_no_error", "Connections that the peer closed with H3_NO_ERROR");
    H3GeneralProtocolError: own("h3_general_protocol_error", (Metric, Counter, Process), FB, "h3_general_protocol_error", "Connections that the peer closed with H3_GENERAL_PROTOCOL_ERROR");
    H3InternalError: own("h3_internal_error", (Metric, Counter, Process), FB, "h3_internal_error", "Connections that the peer closed with H3_INTERNAL_ERROR");
    H3StreamCreationError: own("h3_stream_creation_error", (Metric, Counter, Process), FB, "h3_stream_creation_error", "Connections that the peer closed with H3_STREAM_CREATION_ERROR");
    H3ClosedCriticalStream: own("h3_closed_critical_stream", (Metric, Counter, Process), FB, "h3_closed_critical_stream", "Connections that the peer closed with H3_CLOSED_CRITICAL_STREAM");
    H3FrameUnexpected: own("h3_frame_unexpected", (Metric, Counter, Process), FB, "h3_frame_unexpected", "Connections that the peer closed with H3_FRAME_UNEXPECTED");
    H3FrameError: own("h3_frame_error", (Metric, Counter, Process), FB, "h3_frame_error", "Connections that the peer closed with H3_FRAME_ERROR");
    H3ExcessiveLoad: own("h3_excessive_load", (Metric, Counter, Process), FB, "h3_excessive_load", "Connections that the peer closed with H3_EXCESSIVE_LOAD");
    H3IdError: own("h3_id_error", (Metric, Counter, Process), FB, "h3_id_error", "Connections that the peer closed with H3_ID_ERROR");
    H3SettingsError: own("h3_settings_error", (Metric, Counter, Process), FB, "h3_settings_error", "Connections that the peer closed with H3_SETTINGS_ERROR");
    H3MissingSettings: own("h3_missing_settings", (Metric, Counter, Process), FB, "h3_missing_settings", "Connections that the peer closed with H3_MISSING_SETTINGS");
    H3RequestRejected: own("h3_request_rejected", (Metric, Counter, Process), FB, "h3_request_rejected", "Connections that the peer closed with H3_REQUEST_REJECTED");
    H3RequestCancelled: own("h3_request_cancelled", (Metric, Counter, Process), FB, "h3_request_cancelled", "Connections that the peer closed with H3_REQUEST_CANCELLED");
    H3RequestIncomplete: own("h3_request_incomplete", (Metric, Counter, Process), FB, "h3_request_incomplete", "Connections that the peer closed with H3_REQUEST_INCOMPLETE");
    H3MessageError: own("h3_message_error", (Metric, Counter, Process), FB, "h3_message_error", "Connections that the peer closed with H3_MESSAGE_ERROR");
    H3ConnectError: own("h3_connect_error", (Metric, Counter, Process), FB, "h3_connect_error", "Connections that the peer closed with H3_CONNECT_ERROR");
    H3VersionFallback: own("h3_version_fallback", (Metric, Counter, Process), FB, "h3_version_fallback", "Connections that the peer closed with H3_VERSION_FALLBACK");
    QpackDecompressionFailed: own("pack_decompression_failed", (Metric, Counter, Process), FB, "pack_decompression_failed", "Connections that the peer closed with QPACK_DECOMPRESSION_FAILED");
    QpackEncoderStreamError: own("qpack_encoder_stream_error", (Metric, Counter, Process), FB, "qpack_encoder_stream_error", "Connections that the peer closed with QPACK_ENCODER_STREAM_ERROR");
    QpackDecoderStreamError: own("qpack_decoder_stream_error", (Metric, Counter, Process), FB, "qpack_decoder_stream_error", "Connections that the peer closed with QPACK_DECODER_STREAM_ERROR");
    QuicRxbufFull: own("quic_rxbuf_full", (Metric, Counter, Process), FB, "quic_rxbuf_full", "Datagrams that found no room in a receive buffer; none");
    QuicDroppedPkt: own("quic_dropped_pkt", (Metric, Counter, Process), FB, "quic_dropped_pkt", "Packets that would have begun a connection and were ignored");
    QuicDroppedBufoverrun: own("quic_dropped_pkt_bufoverrun", (Metric, Counter, Process), FB, "quic_dropped_pkt_bufoverrun", "Packets that found no room in a buffer; none");
    QuicDroppedParsing: own("quic_dropped_parsing_pkt", (Metric, Counter, Process), FB, "quic_dropped_parsing_pkt", "Packets that could not be read; not counted");
    QuicSocketFull: own("quic_socket_full", (Metric, Counter, Process), FB, "quic_socket_full", "How often the socket had no room for datagrams");
    QuicSendtoErr: own("quic_sendto_err", (Metric, Counter, Process), FB, "quic_sendto_err", "Datagrams that could not be sent; not counted");
    QuicSendtoErrUnknown: own("quic_sendto_err_unknwn", (Metric, Counter, Process), FB, "quic_sendto_err_unknwn", "Datagrams that could not be sent for another reason; not counted");
    QuicSentPkt: own("quic_sent_pkt", (Metric, Counter, Process), FB, "quic_sent_pkt", "Packets sent");
    QuicLostPkt: own("quic_lost_pkt", (Metric, Counter, Process), FB, "quic_lost_pkt", "Packets sent and lost");
    QuicTooShortDgram: own("quic_too_short_dgram", (Metric, Counter, Process), FB, "quic_too_short_dgram", "Datagrams too short for what begins a connection; not counted");
    QuicRetrySent: own("quic_retry_sent", (Metric, Counter, Process), FB, "quic_retry_sent", "Retry packets sent");
    QuicRetryValidated: own("quic_retry_validated", (Metric, Counter, Process), FB, "quic_retry_validated", "Tokens of Retry that were right");
    QuicRetryError: own("quic_retry_error", (Metric, Counter, Process), FB, "quic_retry_error", "Tokens of Retry that were wrong; not counted");
    QuicHalfOpenConn: own("quic_half_open_conn", (Metric, Gauge, Process), FB, "quic_half_open_conn", "Connections now whose clients have not shown yet that they have their address");
    QuicHdshkFail: own("quic_hdshk_fail", (Metric, Counter, Process), FB, "quic_hdshk_fail", "Failed handshakes");
    QuicStlessRstSent: own("quic_stless_rst_sent", (Metric, Counter, Process), FB, "quic_stless_rst_sent", "Stateless resets sent");
    QuicConnMigrationDone: own("quic_conn_migration_done", (Metric, Counter, Process), FB, "quic_conn_migration_done", "How often a peer's address has changed");
    QuicErrNoError: own("quic_transp_err_no_error", (Metric, Counter, Process), FB, "quic_transp_err_no_error", "Connections that the peer ended with NO_ERROR");
    QuicErrInternalError: own("quic_transp_err_internal_error", (Metric, Counter, Process), FB, "quic_transp_err_internal_error", "Connections that the peer ended with INTERNAL_ERROR");
    QuicErrConnectionRefused: own("quic_transp_err_connection_refused", (Metric, Counter, Process), FB, "quic_transp_err_connection_refused", "Connections that the peer ended with CONNECTION_REFUSED");
    QuicErrFlowControlError: own("quic_transp_err_flow_control_error", (Metric, Counter, Process), FB, "quic_transp_err_flow_control_error", "Connections that the peer ended with FLOW_CONTROL_ERROR");
    QuicErrStreamLimitError: own("quic_transp_err_stream_limit_error", (Metric, Counter, Process), FB, "quic_transp_err_stream_limit_error", "Connections that the peer ended with STREAM_LIMIT_ERROR");
    QuicErrStreamStateError: own("quic_transp_err_stream_state_error", (Metric, Counter, Process), FB, "quic_transp_err_stream_state_error", "Connections that the peer ended with STREAM_STATE_ERROR");
    QuicErrFinalSizeError: own("quic_transp_err_final_size_error", (Metric, Counter, Process), FB, "quic_transp_err_final_size_error", "Connections that the peer ended with FINAL_SIZE_ERROR");
    QuicErrFrameEncodingError: own("quic_transp_err_frame_encoding_error", (Metric, Counter, Process), FB, "quic_transp_err_frame_encoding_error", "Connections that the peer ended with FRAME_ENCODING_ERROR");
    QuicErrTransportParameterError: own("quic_transp_err_transport_parameter_error", (Metric, Counter, Process), FB, "quic_transp_err_transport_parameter_error", "Connections that the peer ended with TRANSPORT_PARAMETER_ERROR");
    QuicErrConnectionIdLimit: own("quic_transp_err_connection_id_limit", (Metric, Counter, Process), FB, "quic_transp_err_connection_id_limit", "Connections that the peer ended with CONNECTION_ID_LIMIT_ERROR");
    QuicErrProtocolViolationError: own("quic_transp_err_protocol_violation_error", (Metric, Counter, Process), FB, "quic_transp_err_protocol_violation_error", "Connections that the peer ended with PROTOCOL_VIOLATION");
    QuicErrInvalidToken: own("quic_transp_err_invalid_token", (Metric, Counter, Process), FB, "quic_transp_err_invalid_token", "Connections that the peer ended with INVALID_TOKEN");
    QuicErrApplicationError: own("quic_transp_err_application_error", (Metric, Counter, Process), FB, "quic_transp_err_application_error", "Connections that the peer ended with APPLICATION_ERROR");
    QuicErrCryptoBufferExceeded: own("quic_transp_err_crypto_buffer_exceeded", (Metric, Counter, Process), FB, "quic_transp_err_crypto_buffer_exceeded", "Connections that the peer ended with CRYPTO_BUFFER_EXCEEDED");
    QuicErrKeyUpdateError: own("quic_transp_err_key_update_error", (Metric, Counter, Process), FB, "quic_transp_err_key_update_error", "Connections that the peer ended with KEY_UPDATE_ERROR");
    QuicErrAeadLimitReached: own("quic_transp_err_aead_limit_reached", (Metric, Counter, Process), FB, "quic_transp_err_aead_limit_reached", "Connections that the peer ended with AEAD_LIMIT_REACHED");
    QuicErrNoViablePath: own("quic_transp_err_no_viable_path", (Metric, Counter, Process), FB, "quic_transp_err_no_viable_path", "Connections that the peer ended with NO_VIABLE_PATH");
    QuicErrCryptoError: own("quic_transp_err_crypto_error", (Metric, Counter, Process), FB, "quic_transp_err_crypto_error", "Connections that the peer ended with an alert of TLS");
    QuicErrUnknownError: own("quic_transp_err_unknown_error", (Metric, Counter, Process), FB, "quic_transp_err_unknown_error", "Connections that the peer ended with another code");
    QuicDataBlocked: own("quic_data_blocked", (Metric, Counter, Process), FB, "quic_data_blocked", "DATA_BLOCKED frames received");
    QuicStreamDataBlocked: own("quic_stream_data_blocked", (Metric, Counter, Process), FB, "quic_stream_data_blocked", "STREAM_DATA_BLOCKED frames received");
    QuicStreamsBlockedBidi: own("quic_streams_blocked_bidi", (Metric, Counter, Process), FB, "quic_streams_blocked_bidi", "STREAMS_BLOCKED frames received, about streams with two directions");
    QuicStreamsBlockedUni: own("quic_streams_blocked_uni", (Metric, Counter, Process), FB, "quic_streams_blocked_uni", "STREAMS_BLOCKED frames received, about streams with one direction");
    QuicNcbufGapLimit: own("quic_ncbuf_gap_limit", (Metric, Counter, Process), FB, "quic_ncbuf_gap_limit", "Data with too small gaps before it; not counted");
    H1OpenConn: own("h1_open_connections", (Metric, Gauge, Process), FB, "h1_open_connections", "HTTP/1 connections now");
    H1OpenStreams: own("h1_open_streams", (Metric, Gauge, Process), FB, "h1_open_streams", "HTTP/1 messages in progress now");
    H1TotalConn: own("h1_total_connections", (Metric, Counter, Process), FB, "h1_total_connections", "HTTP/1 connections since the start");
    H1TotalStreams: own("h1_total_streams", (Metric, Counter, Process), FB, "h1_total_streams", "HTTP/1 requests since the start");
    H1BytesIn: own("h1_bytes_in", (Metric, Counter, Process), FB, "h1_bytes_in", "Bytes received over HTTP/1");
    H1BytesOut: own("h1_bytes_out", (Metric, Counter, Process), FB, "h1_bytes_out", "Bytes sent over HTTP/1");
    H1SplicedIn: own("h1_spliced_bytes_in", (Metric, Counter, Process), FB, "h1_spliced_bytes_in", "Bytes received over HTTP/1 that the kernel moved through pipes; none are used");
    H1SplicedOut: own("h1_spliced_bytes_out", (Metric, Counter, Process), FB, "h1_spliced_bytes_out", "Bytes sent over HTTP/1 that the kernel moved through pipes; none are used");
    // Fields beyond HAProxy's, whose list ends here.
    RetrRefused: own("retr_refused", (Metric, Counter, Process), BS, "retries_refused_total", "Retries that the budget of the backend refused (retry-budget)");
    Ejections: own("ejections", (Metric, Counter, Process), S, "ejections_total", "How often traffic took the server out (outlier-ejection)");
}

/// The last field of the proxies themselves. Those of modules follow.
pub const LAST_OF_PROXIES: Column = Column::CacheHintHits;

/// The number of fields.
pub const COUNT: usize = FIELDS.len();

impl Column {
    /// The entry of the table.
    #[must_use]
    pub const fn field(self) -> &'static Field {
        &FIELDS[self as usize]
    }

    /// The module of HAProxy that has the field; none for fields of the proxies themselves.
    #[must_use]
    pub fn module(self) -> Option<&'static str> {
        if self <= LAST_OF_PROXIES || self >= Column::RetrRefused {
            return None;
        }
        // The fields of QPACK are among those of HTTP/3.
        if (Column::H3Data..=Column::QpackDecoderStreamError).contains(&self) {
            return Some("h3");
        }
        let (module, _) = self.field().name.split_once('_')?;
        Some(module)
    }

    /// Its properties in a row of this kind. Three fields have other properties for backends or
    /// servers.
    #[must_use]
    pub fn tags(self, kind: Kind) -> Tags {
        match (self, kind) {
            (Column::Act | Column::Bck, Kind::Server) => (Origin::Status, Gauge, Process),
            (Column::RateMax, Kind::Backend) => (Origin::Metric, Nature::Gauge, Process),
            _ => self.field().tags,
        }
    }

    /// The field `by` places after this one.
    #[must_use]
    pub fn after(self, by: usize) -> Option<Column> {
        Column::ALL.get(self as usize + by).copied()
    }

    /// The field of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Column> {
        let place = FIELDS.iter().position(|field| field.name == name)?;
        Some(Column::ALL[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_at_their_places() {
        assert_eq!(COUNT, 215);
        assert_eq!(Column::ALL.len(), COUNT);
        let places = [
            (Column::Stot, 7),
            (Column::Status, 17),
            (Column::Lastsess, 55),
            (Column::CacheHintHits, 118),
            (Column::H2HeadersRcvd, 119),
            (Column::H3Data, 137),
            (Column::QuicSentPkt, 171),
            (Column::QuicHalfOpenConn, 177),
        ];
        for (column, place) in places {
            assert_eq!(column as usize, place);
        }
        assert_eq!(Column::H2HeadersRcvd.module(), Some("h2"));
        assert_eq!(Column::H1SplicedOut.module(), Some("h1"));
        assert_eq!(Column::QpackDecompressionFailed.module(), Some("h3"));
        assert_eq!(Column::QuicRxbufFull.module(), Some("quic"));
        assert_eq!(Column::CacheHintHits.module(), None);
        assert_eq!(Column::RetrRefused.module(), None);
        assert_eq!(Column::named("req_tot"), Some(Column::ReqTot));
        assert_eq!(Column::named("nothing"), None);
    }
}
