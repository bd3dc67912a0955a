//! `flatten_data`: each log record gets a resource and scope of its own before the statements, and
//! records of the same resource and scope are put together again behind them.

use std::collections::HashMap;

use otlp::scan::Malformed;
use otlp::write;

use super::super::edit::{FIRST, Fields, SECOND};

/// Bytes of a request whose records have resources and scopes of their own: more is refused.
const FLATTENED_BYTES_MAX: usize = 256 << 20;

/// A request in which each record has a resource and scope of its own.
///
/// # Errors
/// The request is malformed, or too large.
pub fn flatten(request: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::with_capacity(2 * request.len());
    each(request, FIRST, &mut out, |resource, out| {
        let mut around = Vec::new();
        others(resource, &mut around)?;
        for scope in messages(resource) {
            let mut around_scope = Vec::new();
            others(scope, &mut around_scope)?;
            for record in messages(scope) {
                write::message(out, FIRST >> 3, |out| {
                    out.extend_from_slice(&around);
                    write::message(out, SECOND >> 3, |out| {
                        out.extend_from_slice(&around_scope);
                        write::bytes(out, SECOND >> 3, record);
                    });
                });
                if out.len() > FLATTENED_BYTES_MAX {
                    return Err(Malformed::TooLarge);
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// Scopes with the same surroundings, and their records as they are written.
struct Scope {
    around: Vec<u8>,
    records: Vec<u8>,
}

/// Resources with the same surroundings.
struct Resource {
    around: Vec<u8>,
    scopes: Vec<Scope>,
    places: HashMap<Vec<u8>, usize>,
}

/// A request in which records of the same resource and scope are together, in the order in which
/// each came first.
///
/// # Errors
/// The request is malformed.
pub fn regroup(request: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut resources: Vec<Resource> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut out = Vec::with_capacity(request.len());
    each(request, FIRST, &mut out, |resource, _| {
        let mut around = Vec::new();
        others(resource, &mut around)?;
        let place = *places.entry(around.clone()).or_insert(resources.len());
        if place == resources.len() {
            resources.push(Resource {
                around,
                scopes: Vec::new(),
                places: HashMap::new(),
            });
        }
        let Some(group) = resources.get_mut(place) else {
            return Ok(());
        };
        messages(resource).try_for_each(|scope| group.add(scope))
    })?;
    for resource in resources {
        write::message(&mut out, FIRST >> 3, |out| {
            out.extend_from_slice(&resource.around);
            for scope in resource.scopes {
                write::message(out, SECOND >> 3, |out| {
                    out.extend_from_slice(&scope.around);
                    out.extend_from_slice(&scope.records);
                });
            }
        });
    }
    Ok(out)
}

impl Resource {
    fn add(&mut self, scope: &[u8]) -> Result<(), Malformed> {
        let mut around = Vec::new();
        others(scope, &mut around)?;
        let place = *self
            .places
            .entry(around.clone())
            .or_insert(self.scopes.len());
        if place == self.scopes.len() {
            self.scopes.push(Scope {
                around,
                records: Vec::new(),
            });
        }
        if let Some(group) = self.scopes.get_mut(place) {
            for record in messages(scope) {
                write::bytes(&mut group.records, SECOND >> 3, record);
            }
        }
        Ok(())
    }
}

/// Calls `work` with each message under a key; all else is copied to `out`.
fn each<'a>(
    message: &'a [u8],
    key: u32,
    out: &mut Vec<u8>,
    mut work: impl FnMut(&'a [u8], &mut Vec<u8>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    for field in Fields::new(message) {
        let field = field?;
        match field.message(key >> 3) {
            Some(inner) => work(inner, out)?,
            None if field.key >> 3 == key >> 3 => return Err(Malformed::WireType),
            None => out.extend_from_slice(field.whole),
        }
    }
    Ok(())
}

/// Appends all fields but the scopes of a resource, or the records of a scope.
fn others(message: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    each(message, SECOND, out, |_, _| Ok(()))
}

/// The scopes of a resource, or the records of a scope, which was checked by [`others`].
fn messages(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    let fields = Fields::new(message).map_while(Result::ok);
    fields.filter_map(|field| field.message(SECOND >> 3))
}
