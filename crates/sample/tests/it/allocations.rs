//! Converters allocate nothing after their buffers are recycled.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use net::{Addr, Now};
use spangate_sample::facts::Nowhere;
use spangate_sample::{Compiler, Place, Scope, Session, Txn, Value};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the allocations of a thread.
struct Counting;

fn note() {
    // A thread that is ending is not counted any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Inputs, and the chains of converters for them.
const CHAINS: &[(&[u8], &[&str])] = &[
    (
        b"Www.Example.ORG:8080",
        &[
            "host_only,reverse_dom,reverse,upper,length",
            "port_only,add(1),mul(3),neg,htonl,hex,hex2i",
            "base64,b64dec,ub64enc,ub64dec,url_enc,url_dec(1)",
            "json(utf8ps),cut_crlf,ltrim(W),rtrim(0)",
            "field(-2,.),concat(a,txn.v,b),add_item(;,txn.v)",
            "word(2,.,0),bytes(1,5),regsub('[a-z](.)',<\\1>,g),strcmp(txn.v)",
            "sha1,sha2(512),digest(md5),hmac(sha256,YQ==),secure_memcmp(txn.v)",
            "aes_cbc_enc(128,YQ==,AAECAwQFBgcICQoLDA0ODw==),aes_cbc_dec(128,YQ==,AAECAwQFBgcICQoLDA0ODw==)",
            "crc32,xxh3,xxh32,xxh64(3),sdbm(1),wt6,x509_v_err_str",
            "base2,be2hex(:,2),be2dec(.,3),le2dec(,8),has_ctl,iif(a,b)",
            "length,http_date(3),date,utime(%c%5Y),length,ltime(%F)",
            "length,http_date(3,ms),length,ms_utime(%3N%s)",
            "param(a),language(en;fr,de),when(normal),debug(x)",
        ],
    ),
    (
        br#"{"a":[1.5,{"b":"c\n\u0041"}],"n":1e9}"#,
        &["json_query($.a[1].b)", "json_query($.n)", "json_query($.a)", "json_query($.n,int)"],
    ),
    (
        b"eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln",
        &["jwt_header_query($.alg)", "jwt_payload_query($.a,int)", "jwt_verify(HS256,k)"],
    ),
    (
        b"for=\"[2001:db8::1]:80\";by=_x;proto=https",
        &[
            "rfc7239_is_valid",
            "rfc7239_field(for),rfc7239_n2nn,rfc7239_nn",
            "rfc7239_field(for),rfc7239_n2np,rfc7239_np",
        ],
    ),
    (
        b"\x45\0\0\x3c\x1c\x46\x40\0\x40\x06\xb1\xe6\xc0\xa8\0\x01\xc0\xa8\0\xc7\xd4\x31\0\x50\xaa\xbb\xcc\xdd\0\0\0\0\
          \xa0\x02\xfa\xf0\xfe\x30\0\0\x02\x04\x05\xb4\x04\x02\x08\x0a\x01\x02\x03\x04\0\0\0\0\x01\x03\x03\x0a",
        &["ip.fp(7)", "ip.src,ipmask(24)", "ip.data,tcp.options_list", "ip.data,tcp.options.mss"],
    ),
    (b"\x1a\x03\x08\x96\x01", &["protobuf(3.1,int32)", "protobuf(3)"]),
    (b"8=FIX.4.2\x019=5\x0135=A\x0110=178\x01", &["fix_is_valid", "fix_tag_value(35)"]),
    (b"\x20\x02\x01\x05", &["mqtt_is_valid", "mqtt_field_value(connack,flags)"]),
];

#[test]
fn converters_allocate_nothing() {
    let addr = || Addr::Inet("127.0.0.1:80".parse().expect("an address"));
    let now = Now::new(1, 1_795_179_662_123_000_000);
    let session = Session::new(now, addr(), addr(), 0, 0);
    let mut compiler = Compiler::new();
    let var = compiler.var("txn.v").expect("a variable");
    let mut txn = Txn::default();
    txn.txn_vars.set(var.slot, Value::text("value"));
    for (input, chains) in CHAINS {
        let scope = Scope {
            now,
            world: &Nowhere,
            session: &session,
            txn: Some(&txn),
            request: None,
            response: None,
            request_data: input,
            response_data: &[],
            from_server: false,
            last_chance: true,
        };
        for chain in *chains {
            let text = format!("req.payload(0,0),{chain}");
            let (expr, _) = compiler
                .expr(&[&text], Place::ALL)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            for _ in 0..20 {
                drop(expr.eval(&scope));
            }
            let before = ALLOCATIONS.get();
            for _ in 0..100 {
                drop(expr.eval(&scope));
            }
            assert_eq!(ALLOCATIONS.get() - before, 0, "{text}");
        }
    }
}
