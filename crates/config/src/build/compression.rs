//! `compression` (manual §4.2).

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::{not_yet, values};
use crate::model::{Coding, Compression};
use std::sync::Arc;

/// `compression <what> …`
pub fn compression(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let what = line.arg(1);
    let current = build.proxy.compression.take().unwrap_or_default();
    let mut own = Arc::unwrap_or_clone(current);
    let result = set(&mut own, what, build, line);
    build.proxy.compression = Some(Arc::new(own));
    result
}

fn set(own: &mut Compression, what: &str, build: &ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 2 };
    match what {
        "algo" | "algo-res" => {
            line.need(2, || format!("'compression {what}' expects <algorithm>."))?;
            for name in line.texts(2) {
                let mut known = Coding::ALL.into_iter();
                let Some(coding) = known.find(|coding| coding.keyword() == name) else {
                    return Err(cursor.line.fault(
                        cursor.at,
                        format!("'compression' : '{name}' is not a supported algorithm."),
                    ));
                };
                cursor.take();
                if !own.codings.contains(&coding) {
                    own.codings.push(coding);
                }
            }
            Ok(())
        }
        "type" | "type-res" => {
            line.need(2, || format!("'compression {what}' expects <type>."))?;
            own.types.extend((2..line.count()).map(|at| line.octets(at)));
            Ok(())
        }
        "minsize-res" => {
            let text = cursor.value("a size in bytes")?;
            let bytes = values::size(text)
                .map_err(|bad| cursor.fault(values::size_message(bad, text, what)))?;
            own.min_bytes = bytes as u64;
            line.at_most(2)
        }
        "offload" => {
            line.at_most(1)?;
            if build.is_defaults() {
                let message = "'compression' : 'offload' setting ignored in 'defaults' section.";
                return Err(line.fault(1, message).as_warning());
            }
            own.offload = true;
            Ok(())
        }
        "direction" => match line.arg(2) {
            "response" => line.at_most(2),
            "request" | "both" => Err(line.fault(2, not_yet("compression direction request"))),
            _ => Err(line.fault(
                2,
                "'compression' : 'direction' expects 'request', 'response', or 'both'.",
            )),
        },
        "algo-req" | "type-req" | "minsize-req" => {
            Err(line.fault(1, not_yet(&format!("compression {what}"))))
        }
        _ => Err(line.fault(
            1,
            "'compression' expects 'algo', 'type', 'direction', 'offload', 'minsize-req' or 'minsize-res'.",
        )),
    }
}

/// `filter compression` and `filter comp-res`: the place of compression among the filters. Here it
/// is always the last one, as in HAProxy without these lines.
pub fn filter(_build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)
}
