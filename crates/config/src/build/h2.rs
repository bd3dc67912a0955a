//! `tune.h2.*` and related keywords in `global` (manual §3.2).

use super::arguments;
use super::global::GlobalBuild;
use super::line::{Cursor, Line, Parse};
use super::values;
use crate::keywords::Why;
use crate::keywords::arguments::Args;
use crate::model::{H2Side, H2Tune};
use crate::tree::Prefix;

/// The largest value: windows and stream ids have 31 bits (RFC 9113 §5.1.1, §6.9.1).
const MOST: i64 = (1 << 31) - 1;
const PERCENT_MAX: i64 = 100;

/// `tune.h2.*.max-concurrent-streams <number> [rq-load …] [min …]`
pub fn streams(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let streams_max = count(line)?;
    let is_common = name == "tune.h2.max-concurrent-streams";
    side(&mut build.global.h2, name).streams_max = match streams_max {
        // For both sides, 0 means no limit; for one side, it means the value for both.
        0 => is_common.then_some(MOST as u32),
        number => Some(number),
    };
    if name != "tune.h2.fe.max-concurrent-streams" {
        return line.at_most(1);
    }
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        let at = cursor.at;
        let word = cursor.take();
        match (word, cursor.peek()) {
            ("rq-load", "auto" | "ignore") => {
                cursor.take();
            }
            ("rq-load" | "min", _) => {
                arguments::number(&mut cursor, word, 1, MOST)?;
            }
            _ => {
                let message = format!(
                    "'{name}' only supports 'rq-load' and 'min' as options (got '{word}')."
                );
                return Err(cursor.fault(message));
            }
        }
        let why =
            Why::Foreign("the load of HAProxy's scheduler is measured, which does not exist here");
        let span = line.span(at);
        build
            .shared
            .has_no_effect(&format!("{name} … {word}"), &span, why);
    }
    Ok(())
}

/// `tune.h2.*.initial-window-size`
pub fn window(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let window = count(line)?;
    side(&mut build.global.h2, line.keyword()).window_bytes =
        Some(window).filter(|bytes| *bytes > 0);
    line.at_most(1)
}

/// `tune.h2.*.glitches-threshold`
pub fn glitches(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let most = count(line)?;
    side(&mut build.global.h2, line.keyword()).glitches_max = Some(most).filter(|most| *most > 0);
    line.at_most(1)
}

/// `tune.glitches.kill.cpu-usage`
pub fn glitches_kill(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.h2.glitches_kill_percent = number(line, 0, PERCENT_MAX)?;
    line.at_most(1)
}

/// `tune.h2.*.rxbuf`
pub fn rxbuf(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let mut cursor = Cursor { line: *line, at: 1 };
    Args::Size(0).check(&mut cursor, name, build.shared)?;
    let bytes = values::size(line.arg(1))
        .unwrap_or_default()
        .min(MOST as usize) as u32;
    side(&mut build.global.h2, name).rxbuf_bytes = Some(bytes);
    line.at_most(1)
}

/// `tune.h2.fe.max-total-streams`
pub fn total_streams(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let most = count(line)?;
    build.global.h2.total_streams_max = Some(most).filter(|most| *most > 0);
    line.at_most(1)
}

/// `tune.h2.header-table-size`
pub fn table(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.h2.table_bytes = number(line, 4096, 65536)?;
    line.at_most(1)
}

/// `tune.h2.max-frame-size`
pub fn frame(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.h2.frame_bytes_max = Some(number(line, 16384, 16_777_215)?);
    line.at_most(1)
}

/// `h2-workaround-bogus-websocket-clients`
pub fn websocket(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.h2.announces_websocket = line.prefix() == Prefix::No;
    line.at_most(0)
}

/// The side to which a keyword applies.
fn side<'a>(h2: &'a mut H2Tune, name: &str) -> &'a mut H2Side {
    match name {
        _ if name.starts_with("tune.h2.fe.") => &mut h2.clients,
        _ if name.starts_with("tune.h2.be.") => &mut h2.servers,
        _ => &mut h2.both,
    }
}

/// A number that is not negative; a missing one counts as 0.
fn count(line: &Line<'_>) -> Parse<u32> {
    match line.arg(1) {
        "" => Ok(0),
        _ => number(line, 0, MOST),
    }
}

fn number(line: &Line<'_>, least: i64, most: i64) -> Parse<u32> {
    let mut cursor = Cursor { line: *line, at: 1 };
    let number = arguments::number(&mut cursor, line.keyword(), least, most)?;
    Ok(number as u32)
}
