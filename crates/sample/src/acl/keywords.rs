//! ACL keywords: names that combine a fetch with a matching method (manual §7.1).

use crate::pattern::method::Method::{self, *};

/// A keyword, its fetch and its matching method.
pub(crate) struct Keyword {
    /// The name in the configuration.
    pub name: &'static str,
    /// The fetch behind it.
    pub fetch: &'static str,
    /// Its matching method.
    pub method: Method,
}

impl Keyword {
    /// Whether the name includes the method, so that another method (`-m`) is unexpected.
    pub(crate) fn names_method(&self) -> bool {
        !matches!(self.method, Str | Int | Bin)
    }
}

const fn word(name: &'static str, fetch: &'static str, method: Method) -> Keyword {
    Keyword {
        name,
        fetch,
        method,
    }
}

/// All keywords, sorted by name.
pub(crate) const KEYWORDS: &[Keyword] = &[
    word("base", "base", Str),
    word("base_beg", "base", Beg),
    word("base_dir", "base", Dir),
    word("base_dom", "base", Dom),
    word("base_end", "base", End),
    word("base_len", "base", Len),
    word("base_reg", "base", Reg),
    word("base_sub", "base", Sub),
    word("cook", "req.cook", Str),
    word("cook_beg", "req.cook", Beg),
    word("cook_dir", "req.cook", Dir),
    word("cook_dom", "req.cook", Dom),
    word("cook_end", "req.cook", End),
    word("cook_len", "req.cook", Len),
    word("cook_reg", "req.cook", Reg),
    word("cook_sub", "req.cook", Sub),
    word("hdr", "req.hdr", Str),
    word("hdr_beg", "req.hdr", Beg),
    word("hdr_dir", "req.hdr", Dir),
    word("hdr_dom", "req.hdr", Dom),
    word("hdr_end", "req.hdr", End),
    word("hdr_len", "req.hdr", Len),
    word("hdr_reg", "req.hdr", Reg),
    word("hdr_sub", "req.hdr", Sub),
    word("http_auth_group", "http_auth_group", Str),
    word("method", "method", Verb),
    word("path", "path", Str),
    word("path_beg", "path", Beg),
    word("path_dir", "path", Dir),
    word("path_dom", "path", Dom),
    word("path_end", "path", End),
    word("path_len", "path", Len),
    word("path_reg", "path", Reg),
    word("path_sub", "path", Sub),
    word("payload", "req.payload", Bin),
    word("payload_lv", "req.payload_lv", Bin),
    word("req.ssl_ver", "req.ssl_ver", Version),
    word("req_rdp_cookie", "req.rdp_cookie", Str),
    word("req_rdp_cookie_cnt", "req.rdp_cookie_cnt", Int),
    word("req_ssl_sni", "req.ssl_sni", Str),
    word("req_ssl_ver", "req.ssl_ver", Version),
    word("req_ver", "req.ver", Str),
    word("resp_ver", "res.ver", Str),
    word("scook", "res.cook", Str),
    word("scook_beg", "res.cook", Beg),
    word("scook_dir", "res.cook", Dir),
    word("scook_dom", "res.cook", Dom),
    word("scook_end", "res.cook", End),
    word("scook_len", "res.cook", Len),
    word("scook_reg", "res.cook", Reg),
    word("scook_sub", "res.cook", Sub),
    word("shdr", "res.hdr", Str),
    word("shdr_beg", "res.hdr", Beg),
    word("shdr_dir", "res.hdr", Dir),
    word("shdr_dom", "res.hdr", Dom),
    word("shdr_end", "res.hdr", End),
    word("shdr_len", "res.hdr", Len),
    word("shdr_reg", "res.hdr", Reg),
    word("shdr_sub", "res.hdr", Sub),
    word("ssl_fc_sni_end", "ssl_fc_sni", End),
    word("ssl_fc_sni_reg", "ssl_fc_sni", Reg),
    word("url", "url", Str),
    word("url_beg", "url", Beg),
    word("url_dir", "url", Dir),
    word("url_dom", "url", Dom),
    word("url_end", "url", End),
    word("url_len", "url", Len),
    word("url_reg", "url", Reg),
    word("url_sub", "url", Sub),
    word("urlp", "urlp", Str),
    word("urlp_beg", "urlp", Beg),
    word("urlp_dir", "urlp", Dir),
    word("urlp_dom", "urlp", Dom),
    word("urlp_end", "urlp", End),
    word("urlp_len", "urlp", Len),
    word("urlp_reg", "urlp", Reg),
    word("urlp_sub", "urlp", Sub),
];
