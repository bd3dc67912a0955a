//! The words of a command line, one option at a time.

use std::ffi::OsString;

/// The remaining words.
pub(crate) struct Arguments<I>(I);

/// An option as the user wrote it.
pub(crate) struct Argument {
    /// The whole word.
    pub word: String,
    /// Bytes of the word up to `=`, or of the whole word.
    name_bytes: usize,
}

impl Argument {
    /// The text before `=`.
    pub(crate) fn name(&self) -> &str {
        &self.word[..self.name_bytes]
    }

    /// The text after `=`; None without one.
    pub(crate) fn inline(&self) -> Option<&str> {
        self.word.get(self.name_bytes + 1..)
    }
}

impl<I: Iterator<Item = OsString>> Arguments<I> {
    pub(crate) fn new(words: I) -> Self {
        Arguments(words)
    }

    /// The next option; None at the end.
    pub(crate) fn next(&mut self) -> Option<Argument> {
        let word = self.word()?;
        let name_bytes = word.find('=').unwrap_or(word.len());
        Some(Argument { word, name_bytes })
    }

    /// The value of an option: the text after its `=`, otherwise the next word.
    ///
    /// # Errors
    /// There is no value.
    pub(crate) fn value(&mut self, of: &Argument) -> Result<String, String> {
        let value = of.inline().map(str::to_owned).or_else(|| self.word());
        value.ok_or_else(|| format!("{} needs a value", of.name()))
    }

    fn word(&mut self) -> Option<String> {
        Some(self.0.next()?.to_string_lossy().into_owned())
    }
}
