//! Arguments of server options whose features do not exist yet.

use super::address;
use super::line::{Cursor, Parse};

/// A list of networks.
pub fn networks(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a list of networks")?;
    match text
        .split(',')
        .find(|part| address::network(part).is_none())
    {
        Some(part) => Err(cursor.fault(format!("'resolve-net' invalid network '{part}'."))),
        None => Ok(()),
    }
}

/// `quic-cc-algo cubic|newreno|bbr|nocc[(<arguments>)]`
pub fn quic_algorithm(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a congestion control algorithm")?;
    match text.split('(').next() {
        Some("cubic" | "newreno" | "bbr" | "nocc") => Ok(()),
        _ => Err(cursor.fault(format!("'{text}' : unknown control congestion algorithm."))),
    }
}
