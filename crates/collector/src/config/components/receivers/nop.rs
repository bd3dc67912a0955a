//! `nop`: a receiver of nothing.

use super::{Receiver, ReceiverSettings};
use crate::config::components::{EVERY, Entry, Parse, name};

/// A receiver that receives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopReceiver;

impl ReceiverSettings for NopReceiver {}

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("nop")],
    doc: "receives nothing",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Receiver(|_| Receiver::new(NopReceiver)),
};
