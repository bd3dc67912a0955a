//! From files to one tree: read, merged, expanded.
//!
//! Files are merged in their order (maps merge, everything else is replaced), then `${…}` is
//! expanded in the whole, as the Collector does it. Every value keeps the place where it was
//! written.

mod expand;
mod merge;
mod read;
mod tree;
pub(crate) mod typing;

pub(crate) use tree::{Key, Node, Value, shortened};

use super::diagnostic::{At, Notes};
use read::{Otherwise, Place, Reader};

/// Files of one configuration, included ones too.
pub const FILES_MAX: usize = 64;
/// Bytes of one file.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// Levels of maps and lists within each other.
pub const DEPTH_MAX: usize = 64;
/// Maps, lists and scalars of the whole, aliases and expansions written out.
pub const NODES_MAX: usize = 200_000;
/// Expansions of `${…}` in one configuration.
pub const EXPANSIONS_MAX: usize = 10_000;
/// Expansions that one text may take, one after the other, until nothing is left to expand.
pub const EXPANSION_ROUNDS_MAX: usize = 100;
/// Bytes that expansions may add to one configuration.
pub const EXPANDED_BYTES_MAX: usize = 8 << 20;

/// The outside: variables and files.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// A variable's value, where it is set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// A file's bytes, or why there are none.
    pub read_file: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

/// The tree of one text, whatever it is: of no file, and with no variable and no file to refer to.
pub(crate) fn text(text: &str, name: &str, notes: &Notes) -> Option<Node> {
    let outside = Outside {
        variable: &|_| None,
        read_file: &|_| Err("files are not read here".to_owned()),
    };
    let reader = Reader::new(outside, notes);
    let file = Place::File(notes.file(name));
    let mut root = reader.parse(text, file, Otherwise::Error)?;
    expand::expand(&mut root, &reader);
    Some(root)
}

/// One tree of several sources, each a path or `file:`, `env:` or `yaml:` with what follows. `None`
/// after an error that leaves no tree.
pub(crate) fn tree(sources: &[&str], outside: Outside<'_>, notes: &Notes) -> Option<Node> {
    let reader = Reader::new(outside, notes);
    let mut root = Node::new(At::default(), Value::Map(Vec::new()));
    let mut whole = true;
    for source in sources {
        match reader.source(source) {
            Some(node) => merge::merge(&mut root, node, notes),
            None => whole = false,
        }
    }
    expand::expand(&mut root, &reader);
    whole.then_some(root)
}
