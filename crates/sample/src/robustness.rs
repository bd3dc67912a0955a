//! No request makes an expression panic, loop, or exceed its size limit: every table entry is
//! tested against odd bytes.

use crate::args::{ArgKind, Spec};
use crate::pattern::Output;
use crate::testing::{Facts, compiler};
use crate::{
    Acls, HelloFacts, Kind, Place, SAMPLE_BYTES_MAX, TlsFacts, TlsSecrets, Value, convert, fetch,
};
use std::sync::Arc;
use testing::Random;

/// Random bytes, mostly those that have a meaning in grammars.
fn bytes(random: &mut Random, len_max: usize) -> Vec<u8> {
    const SPECIAL: &[u8] = b",;=\"\\:/?&%+[]{}$@#. \t-_09aAfFzZ\0\xff\xc3";
    (0..random.below(len_max + 1))
        .map(|_| match random.below(8) {
            0 => random.next() as u8,
            _ => random.pick(SPECIAL),
        })
        .collect()
}

/// A random request target.
fn target(random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes(random, 30);
    bytes.retain(u8::is_ascii_graphic);
    bytes.insert(0, b'/');
    bytes
}

/// An argument list that is valid for a table entry.
fn arguments(spec: Spec, full: bool) -> String {
    let count = if full {
        spec.kinds.len()
    } else {
        spec.required
    };
    let texts = spec.kinds.iter().take(count).map(|kind| match kind {
        ArgKind::Int | ArgKind::IntOrVar => "2",
        // The default of a map of addresses must be an address.
        ArgKind::Str if matches!(spec.kinds[0], ArgKind::Map(_, Output::Ip)) => "::1",
        ArgKind::Str => "a",
        ArgKind::Ipv4 => "10.0.0.1",
        ArgKind::Ipv6 => "::1",
        ArgKind::Mask4 => "24",
        ArgKind::Mask6 => "64",
        ArgKind::Regex => "[a-c]*",
        ArgKind::Var | ArgKind::VarOrNothing | ArgKind::OtherVar | ArgKind::TagVar => "txn.x",
        ArgKind::Frontend | ArgKind::Backend => "www",
        ArgKind::Server => "static/srv1",
        ArgKind::Userlist => "users",
        ArgKind::Table => "counters",
        ArgKind::Context => "context",
        ArgKind::Map(..) => "virt@map",
        ArgKind::StrOrVar => "txn.x",
        ArgKind::FieldNumbers => "1.2",
        ArgKind::CurrentProxy => "",
        ArgKind::Acls | ArgKind::AclOfWhen => "TRUE",
    });
    let texts: Vec<&str> = texts.collect();
    if spec.takes_none() || texts.is_empty() {
        String::new()
    } else {
        format!("({})", texts.join(","))
    }
}

