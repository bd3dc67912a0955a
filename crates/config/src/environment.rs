//! The environment a configuration is read in: a copy of the process's, changed by `setenv` and its kin, never the real one.

use std::collections::BTreeMap;

/// Names and values, as bytes: the outside may have put anything there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Environment {
    /// Nothing defined.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of the process's environment.
    pub fn of_process() -> Self {
        use std::os::unix::ffi::OsStringExt;
        Environment { variables: std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec())).collect() }
    }

    /// The value of `name`; an empty one is not the same as none.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.variables.get(name.as_ref()).map(Vec::as_slice)
    }

    /// Sets `name`, whatever it was.
    pub fn set(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.variables.insert(name.as_ref().to_vec(), value.as_ref().to_vec());
    }

    /// Removes `name`.
    pub fn unset(&mut self, name: impl AsRef<[u8]>) {
        self.variables.remove(name.as_ref());
    }

    /// Removes every name for which `keep` says no.
    pub fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        self.variables.retain(|name, _| keep(name));
    }

    /// Names and values in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.variables.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }
}
