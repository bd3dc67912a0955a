//! Names of components and pipelines.

use std::fmt;

use crate::config::source::shortened;

/// Characters of the type in an id.
pub const TYPE_CHARS_MAX: usize = 63;
/// Characters of the name in an id.
pub const NAME_CHARS_MAX: usize = 1024;

/// `type` or `type/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId {
    /// The type as it is written, perhaps an old name of it.
    pub kind: String,
    /// What stands after the slash; empty: nothing.
    pub name: String,
}

impl ComponentId {
    /// Reads an id.
    ///
    /// # Errors
    /// Why the text is none.
    pub fn parse(text: &str) -> Result<ComponentId, String> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (kind.trim(), Some(name.trim())),
            None => (text.trim(), None),
        };
        let shown = shortened(text);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if kind.is_empty() {
            return Err(format!("'{shown}' is no id: a type must stand first"));
        }
        if !kind.starts_with(|c: char| c.is_ascii_alphabetic())
            || !kind.chars().all(is_word)
            || kind.len() > TYPE_CHARS_MAX
        {
            return Err(format!(
                "'{shown}' is no id: a type is made of letters, digits and '_'"
            ));
        }
        let odd = |c: char| c.is_whitespace() || c.is_control();
        match name {
            Some("") => Err(format!("'{shown}' is no id: a name must follow '/'")),
            Some(name) if name.chars().any(odd) || name.chars().count() > NAME_CHARS_MAX => Err(
                format!("'{shown}' is no id: blanks and the like are in its name"),
            ),
            name => Ok(ComponentId {
                kind: kind.to_owned(),
                name: name.unwrap_or_default().to_owned(),
            }),
        }
    }
}

impl fmt::Display for ComponentId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(out, "{}", self.kind),
            name => write!(out, "{}/{name}", self.kind),
        }
    }
}
