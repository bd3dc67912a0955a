//! Socket options that `bind` and `server` lines share (manual §5.1, §5.2), and keep-alive probes
//! (manual §4.2).

use net::Keepalive;
use net::tcp::MD5_KEY_BYTES_MAX;

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::values;

/// `cc`
pub fn congestion(cursor: &mut Cursor<'_>) -> Parse<String> {
    required(cursor, "missing TCP congestion control algorithm")
}

/// `namespace`
pub fn namespace(cursor: &mut Cursor<'_>) -> Parse<String> {
    let name = required(cursor, "missing namespace id")?;
    if name.contains('/') {
        Err(cursor.fault(format!("Cannot open namespace '{name}'.")))
    } else {
        Ok(name)
    }
}

/// `tcp-md5sig`
pub fn md5_key(cursor: &mut Cursor<'_>) -> Parse<Box<[u8]>> {
    required(cursor, "missing TCP MD5 signature password")?;
    let key = cursor.line.bytes(cursor.at - 1);
    if key.len() > MD5_KEY_BYTES_MAX {
        Err(cursor.fault(format!(
            "'tcp-md5sig' : password too long (at most {MD5_KEY_BYTES_MAX} characters expected)."
        )))
    } else {
        Ok(key.into())
    }
}

/// `tcp-ut`; zero means the system's default.
pub fn user_timeout(cursor: &mut Cursor<'_>) -> Parse<Option<u32>> {
    let text = required(cursor, "missing TCP User Timeout value")?;
    match values::whole_time(&text) {
        Ok(time) => {
            let ms = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
            Ok((ms > 0).then_some(ms))
        }
        Err(values::Bad::Character(_)) => {
            Err(cursor.fault("'tcp-ut' : expects a positive delay in milliseconds."))
        }
        Err(bad) => Err(cursor.fault(values::time_message(bad, &text, "tcp-ut"))),
    }
}

fn required(cursor: &mut Cursor<'_>, missing: &str) -> Parse<String> {
    let name = cursor.last();
    let at = cursor.at;
    let word = cursor.line.need(at, || format!("'{name}' : {missing}."))?;
    cursor.at += 1;
    Ok(word.to_owned())
}

/// `clitcpka-cnt` and related keywords: the value that a keyword sets, and its side.
pub fn keepalive(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.arg(0);
    let text = line.need(1, || format!("'{name}' expects an integer value."))?;
    let value = if name.ends_with("-cnt") {
        text.parse().map_err(|_| {
            let odd = text.chars().find(|c| !c.is_ascii_digit()).unwrap_or(' ');
            line.fault(
                1,
                format!("'{name}' : unexpected character '{odd}' in integer value '{text}'."),
            )
        })?
    } else {
        let time = values::time_in(text, "s", 1_000_000)
            .map_err(|bad| line.fault(1, values::time_message(bad, text, name)))?;
        u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
    };
    let options = &mut build.proxy.options;
    let keepalive: &mut Keepalive = if name.starts_with("cli") {
        &mut options.client_keepalive
    } else {
        &mut options.server_keepalive
    };
    let slot = match name.rsplit('-').next() {
        Some("cnt") => &mut keepalive.probes,
        Some("idle") => &mut keepalive.idle_s,
        _ => &mut keepalive.interval_s,
    };
    *slot = (value > 0).then_some(value);
    line.at_most(1)
}
