//! ACLs that need no declaration (manual §7.4).

/// The name and the words of each ACL.
pub(super) const PREDEFINED: &[(&str, &[&str])] = &[
    ("TRUE", &["always_true"]),
    ("FALSE", &["always_false"]),
    ("LOCALHOST", &["src", "127.0.0.1/8", "::1"]),
    ("HTTP", &["req.proto_http"]),
    ("HTTP_1.0", &["req.ver", "1.0"]),
    ("HTTP_1.1", &["req.ver", "1.1"]),
    ("HTTP_2.0", &["req.ver", "2.0"]),
    ("HTTP_3.0", &["req.ver", "3.0"]),
    ("METH_CONNECT", &["method", "CONNECT"]),
    ("METH_DELETE", &["method", "DELETE"]),
    ("METH_GET", &["method", "GET", "HEAD"]),
    ("METH_HEAD", &["method", "HEAD"]),
    ("METH_OPTIONS", &["method", "OPTIONS"]),
    ("METH_POST", &["method", "POST"]),
    ("METH_PUT", &["method", "PUT"]),
    ("METH_TRACE", &["method", "TRACE"]),
    ("HTTP_URL_ABS", &["url_reg", "^[^/:]*://"]),
    ("HTTP_URL_SLASH", &["url_beg", "/"]),
    ("HTTP_URL_STAR", &["url", "*"]),
    ("HTTP_CONTENT", &["req.hdr_val(content-length)", "gt", "0"]),
    ("RDP_COOKIE", &["req.rdp_cookie_cnt", "gt", "0"]),
    ("REQ_CONTENT", &["req.len", "gt", "0"]),
    ("WAIT_END", &["wait_end"]),
];

/// The words of a predefined ACL.
pub(super) fn words(name: &str) -> Option<&'static [&'static str]> {
    PREDEFINED
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, words)| *words)
}