/// Argument lists of entries that accept only certain texts.
const PARTICULAR: &[(&str, &str)] = &[
    ("bool", "(1)"),
    ("bin", "(6162)"),
    ("date", "(5,ms)"),
    ("uuid", "(7)"),
    ("query", "(with_qm)"),
    ("accept_date", "(ms)"),
    ("request_date", "(us)"),
    ("fc_pp_tlv", "(ALPN)"),
    ("payload_lv", "(0,1,+1)"),
    ("req.payload_lv", "(1,2,-1)"),
    ("res.payload_lv", "(1,4)"),
    ("distcc_param", "(DOTI,2)"),
    ("distcc_body", "(DOTI)"),
    ("fc_rtt", "(us)"),
    ("fc_rttvar", "(ms)"),
    ("bc_rtt", "(us)"),
    ("bc_rttvar", "(ms)"),
    ("url_enc", "(query)"),
    ("json", "(utf8s)"),
    ("dump_all_vars", "(txn,a,-)"),
    ("set-var", "(txn.x,ifset,ifgt)"),
    ("regsub", "([a-c]*,\\0-,g)"),
    ("aes_cbc_enc", "(128,txn.v,txn.key)"),
    ("aes_cbc_dec", "(128,txn.v,txn.key)"),
    ("aes_gcm_enc", "(128,txn.v,txn.key,txn.tag)"),
    ("aes_gcm_dec", "(128,txn.key,txn.key,txn.v)"),
    ("be2dec", "(:,3)"),
    ("le2dec", "(:,8,1)"),
    ("be2hex", "(:,3,1)"),
    ("has_ctl", "(0x2401)"),
    ("sha2", "(512)"),
    ("digest", "(md5)"),
    ("hmac", "(sha1,txn.v)"),
    ("http_date", "(-5,ms)"),
    ("json_query", "($.a[1].b)"),
    ("jwt_header_query", "($.a,int)"),
    ("jwt_payload_query", "($.a,int)"),
    ("jwt_verify", "(HS256,txn.v)"),
    ("protobuf", "(1.2,sint32)"),
    ("ungrpc", "(1)"),
    ("fix_tag_value", "(35)"),
    ("mqtt_field_value", "(connect,password)"),
    ("param", "(a,0x26)"),
    ("when", "(!acl,TRUE)"),
    ("ssl_c_i_dn", "(CN,-1,rfc2253)"),
    ("ssl_c_s_dn", "(,0,rfc2253)"),
    ("ssl_c_r_dn", "(OU,2)"),
    ("ssl_f_i_dn", "(CN)"),
    ("ssl_f_s_dn", "(CN,0)"),
    ("ssl_s_i_dn", "(CN)"),
    ("ssl_s_s_dn", "(,0,rfc2253)"),
];

fn variants(name: &str, spec: Spec) -> Vec<String> {
    match PARTICULAR
        .iter()
        .find(|(known, _)| *known == name && !spec.kinds.is_empty())
    {
        Some((_, arguments)) => vec![format!("{name}{arguments}")],
        None => [false, true]
            .map(|full| format!("{name}{}", arguments(spec, full)))
            .into(),
    }
}

fn bounded(value: &Value<'_>, expr: &str) {
    if let Value::Str(bytes) | Value::Bin(bytes) = value {
        assert!(bytes.len() <= SAMPLE_BYTES_MAX, "{expr}");
    }
}

/// Facts with random bytes; the certificate is a real one with one byte changed.
fn tls(random: &mut Random) -> TlsFacts {
    let mut certificate = include_bytes!("x509/data/client.der").to_vec();
    let at = random.below(certificate.len());
    certificate[at] ^= 0x5a;
    TlsFacts {
        version: 0x0304,
        cipher: 0x1301,
        alpn: bytes(random, 9).into(),
        session_id: bytes(random, 9).into(),
        own: Some(certificate.as_slice().into()),
        peer: [certificate.into(), bytes(random, 30).into()].into(),
        root: Some(bytes(random, 9).into()),
        hello: Some(Box::new(HelloFacts {
            ciphers: bytes(random, 9).into(),
            sigalgs: bytes(random, 9).into(),
            ..HelloFacts::default()
        })),
        secrets: Some(Box::new(TlsSecrets {
            client_random: bytes(random, 40).into(),
            exporter: bytes(random, 40).into(),
            ..TlsSecrets::default()
        })),
        ..TlsFacts::default()
    }
}

