//! Options of log servers over TCP (manual §5.2): servers of rings and of backends in `mode log`.

use super::Shared;
use super::line::{Cursor, Parse, leading_integer};
use crate::model::ServerOptions;
use net::ring::Framing;

/// `log-bufsize`
pub fn log_bufsize(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    // As in HAProxy, other text is 0.
    let bytes = leading_integer(cursor.value("an integer argument")?).parse();
    let bytes = bytes.ok().filter(|bytes| *bytes > 0);
    let bytes = bytes.ok_or_else(|| cursor.fault("log-bufsize has to be > 0."))?;
    options.log_stream.bytes_max = Some(bytes);
    Ok(())
}

/// `log-proto`
pub fn log_proto(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.log_stream.framing = framing(cursor)?;
    Ok(())
}

/// The value of `log-proto`.
pub fn framing(cursor: &mut Cursor<'_>) -> Parse<Framing> {
    match cursor.value("'legacy' or 'octet-count'")? {
        "legacy" => Ok(Framing::LineFeed),
        "octet-count" => Ok(Framing::OctetCount),
        word => {
            let message =
                format!("'log-proto' expects one of 'legacy' or 'octet-count' but got '{word}'.");
            Err(cursor.fault(message))
        }
    }
}
