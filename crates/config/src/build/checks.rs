//! Arguments of server options whose features do not exist yet.

use super::line::{Cursor, Parse};

/// `quic-cc-algo cubic|newreno|bbr|nocc[(<arguments>)]`
pub fn quic_algorithm(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a congestion control algorithm")?;
    super::quic::algorithm(text, cursor).map(|_| ())
}
