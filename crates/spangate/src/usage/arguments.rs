//! The words of a command line, one option at a time.

use std::ffi::OsString;

/// The words that are left.
pub(crate) struct Arguments<I>(I);

/// An option as it was written.
pub(crate) struct Argument {
    /// The whole word.
    pub word: String,
    /// Bytes of the word up to `=`, or all.
    name_bytes: usize,
}

impl Argument {
    /// What stands before `=`.
    pub(crate) fn name(&self) -> &str {
        &self.word[..self.name_bytes]
    }

    /// What stands after `=`; none without one.
    pub(crate) fn inline(&self) -> Option<&str> {
        self.word.get(self.name_bytes + 1..)
    }
}

impl<I: Iterator<Item = OsString>> Arguments<I> {
    pub(crate) fn new(words: I) -> Self {
        Arguments(words)
    }

    /// The next option; none at the end.
    pub(crate) fn next(&mut self) -> Option<Argument> {
        let word = self.word()?;
        let name_bytes = word.find('=').unwrap_or(word.len());
        Some(Argument { word, name_bytes })
    }

    /// The value of an option: what stands after its `=`, else the next word.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn value(&mut self, of: &Argument) -> Result<String, String> {
        let value = of.inline().map(str::to_owned).or_else(|| self.word());
        value.ok_or_else(|| format!("{} needs a value", of.name()))
    }

    fn word(&mut self) -> Option<String> {
        Some(self.0.next()?.to_string_lossy().into_owned())
    }
}
