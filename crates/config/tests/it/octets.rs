//! Words that are not UTF-8: exact bytes in the result, escapes in messages.

use crate::common;

use common::{accepted, report, under_caret};
use spangate_config::model::{Balance, BindAddress};

#[test]
fn values_are_the_bytes_that_were_written() {
    let config = accepted(
        "global\n log-tag t\\xe9\n log-send-hostname h\\xe9\n description a \\xe9\n h1-case-adjust x-\\xe9a X-\\xe9A\n\
         chroot /\\xe9\n pidfile /run/\\xe9\n\
         userlist l\n user \\xe9 insecure-password p\\xe9 groups g\n group g\n\
         defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n\
         log-profile p\n log-tag \\xe9\n on any format \\xe9\n\
         listen l\n bind /run/s\\xe9,abns@\\xe9 name n\\xe9\n log-tag \\xe9\n description b \\xe9\n monitor-uri /\\xe9\n\
         dynamic-cookie-key \\xe9\n persist rdp-cookie(\\xe9)\n capture cookie c\\xe9 len 9\n\
         capture response header x-\\xe9 len 9\n balance hdr(x-\\xe9)\n option originalto header x-\\xe9\n\
         http-request auth realm a unless { http_auth_group(l) g }\n\
         server a 127.0.0.1:80 cookie \\xe9 redir http://\\xe9\n\
         backend b\n balance url_param \\xe9\n server a /run/\\xe9 cookie a\n",
    );
    let global = &config.global;
    assert_eq!(global.log_tag.as_deref(), Some(&b"t\xe9"[..]));
    assert_eq!(global.log_send_hostname.as_deref(), Some(&b"h\xe9"[..]));
    assert_eq!(global.description.as_deref(), Some(&b"a \xe9"[..]));
    assert_eq!(
        global.h1_case.get(&b"x-\xe9a"[..]).map(|to| &**to),
        Some(&b"X-\xe9A"[..])
    );
    let path = |path: &Option<std::path::PathBuf>| {
        let path = path.as_ref().expect("a path").as_os_str();
        std::os::unix::ffi::OsStrExt::as_bytes(path).to_vec()
    };
    assert_eq!(path(&global.chroot), b"/\xe9");
    assert_eq!(path(&global.pidfile), b"/run/\xe9");
    assert_eq!(config.log_profiles[0].tag.as_deref(), Some(&b"\xe9"[..]));
    let proxy = &config.proxies[0];
    let addresses: Vec<String> = proxy
        .binds
        .iter()
        .map(|bind| match &bind.address {
            BindAddress::Addr(net::Addr::Unix(path)) => path.escape_ascii().to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    // As in HAProxy, NULs pad the abstract name.
    let filled = format!("\\x00\\xe9{}", "\\x00".repeat(106));
    assert_eq!(addresses, ["/run/s\\xe9".to_owned(), filled]);
    assert_eq!(proxy.binds[0].name.as_deref(), Some(&b"n\xe9"[..]));
    assert_eq!(proxy.log_tag.as_deref(), Some(&b"\xe9"[..]));
    assert_eq!(proxy.description.as_deref(), Some(&b"b \xe9"[..]));
    assert_eq!(proxy.monitor_uri.as_deref(), Some(&b"/\xe9"[..]));
    assert_eq!(proxy.dynamic_cookie_key.as_deref(), Some(&b"\xe9"[..]));
    assert_eq!(proxy.rdp_cookie.as_deref(), Some(&b"\xe9"[..]));
    let capture = proxy.capture_cookie.as_ref().expect("a capture");
    assert_eq!(&*capture.prefix, b"c\xe9");
    assert_eq!(&*proxy.capture_response[0].header, b"x-\xe9");
    assert!(matches!(&proxy.balance, Balance::Hdr { name, .. } if **name == *b"x-\xe9"));
    assert!(
        matches!(&config.proxies[1].balance, Balance::UrlParam { name, .. } if **name == *b"\xe9")
    );
    let original = proxy.originalto.as_ref().expect("originalto");
    assert_eq!(&*original.header, b"x-\xe9");
    let server = &proxy.servers[0];
    assert_eq!(server.cookie.as_deref(), Some(&b"\xe9"[..]));
    assert_eq!(server.redir.as_deref(), Some(&b"http://\xe9"[..]));
}

#[test]
fn messages_show_bytes_that_are_no_text_as_escapes() {
    let text = "defaults\n mode http\n timeout client 1s\nfrontend f\n bind :80\n";
    for (line, message, word) in [
        ("mode h\\xe9", "unknown proxy mode 'h\\xe9'.", "h\\xe9"),
        (
            "http-request set-header x %[req.hdr(\\xe9)x]",
            "expected ']' after 'req.hdr(\\xe9)', but found 'x'",
            "%[req.hdr(\\xe9)x]",
        ),
        (
            "http-request deny if a\\xe9",
            "no such ACL : 'a\\xe9'",
            "a\\xe9",
        ),
        (
            "acl a\\xe9 src 10.0.0.1",
            "character '\\xe9' is not permitted in acl name 'a\\xe9'.",
            "a\\xe9",
        ),
        (
            "http-request set-var(txn.\\xe9) src",
            "invalid syntax at char '\\'",
            "set-var(txn.\\xe9)",
        ),
    ] {
        let shown = report(&format!("{text} {line}\n"));
        assert!(shown.contains(message), "{shown}");
        assert_eq!(
            under_caret(&shown, message).as_deref(),
            Some(word),
            "{shown}"
        );
    }
}
