//! What is accepted and refused, rule by rule; and that the result does not depend on how the bytes
//! come.

use super::*;
use crate::{Method, Version};

mod request;
mod response;

const LIMITS: Limits = Limits {
    head_bytes_max: 2048,
    fields_max: 20,
};

/// A head as it is forwarded, with what the parser found.
type Outcome = Result<(String, Parsed), ParseError>;

fn parse(
    input: &[u8],
    strictness: Strictness,
    to: Option<Method>,
    head: &mut Head,
) -> Result<Option<Parsed>, ParseError> {
    match to {
        None => parse_request(input, LIMITS, strictness, head),
        Some(to) => parse_response(input, to, LIMITS, strictness, head),
    }
}

/// Parses a whole head. Every shorter input must be incomplete, or refused for the same rule.
fn outcome(input: &str, strictness: Strictness, to: Option<Method>) -> Outcome {
    let mut head = Head::default();
    let whole = parse(input.as_bytes(), strictness, to, &mut head);
    let mut out = Vec::new();
    match to {
        None => write_request(&head, None, &mut out),
        Some(_) => write_response(&head, None, &mut out),
    }
    if let Ok(Some(_)) = whole {
        assert_eq!(out.len(), head.wire_bytes(), "{input:?}");
    }
    for len in 0..input.len() {
        let cut = parse(&input.as_bytes()[..len], strictness, to, &mut head);
        match (cut, whole) {
            (Ok(None), _) => {}
            (Ok(Some(cut)), Ok(Some(whole))) if len >= whole.consumed => {
                assert_eq!(cut, whole, "{input:?}")
            }
            (Err(cut), Err(whole)) if cut == whole => {}
            (cut, _) => panic!("{input:?} cut at {len}: {cut:?}, whole: {whole:?}"),
        }
    }
    let parsed = whole?.unwrap_or_else(|| panic!("{input:?} is incomplete"));
    Ok((String::from_utf8_lossy(&out).into_owned(), parsed))
}

fn request(input: &str) -> Outcome {
    outcome(input, Strictness::Strict, None)
}

fn relaxed(input: &str) -> Outcome {
    outcome(input, Strictness::Relaxed, None)
}

fn response(input: &str) -> Outcome {
    outcome(input, Strictness::Strict, Some(Method::Get))
}

/// A request with this line and these fields, the line end of each left out.
fn lines(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| format!("{line}\r\n"))
        .chain(["\r\n".to_owned()])
        .collect()
}

/// The request line and fields as forwarded, line by line.
fn forwarded(outcome: Outcome) -> Result<Vec<String>, ParseError> {
    let (text, _) = outcome?;
    Ok(text.trim_end().split("\r\n").map(str::to_owned).collect())
}
