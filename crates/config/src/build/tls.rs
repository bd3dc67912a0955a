//! `ssl-default-bind-options` and `ssl-default-server-options`: words of the table of TLS options (manual §3.1).

use super::line::{Cursor, Parse};
use crate::keywords::arguments::Args;
use crate::keywords::{Places, tls::OPTIONS};

/// `ssl-default-bind-options <option> …`
pub fn bind_defaults(cursor: &mut Cursor<'_>) -> Parse {
    defaults(cursor, Places::BIND_DEFAULTS)
}

/// `ssl-default-server-options <option> …`
pub fn server_defaults(cursor: &mut Cursor<'_>) -> Parse {
    defaults(cursor, Places::SERVER_DEFAULTS)
}

fn defaults(cursor: &mut Cursor<'_>, place: Places) -> Parse {
    let name = cursor.line.keyword();
    cursor.line.need(cursor.at, || {
        format!("global statement '{name}' expects an option as an argument.")
    })?;
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let mut known = OPTIONS.iter().filter(|row| row.places.intersects(place));
        let Some(option) = known.find(|row| row.name == word) else {
            let message = format!("unknown option '{word}' on global statement '{name}'.");
            return Err(cursor.fault(message));
        };
        if let Args::OneOf(words) = option.args {
            let value = cursor.value("a version")?;
            if !words.contains(&value) {
                let message =
                    format!("'{value}' : unknown ssl/tls version on global statement '{name}'.");
                return Err(cursor.fault(message));
            }
        }
    }
    Ok(())
}