#[test]
fn every_fetch_takes_any_request() {
    let mut compiler = compiler();
    let exprs: Vec<_> = fetch::all()
        .flat_map(|fetch| variants(fetch.name, fetch.args))
        .map(|text| {
            (
                compiler
                    .expr(&[&text], Place::ALL)
                    .unwrap_or_else(|error| panic!("{text}: {error}"))
                    .0,
                text,
            )
        })
        .collect();
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for _ in 0..200 {
        let mut facts = Facts::with_request("GET / HTTP/1.1\nHost: a\n\n");
        let head = facts.request.as_mut().expect("a request");
        head.set_target(&target(&mut random));
        for name in ["a", "a", "host", "cookie", "cookie", "set-cookie"] {
            head.append(name.as_bytes(), &bytes(&mut random, 40));
        }
        facts.response = facts.request.clone();
        facts.session.tlvs = Some(bytes(&mut random, 20).into_boxed_slice());
        facts.session.tls = Some(Arc::new(tls(&mut random)));
        facts.txn.server_tls = Some(Arc::new(tls(&mut random)));
        facts.txn.request_line = bytes(&mut random, 30);
        facts.txn.is_http = random.chance(50);
        facts.request_data = bytes(&mut random, 30);
        facts.response_data = bytes(&mut random, 30);
        facts.from_server = random.chance(50);
        facts.txn.request_body.framing = http::h1::Framing::Chunked;
        facts.last_chance = random.chance(50);
        for (expr, text) in &exprs {
            if let Some(value) = expr.eval(&facts.scope()) {
                bounded(&value, text);
            }
        }
    }
}

#[test]
fn every_converter_takes_any_value() {
    let mut compiler = compiler();
    let var = compiler.var("txn.v").expect("a variable");
    let key = compiler.var("txn.key").expect("a variable");
    let exprs: Vec<_> = convert::all()
        .flat_map(|convert| variants(convert.name, convert.args))
        .map(|text| format!("var(txn.v),{text}"))
        .map(|text| {
            (
                compiler
                    .expr(&[&text], Place::ALL)
                    .unwrap_or_else(|error| panic!("{text}: {error}"))
                    .0,
                text,
            )
        })
        .collect();
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let mut facts = Facts::new();
    let base64 = "AAECAwQFBgcICQoLDA0ODw==";
    facts.txn.txn_vars.set(key.slot, Value::text(base64));
    let long = vec![b'"'; SAMPLE_BYTES_MAX];
    for round in 0..400 {
        let bytes = bytes(&mut random, 60);
        let value = match round % 5 {
            0 => Value::Int(random.next() as i64 >> (random.next() % 64)),
            1 => Value::Bin((&bytes[..]).into()),
            2 if round < 10 => Value::text(&long[..]),
            3 => Value::Ipv6(std::net::Ipv6Addr::from(
                u128::from(random.next()) << (random.next() % 65),
            )),
            _ => Value::text(&bytes[..]),
        };
        facts.txn.txn_vars.set(var.slot, value.detach());
        facts.last_chance = random.chance(50);
        for (expr, text) in &exprs {
            if let Some(value) = expr.eval(&facts.scope()) {
                bounded(&value, text);
                let kind = expr.kind();
                let same = kind == value.kind()
                    || kind == Kind::Any
                    || (kind == Kind::Bin && text.contains("protobuf"))
                    || (kind == Kind::Addr && matches!(value, Value::Ipv4(_) | Value::Ipv6(_)));
                assert!(same, "{text} gives {value:?}");
            }
        }
    }
}

#[test]
fn every_text_compiles_or_is_refused_with_a_place_inside_it() {
    let mut random = Random::new(0xdead_beef_cafe_f00d);
    let names: Vec<&str> = fetch::all()
        .map(|fetch| fetch.name)
        .chain(convert::all().map(|convert| convert.name))
        .collect();
    for _ in 0..3_000 {
        let mut text = String::new();
        for _ in 0..random.next() % 5 {
            text.push_str(names[(random.next() % names.len() as u64) as usize]);
            text.push_str(&String::from_utf8_lossy(&bytes(&mut random, 8)));
            text.push(['%', '(', ')', ',', '[', ']', '{', '}'][(random.next() % 8) as usize]);
        }
        let mut compiler = compiler();
        let format = format!("%[{text}]%{{{text}");
        let words = ["{", &text, &text, "}"];
        for error in [
            compiler.expr(&[&text], Place::ALL).err(),
            compiler.log_format(&text, Place::LOG).err(),
            compiler.log_format(&format, Place::LOG).err(),
            compiler
                .condition(&Acls::default(), &words, false, Place::ALL)
                .err(),
        ]
        .into_iter()
        .flatten()
        {
            assert!(error.start <= error.end, "{text}: {error:?}");
        }
    }
}
