//! Actions that rewrite the request's target (manual §4.4): with a regular expression, and
//! `normalize-uri`.

use super::super::line::{Cursor, Parse};
use super::super::proxy::ProxyBuild;
use crate::model::{HttpAction, Rewrite, TargetPart};
use http::normalize::Normalizer;
use sample::Place;

/// Actions that rewrite a part of the target.
macro_rules! rewrites {
    ($($doc:literal $name:ident $part:ident;)*) => {$(
        #[doc = $doc]
        pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
            let with = rewrite(build, cursor, place)?;
            Ok(HttpAction::ReplaceTarget { part: TargetPart::$part, with })
        }
    )*};
}
rewrites! {
    "`replace-path <regex> <format>`" replace_path Path;
    "`replace-pathq <regex> <format>`" replace_pathq PathAndQuery;
    "`replace-uri <regex> <format>`" replace_uri Whole;
}

/// Parses the arguments of such an action: a regular expression and a format.
pub fn rewrite(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<Rewrite> {
    for at in [cursor.at, cursor.at + 1] {
        cursor.line.need(at, || {
            let action = cursor.line.arg(1);
            format!("'{action}' expects <match-regex> and <replace-format> as arguments.")
        })?;
    }
    let regex = super::regex(&cursor.line, cursor.at)?;
    let format = build
        .shared
        .log_format(&cursor.line, cursor.at + 1, place)?;
    cursor.at += 2;
    let id = build.shared.rewrites;
    build.shared.rewrites += 1;
    Ok(Rewrite { id, regex, format })
}

/// `normalize-uri <normalizer>`
pub fn normalize_uri(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    let what = "'normalize-uri' action is experimental";
    if let Some(message) = build.shared.refuses_experimental(what) {
        return Err(cursor.fault(message));
    }
    let name = cursor.value("<normalizer>")?;
    let step = match name {
        "fragment-encode" => Normalizer::FragmentEncode,
        "fragment-strip" => Normalizer::FragmentStrip,
        "path-merge-slashes" => Normalizer::PathMergeSlashes,
        "path-strip-dot" => Normalizer::PathStripDot,
        "path-strip-dotdot" => Normalizer::PathStripDotdot {
            full: option(cursor, "full")?,
        },
        "percent-decode-unreserved" => Normalizer::PercentDecodeUnreserved {
            strict: option(cursor, "strict")?,
        },
        "percent-to-uppercase" => Normalizer::PercentToUppercase {
            strict: option(cursor, "strict")?,
        },
        "query-sort-by-name" => Normalizer::QuerySortByName,
        _ => return Err(cursor.fault(format!("unknown normalizer '{name}'."))),
    };
    Ok(HttpAction::NormalizeUri(step))
}

/// Consumes a normalizer's option, if it follows.
fn option(cursor: &mut Cursor<'_>, name: &str) -> Parse<bool> {
    let normalizer = cursor.last();
    match cursor.peek() {
        "" | "if" | "unless" => Ok(false),
        word => {
            cursor.take();
            if word == name {
                Ok(true)
            } else {
                Err(cursor.fault(format!(
                    "unknown argument '{word}' for '{normalizer}' normalizer."
                )))
            }
        }
    }
}
