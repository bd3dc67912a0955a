//! Routes: what a condition says of paths, as a template of few values for names of spans.

use crate::pattern::method::Method;

/// Patterns of one `acl` line that are kept as routes; a line with more has none.
const ROUTES_MAX: usize = 64;
/// Bytes of a pattern that is kept.
const ROUTE_BYTES_MAX: usize = 256;

/// A pattern of a path, as it is written.
#[derive(Debug)]
pub(super) struct Route {
    method: Method,
    text: Box<[u8]>,
}

/// The routes of a line of this fetch and method; none where it compares no path, or by files.
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
    /// Whether it is certain that the path is one of its.
    fn has(&self, path: &[u8]) -> bool {
        match self.method {
            Method::Str => *path == *self.text,
            Method::Beg => path.starts_with(&self.text),
            Method::End => path.ends_with(&self.text),
            _ => false,
        }
    }

    /// Writes it as a template, in which `*` stands for anything; regular expressions stay as they are.
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

/// Writes the one of these routes that a path has; the only one, where that is not certain. Whether there is one.
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
