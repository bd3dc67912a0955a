//! `filter <name> …` and `filter-sequence` (manual §9, §4.2).

use std::sync::Arc;

use super::line::{Line, Parse};
use super::proxy::ProxyBuild;
use crate::keywords::{self, filters};
use crate::model::{Direction, FilterPlace};
use crate::tree::{Span, Statement};
use telemetry::program::Direction as EventDirection;

/// The names of filters that are more than words here.
const COMP_REQ: &str = "comp-req";
const COMP_RES: &str = "comp-res";
const OPENTELEMETRY: &str = "opentelemetry";

/// The filters of a section, and the sequences of its directions.
#[derive(Default)]
pub struct FilterOrder {
    /// The names of the filters in the order of their lines.
    declared: Vec<String>,
    /// `filter-sequence request`
    request: Vec<Named>,
    /// `filter-sequence response`
    response: Vec<Named>,
}

/// A filter that a sequence names.
struct Named {
    name: String,
    span: Span,
}

impl ProxyBuild<'_, '_> {
    /// Records the filters of a section before its rules are read, because rules name filters.
    /// [`statement`] reads the same lines again and reports their faults.
    pub fn open_filters(&mut self, statements: &[Statement]) {
        self.open_otel_filters(statements);
        self.bandwidth_limits = super::bandwidth::declared(statements);
    }

    /// Gives each filter its place in the direction of its payload, after all lines of a section
    /// were read. The section's filters `opentelemetry` are those from `first_otel` on.
    pub fn order_filters(&mut self, first_otel: usize) {
        let mut order = std::mem::take(&mut self.filter_order);
        // Those of its `defaults` come first.
        let own = order.declared.iter();
        let own = own.filter(|name| *name == OPENTELEMETRY).count();
        let inherited = (self.shared.otel.len() - first_otel).saturating_sub(own);
        let inherited = std::iter::repeat_n(OPENTELEMETRY.to_owned(), inherited);
        order.declared.splice(0..0, inherited);
        let has_own = |order: &FilterOrder| {
            let mut names = order.declared.iter();
            names.any(|name| name == COMP_REQ || name == COMP_RES)
        };
        // Without a line, compression is the last filter.
        if self.proxy.compression.is_some() && !has_own(&order) {
            order
                .declared
                .extend([COMP_REQ, COMP_RES].map(str::to_owned));
        }
        let request = self.sequence(&order.declared, &order.request, "request");
        let response = self.sequence(&order.declared, &order.response, "response");
        self.place_limits(&order.declared, &request, &response);
        self.place_compression(&order.declared, &request, &response);
        let of_otel = order.declared.iter().enumerate();
        let of_otel = of_otel.filter(|(_, name)| *name == OPENTELEMETRY);
        let programs = self.shared.otel[first_otel..].iter_mut();
        for ((filter, _), otel) in of_otel.zip(programs) {
            if !request.contains(&filter) {
                otel.program.leave_out(EventDirection::Request);
            }
            if !response.contains(&filter) {
                otel.program.leave_out(EventDirection::Response);
            }
        }
    }

    /// The filters that run in a direction, by their places among the declared ones. As in HAProxy,
    /// a name is that of the first filter of its kind.
    fn sequence(&mut self, declared: &[String], named: &[Named], direction: &str) -> Vec<usize> {
        if named.is_empty() {
            return (0..declared.len()).collect();
        }
        let mut sequence = Vec::new();
        for Named { name, span } in named {
            let place = declared.iter().position(|known| known == name);
            match place {
                Some(place) if sequence.contains(&place) => {}
                Some(place) => sequence.push(place),
                None => {
                    let message = format!(
                        "{}: error while postparsing {direction} filter-sequence '{name}' : invalid filter name: \
                         '{name}' is not defined on the proxy",
                        self.proxy.name
                    );
                    self.shared.diagnostics.alert(span, message);
                }
            }
        }
        sequence
    }

    fn place_limits(&mut self, declared: &[String], request: &[usize], response: &[usize]) {
        for (kind, direction, sequence, compression) in [
            ("bwlim-in", Direction::Up, request, COMP_REQ),
            ("bwlim-out", Direction::Down, response, COMP_RES),
        ] {
            let place_of = |filter| sequence.iter().position(|known| *known == filter);
            let compression = declared.iter().position(|name| name == compression);
            let compression = compression.and_then(place_of);
            let limits = self.proxy.bandwidth_limits.iter_mut();
            let limits = limits.filter(|limit| limit.direction == direction);
            let lines = declared.iter().enumerate();
            let lines = lines.filter(|(_, name)| *name == kind);
            for (limit, (filter, _)) in limits.zip(lines) {
                limit.place = match (place_of(filter), compression) {
                    (None, _) => FilterPlace::LeftOut,
                    (Some(own), Some(compression)) if own > compression => {
                        FilterPlace::AfterCompression
                    }
                    (Some(_), _) => FilterPlace::First,
                };
            }
        }
    }

    /// A response is compressed if its filter sees the request too, which tells what the client
    /// accepts.
    fn place_compression(&mut self, declared: &[String], request: &[usize], response: &[usize]) {
        let Some(compression) = &mut self.proxy.compression else {
            return;
        };
        let is_in = |name: &str, sequence: &[usize]| {
            let filter = declared.iter().position(|known| known == name);
            filter.is_none_or(|filter| sequence.contains(&filter))
        };
        let requests = is_in(COMP_REQ, request);
        let responses = is_in(COMP_RES, request) && is_in(COMP_RES, response);
        if !requests || !responses {
            let compression = Arc::make_mut(compression);
            compression.requests.is_left_out = !requests;
            compression.responses.is_left_out = !responses;
        }
    }
}

/// `filter <name> …`
pub fn statement(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'filter' expects the name of a filter.".into())?;
    let Some(filter) = keywords::find(filters::KEYWORDS, name) else {
        let hint = super::did_you_mean(name, filters::KEYWORDS.iter().map(|row| row.name));
        return Err(line.fault(1, format!("unknown filter '{name}'{hint}.")));
    };
    let names: &[&str] = match name {
        "compression" => &[COMP_RES, COMP_REQ],
        _ => &[name],
    };
    let names = names.iter().copied().map(str::to_owned);
    build.filter_order.declared.extend(names);
    match super::parser_of(filter, line, 1, build.shared)? {
        Some(parser) => parser(build, line),
        None => Ok(()),
    }
}

/// `filter-sequence request|response <name>[,<name>]…`
pub fn sequence(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let title = build.title();
    let missing = || format!("missing argument for 'filter-sequence' in {title}.");
    let sequence = match line.need(1, missing)? {
        "request" => &mut build.filter_order.request,
        "response" => &mut build.filter_order.response,
        _ => {
            let message = format!(
                "expected either 'request' or 'response' for 'filter-sequence' in {title}."
            );
            return Err(line.fault(1, message));
        }
    };
    let missing = || format!("missing filter list for 'filter-sequence' in {title}.");
    let list = line.need(2, missing)?;
    let list = list.strip_suffix(',').unwrap_or(list);
    sequence.extend(list.split(',').map(|name| Named {
        name: name.to_owned(),
        span: line.span(2),
    }));
    line.at_most(2)
}
