//! `compression` (manual §4.2).

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::values;
use crate::model::{Coding, Compressed, Compression};
use std::sync::Arc;

/// `compression <what> …`
pub fn compression(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let is_defaults = build.is_defaults();
    set(own(build), line.arg(1), is_defaults, line)
}

fn set(own: &mut Compression, what: &str, is_defaults: bool, line: &Line<'_>) -> Parse {
    match what {
        "algo" | "algo-res" => {
            line.need(2, || format!("'compression {what}' expects <algorithm>."))?;
            for at in 2..line.count() {
                let coding = coding(line, at)?;
                if !own.codings.contains(&coding) {
                    own.codings.push(coding);
                }
            }
            Ok(())
        }
        "algo-req" => {
            line.need(2, || format!("'compression {what}' expects <algorithm>."))?;
            own.request_coding = Some(coding(line, 2)?);
            line.at_most(2)
        }
        "type" | "type-res" => types(&mut own.responses, line),
        "type-req" => types(&mut own.requests, line),
        "minsize-res" => min_bytes(&mut own.responses, line),
        "minsize-req" => min_bytes(&mut own.requests, line),
        "offload" => {
            line.at_most(1)?;
            if is_defaults {
                let message = "'compression' : 'offload' setting ignored in 'defaults' section.";
                return Err(line.fault(1, message).as_warning());
            }
            own.offload = true;
            Ok(())
        }
        "direction" => {
            (own.requests.is_on, own.responses.is_on) = match line.arg(2) {
                "request" => (true, false),
                "response" => (false, true),
                "both" => (true, true),
                _ => {
                    return Err(line.fault(
                        2,
                        "'compression' : 'direction' expects 'request', 'response', or 'both'.",
                    ));
                }
            };
            line.at_most(2)
        }
        _ => Err(line.fault(
            1,
            "'compression' expects 'algo', 'type', 'direction', 'offload', 'minsize-req' or 'minsize-res'.",
        )),
    }
}

/// The coding that a word names.
fn coding(line: &Line<'_>, at: usize) -> Parse<Coding> {
    let name = line.arg(at);
    let mut known = Coding::ALL.into_iter();
    known
        .find(|coding| coding.keyword() == name)
        .ok_or_else(|| {
            line.fault(
                at,
                format!("'compression' : '{name}' is not a supported algorithm."),
            )
        })
}

fn types(of: &mut Compressed, line: &Line<'_>) -> Parse {
    line.need(2, || {
        format!("'compression {}' expects <type>.", line.arg(1))
    })?;
    of.types.extend((2..line.count()).map(|at| line.octets(at)));
    Ok(())
}

fn min_bytes(of: &mut Compressed, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 2 };
    let text = cursor.value("a size in bytes")?;
    let bytes = values::size(text)
        .map_err(|bad| cursor.fault(values::size_message(bad, text, line.arg(1))))?;
    of.min_bytes = bytes as u64;
    line.at_most(2)
}

/// `filter compression`: the place of compression among the filters ([`super::filter`]).
pub fn filter(_build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)
}

/// `filter comp-req`: the same, and requests are compressed.
pub fn filter_requests(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    own(build).requests.is_on = true;
    line.at_most(1)
}

/// `filter comp-res`: the same, and responses are compressed.
pub fn filter_responses(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    own(build).responses.is_on = true;
    line.at_most(1)
}

/// The compression of the proxy at hand, to change it.
fn own<'a>(build: &'a mut ProxyBuild<'_, '_>) -> &'a mut Compression {
    Arc::make_mut(build.proxy.compression.get_or_insert_default())
}
