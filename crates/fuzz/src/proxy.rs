//! PROXY protocol headers.

use net::Addr;
use net::proxy_protocol::{
    Addresses, Header, Tlv, V2_HEADER_BYTES_MAX, kind, parse, write_v1, write_v2,
};

/// A header of either version: a shorter input is incomplete or has the same result; what is
/// accepted is written so that it is accepted again as the same.
pub fn proxy_protocol(data: &[u8]) {
    let whole = parse(data);
    for cut in crate::cuts(data.len()) {
        match parse(&data[..cut]) {
            Ok(None) => {}
            part => assert_eq!(part, whole, "cut at {cut}"),
        }
    }
    let Ok(Some((len, header))) = whole else {
        return;
    };
    assert!(len <= data.len().min(V2_HEADER_BYTES_MAX));

    let both = header
        .addresses
        .as_ref()
        .map(|both| (&both.source, &both.destination));
    let mut out = Vec::new();
    write_v1(both, &mut out);
    let (_, first) = whole_header(&out);
    assert_eq!(first.addresses, written(header.addresses.as_ref()));

    out.clear();
    let tlvs: Vec<Tlv<'_>> = header.tlvs().collect();
    write_v2(both, &tlvs, &mut out).expect("what fitted once fits again");
    let (_, second) = whole_header(&out);
    assert_eq!(second.addresses, written(header.addresses.as_ref()));
    let said = |header: &Header| -> Vec<(u8, Vec<u8>)> {
        let tlvs = header.tlvs().filter(|tlv| tlv.kind != kind::CRC32C);
        tlvs.map(|tlv| (tlv.kind, tlv.value.to_vec())).collect()
    };
    assert_eq!(said(&second), said(&header));
}

fn whole_header(out: &[u8]) -> (usize, Header) {
    let (len, header) = parse(out)
        .expect("what was written is accepted")
        .expect("and whole");
    assert_eq!(len, out.len());
    (len, header)
}

/// Only IP addresses are written.
fn written(addresses: Option<&Addresses>) -> Option<Addresses> {
    addresses
        .filter(|both| {
            matches!(
                (&both.source, &both.destination),
                (Addr::Inet(_), Addr::Inet(_))
            )
        })
        .cloned()
}
