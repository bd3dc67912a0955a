//! Rules that edit pattern sets, and what the next request meets.

use super::script::play;

const OK: &str = "HTTP/1.1 200 OK|content-length: 0||";

#[test]
fn a_map_is_changed_by_requests_and_answers() {
    let rules = "
        http-request set-map(virt@m) %[path] %[hdr(x)] if { hdr(x) -m found }
        http-request del-map(virt@m) %[path] if { hdr(del) -m found }
        http-request return status 200 hdr v <%[path,map(virt@m,none)]> content-type text/plain string x if { hdr(ask) -m found }
        http-response set-map(virt@m) /answered %[status]";
    let ask = |path: &str, value: &str| {
        format!("c1 > GET {path} HTTP/1.1|host: a|ask: 1||\nc1 <~ HTTP/1.1 200 OK|v: <{value}>\n")
    };
    let set = |path: &str, value: &str| {
        format!(
            "c1 > GET {path} HTTP/1.1|host: a|ask: 1|x: {value}||\nc1 <~ HTTP/1.1 200 OK|v: <{value}>\n"
        )
    };
    let delete = "c1 > GET /a HTTP/1.1|host: a|ask: 1|del: 1||\nc1 <~ HTTP/1.1 200 OK|v: <none>\n";
    let script = [
        ask("/a", "none"),
        set("/a", "one"),
        ask("/a", "one"),
        set("/a", "two"),
        ask("/a", "two"),
        delete.to_owned(),
        ask("/a", "none"),
        format!("c1 > GET /x HTTP/1.1|host: a||\ns1 ok\ns1 <~ GET /x\ns1 > {OK}\nc1 < {OK}\n"),
        ask("/answered", "200"),
    ];
    play("map", rules, &script.concat());
}

#[test]
fn an_acl_is_changed() {
    let rules = "
        http-request add-acl(virt@a) %[hdr(add)] if { hdr(add) -m found }
        http-request del-acl(virt@a) %[hdr(del)] if { hdr(del) -m found }
        http-request deny if { path -i -m beg -f virt@a }
        http-request return status 200";
    let request = |path: &str, header: &str, status: u16| {
        format!("c1 > GET {path} HTTP/1.1|host: a|{header}: /Bad||\nc1 <~ HTTP/1.1 {status}\n")
    };
    let script = [
        request("/bad/1", "x", 200),
        request("/bad/1", "add", 403),
        request("/BAD", "add", 403),
        request("/good", "x", 200),
        request("/bad/1", "del", 200),
        request("/bad/1", "del", 200),
    ];
    play("acl", rules, &script.concat());
}
