//! `zpages`: pages about a running Collector.

use crate::config::components::shared::http;
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, opt};

const REASON: &str = "there are no such pages: the status page and the metrics tell the same";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:55679", "address to listen on").no_effect(REASON),
    opt("expvar", Kind::Maybe(&[]), "", "variables of Go").no_effect(REASON),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("zpages")],
    doc: "accepted, and serves nothing",
    takes: &[],
    carries: &[],
    options: &[OPTIONS, http::SERVER],
    parse: Parse::LeftOut(REASON),
};
