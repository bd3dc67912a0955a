//! `pprof`: profiles of a Go program, which this is not.

use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, opt};

const REASON: &str = "this is no Go program: there is nothing of pprof to serve";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:1777", "address to listen on").no_effect(REASON),
    opt("block_profile_fraction", Kind::Int(i64::MIN, i64::MAX), "0", "share of blocking that is told").no_effect(REASON),
    opt("mutex_profile_fraction", Kind::Int(i64::MIN, i64::MAX), "0", "share of waits for locks that is told").no_effect(REASON),
    opt("save_to_file", Kind::Text, "", "file of a profile").no_effect(REASON),
    opt("dialer", Kind::Any, "", "options of a client").no_effect(REASON),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("pprof")],
    doc: "accepted, and serves nothing",
    takes: &[],
    carries: &[],
    options: &[OPTIONS],
    parse: Parse::LeftOut(REASON),
};
