//! Section `otel-group`, and the rules that run groups.

use super::super::line::{Cursor, Line, Parse};
use super::super::proxy::ProxyBuild;
use super::filter::FilterBuild;
use super::instrumentation::list;
use crate::model::{HttpAction, OtelGroup, TcpAction};
use crate::tree::Section;
use sample::Place;
use telemetry::program::Group;

/// Reads a group.
pub fn build(build: &mut FilterBuild<'_, '_, '_>, section: &Section) -> Group {
    let header = Line::new(&section.header);
    let mut group = Group {
        name: header.arg(1).into(),
        scopes: Vec::new(),
    };
    let mut empty = true;
    for line in section.statements.iter().map(Line::new) {
        let result = statement(build, &line, &mut group);
        empty = false;
        build.settle(result);
    }
    if empty {
        let message = format!("otel-group '{}' has no 'scopes'.", group.name);
        build.settle(Err(header.fault(0, message)));
    }
    group
}

fn statement(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>, group: &mut Group) -> Parse {
    if line.keyword() != "scopes" {
        return Err(super::super::unknown(
            line,
            "otel-group",
            ["scopes"].into_iter(),
        ));
    }
    for (name, span) in list(line)? {
        let Some(scope) = build.scopes.get(&name) else {
            let message = format!("otel-scope '{name}' is not defined.");
            return Err(super::super::line::Fault::new(span, message));
        };
        group.scopes.push(*scope);
    }
    Ok(())
}

/// `otel-group <filter-id> <group>`; its name was taken.
fn group(build: &ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>) -> Parse<OtelGroup> {
    let id = cursor.value("the id of a filter")?;
    let Some(filter) = build.filters.iter().position(|filter| filter.id == id) else {
        return Err(cursor.fault(format!(
            "'otel-group' : no filter 'opentelemetry' with id '{id}' in {}.",
            build.title()
        )));
    };
    let name = cursor.line.need(cursor.at, || {
        "'otel-group' expects the name of a group as argument.".into()
    })?;
    cursor.at += 1;
    let Some(group) = build.filters[filter].group(name) else {
        return Err(cursor.fault(format!(
            "'otel-group' : filter '{id}' has no otel-group '{name}'."
        )));
    };
    Ok(OtelGroup { filter, group })
}

/// In HTTP rules.
pub fn http_group(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<HttpAction> {
    group(build, cursor).map(HttpAction::OtelGroup)
}

/// In TCP rules.
pub fn tcp_group(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<TcpAction> {
    group(build, cursor).map(TcpAction::OtelGroup)
}
