//! Routes: the path patterns of a condition, as templates for span names with few distinct values.

use crate::pattern::method::Method;

/// Most patterns of one `acl` line that are kept as routes; a line with more patterns has none.
const ROUTES_MAX: usize = 64;
/// Most bytes of a pattern that is kept.
const ROUTE_BYTES_MAX: usize = 256;

/// A pattern of a path, as written in the configuration.
#[derive(Debug)]
pub(super) struct Route {
    method: Method,
    text: Box<[u8]>,
}

/// The routes of a line with this fetch and method; none if it does not compare the path.
pub(super) fn of_line<'t>(
    fetch: &str,
    method: Method,
    patterns: impl ExactSizeIterator<Item = &'t [u8]>,
) -> Box<[Route]> {
    let is_route = matches!(
        method,
        Method::Str | Method::Beg | Method::End | Method::Reg | Method::Sub | Method::Dir
    );
    if fetch != "path" || !is_route || patterns.len() > ROUTES_MAX {
        return Box::default();
    }
    let routes = patterns.filter(|text| text.len() <= ROUTE_BYTES_MAX);
    let routes = routes.map(|text| Route {
        method,
        text: text.into(),
    });
    routes.collect()
}

impl Route {
    /// Whether the path certainly matches the pattern.
    fn has(&self, path: &[u8]) -> bool {
        match self.method {
            Method::Str => *path == *self.text,
            Method::Beg => path.starts_with(&self.text),
            Method::End => path.ends_with(&self.text),
            _ => false,
        }
    }

    /// Writes the pattern as a template, in which `*` stands for anything. Regular expressions are
    /// not changed.
    fn write(&self, out: &mut Vec<u8>) {
        let (before, after) = match self.method {
            Method::Beg => (false, true),
            Method::End => (true, false),
            Method::Sub | Method::Dir => (true, true),
            _ => (false, false),
        };
        out.extend(before.then_some(b'*'));
        out.extend_from_slice(&self.text);
        out.extend(after.then_some(b'*'));
    }
}

/// Writes the route that the path certainly matches. If no match is certain, writes the route only
/// if there is exactly one. Returns whether one was written.
pub(super) fn write<'r>(
    routes: impl Iterator<Item = &'r Route> + Clone,
    path: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let mut all = routes.clone();
    let only = all.next().filter(|_| all.next().is_none());
    let mut routes = routes;
    let Some(route) = routes.find(|route| route.has(path)).or(only) else {
        return false;
    };
    route.write(out);
    true
}
