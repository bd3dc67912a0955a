//! Hop-by-hop fields (RFC 9110 §7.6.1): they are not forwarded.

use super::facts::{Facts, is_http2};
use crate::bytes::list;
use crate::{Head, Name};

/// Removes hop-by-hop information from a head: the connection options of `Connection`, the fields
/// that `Connection` names, and an upgrade to HTTP/2, whose messages the proxy could not parse.
#[inline(always)]
pub(super) fn keep_end_to_end(head: &mut Head, facts: &Facts) {
    if facts.hop_by_hop {
        remove_hop_by_hop(head, facts);
    }
}

fn remove_hop_by_hop(head: &mut Head, facts: &Facts) {
    let upgrade = facts.upgrade_option && !facts.upgrade_field;
    if facts.names_fields {
        remove_named(head);
    }
    if facts.close || facts.keep_alive || facts.names_fields || upgrade {
        head.filter_list(Name::Connection, |option| {
            option.eq_ignore_ascii_case(b"te")
                || (!upgrade && option.eq_ignore_ascii_case(b"upgrade"))
        });
    }
    if facts.keep_alive {
        head.remove_id(Name::KeepAlive);
    }
    if facts.upgrade_to_http2 {
        head.filter_list(Name::Upgrade, |protocol| !is_http2(protocol));
        head.remove_all(b"http2-settings");
    }
}

/// Removes the fields that `Connection` names, except those that every recipient needs or that are
/// handled elsewhere.
#[cold]
fn remove_named(head: &mut Head) {
    let values = head.get_all(Name::Connection);
    let options = values.flat_map(|(_, value)| list(value));
    let mut named: Vec<Vec<u8>> = options.map(<[u8]>::to_ascii_lowercase).collect();
    named.sort_unstable();
    let is_named = |name: &[u8]| named.binary_search(&name.to_ascii_lowercase()).is_ok();
    let meant: Vec<_> = head
        .fields()
        .filter(|(_, id, name, _)| !stays(*id) && is_named(name))
        .map(|(field, ..)| field)
        .collect();
    meant.into_iter().for_each(|field| head.remove(field));
}

/// Whether a field stays although `Connection` names it.
fn stays(id: Name) -> bool {
    matches!(
        id,
        Name::Connection
            | Name::ContentLength
            | Name::Host
            | Name::Te
            | Name::Trailer
            | Name::TransferEncoding
            | Name::Upgrade
    )
}
