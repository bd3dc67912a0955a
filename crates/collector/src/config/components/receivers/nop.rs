//! `nop`: a receiver of nothing.

use super::Receiver;
use crate::config::components::{EVERY, Entry, Parse, name};

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("nop")],
    doc: "receives nothing",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Receiver(|_| Receiver::Nop),
};
