//! Policies of `tail_sampling` alone, as somebody tries them: a text comes in, settings and
//! diagnostics go out.

use serde::Serialize;
use tail::settings::TailSampling;

use super::components::processors::tail_sampling::{TABLE, settings};
use super::diagnostic::{At, Diagnostic, Notes, Severity};
use super::options::{Section, check};
use super::source::{self, Key, Node, Value};

/// Bytes of such a text.
pub const POLICIES_BYTES_MAX: usize = 256 << 10;

/// What the text is called in messages about other places in it.
const NAME: &str = "policies";
const PATH: &str = "tail_sampling";

/// The first thing that is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoliciesFault {
    /// What it is, with the path of the option.
    pub error: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Reads policies: a list, or a map with `policies` and other options of `tail_sampling`, which may
/// stand below `tail_sampling` or `tail_sampling/name`. References to variables and files stand for
/// nothing: the text is a guest's.
///
/// Gives the settings, and warnings in the order of the text.
///
/// # Errors
/// The first thing that is wrong; that there are no policies too.
pub fn policies(text: &str) -> Result<(TailSampling, Vec<Diagnostic>), PoliciesFault> {
    let start = At {
        file: 0,
        line: 1,
        column: 1,
    };
    let notes = Notes::default();
    let mut settings = None;
    if text.len() > POLICIES_BYTES_MAX {
        let message = format!("is longer than {POLICIES_BYTES_MAX} bytes");
        notes.error(start, message);
    } else if let Some(node) = source::text(text, NAME, &notes)
        && !notes.has_errors()
    {
        settings = read(node, &notes);
    }
    let told = notes.into_diagnostics();
    let mut errors = told.iter().filter(|one| one.severity == Severity::Error);
    match (errors.next(), settings) {
        (None, Some(settings)) if !settings.policies.is_empty() => Ok((settings, told)),
        (error, _) => Err(PoliciesFault {
            error: error.map_or_else(|| "there are no policies".to_owned(), |e| e.message.clone()),
            line: error.map_or(1, |one| one.line.max(1)),
            column: error.map_or(1, |one| one.column.max(1)),
        }),
    }
}

fn read(node: Node, notes: &Notes) -> Option<TailSampling> {
    let node = match node.value {
        Value::Null => return None,
        Value::List(_) => {
            let key = Key {
                at: node.at,
                text: "policies".to_owned(),
            };
            Node::new(node.at, Value::Map(vec![(key, node)]))
        }
        Value::Map(entries) if entries.len() == 1 && is_sampler(&entries[0].0.text) => {
            entries.into_iter().next().map(|(_, node)| node)?
        }
        _ => node,
    };
    check(&node, TABLE, PATH, node.at, notes);
    let section = Section::new(Some(&node), TABLE, PATH.to_owned(), node.at, notes);
    Some(settings(&section))
}

fn is_sampler(key: &str) -> bool {
    key == PATH || key.starts_with("tail_sampling/")
}
