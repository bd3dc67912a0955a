//! The walk over the data points of a request, with the stream of each.

use otlp::scan::{
    Malformed, Metric, MetricKind, POINTS, RESOURCE_ATTRIBUTES, SCOPE_ATTRIBUTES, TEMPORALITY,
    metric, point,
};
use otlp::write;

use super::super::edit::{
    FIRST, Fields, Outcome, SCHEMA_URL, SECOND, edit_fields, joined, last_bytes,
};
use super::identity::Identity;
use super::{Convert, State};

/// `InstrumentationScope.name`, `InstrumentationScope.version`
const NAME: u32 = 1 << 3 | 2;
const VERSION: u32 = 2 << 3 | 2;

/// Converts the metrics of a request; those without data points left are left out. `out` gets the
/// new request.
///
/// # Errors
/// The request is malformed. What `out` has then is not to be used.
pub fn convert<C: Convert>(
    request: &[u8],
    out: &mut Vec<u8>,
    converter: &C,
    state: &mut State<'_, C::Value, C::Tally>,
) -> Result<Outcome, Malformed> {
    edit_fields(request, FIRST, out, &mut |message, out| {
        let resource = joined(message, FIRST)?.unwrap_or_default();
        let mut of_resource = Identity::default();
        of_resource.attributes(&resource, RESOURCE_ATTRIBUTES)?;
        edit_fields(message, SECOND, out, &mut |message, out| {
            let scope = joined(message, FIRST)?.unwrap_or_default();
            let mut of_scope = of_resource.clone();
            for key in [NAME, VERSION] {
                of_scope.add(last_bytes(&scope, key)?.unwrap_or_default());
            }
            of_scope.attributes(&scope, SCOPE_ATTRIBUTES)?;
            of_scope.add(last_bytes(message, SCHEMA_URL << 3 | 2)?.unwrap_or_default());
            edit_fields(message, SECOND, out, &mut |message, out| {
                let metric = metric(message)?;
                match metric.kind {
                    Some(kind) if converter.converts(&metric) => {
                        of_metric(&metric, kind, &of_scope, out, (converter, state))
                    }
                    _ => Ok(Outcome::Same),
                }
            })
        })
    })
}

fn of_metric<C: Convert>(
    metric: &Metric<'_>,
    kind: MetricKind,
    of_scope: &Identity,
    out: &mut Vec<u8>,
    (converter, state): (&C, &mut State<'_, C::Value, C::Tally>),
) -> Result<Outcome, Malformed> {
    let mut of_metric = of_scope.clone();
    of_metric.add(metric.name);
    of_metric.add(metric.unit);
    of_metric.number(kind as u64);
    of_metric.number(metric.is_monotonic.into());
    let (mut came, mut left) = (0_u64, 0_u64);
    let mut outcome = Ok(());
    for field in Fields::new(metric.message) {
        let field = field?;
        if MetricKind::of_number(field.key >> 3).is_none() {
            out.extend_from_slice(field.whole);
        }
    }
    // Of data that are there several times the last ones count: only those are written.
    write::message(out, kind.number(), |out| {
        outcome = edit_fields(metric.data, POINTS, out, &mut |message, out| {
            came += 1;
            let point = point(kind.point(), message)?;
            let mut stream = of_metric.clone();
            stream.attributes(message, kind.point().attributes_key())?;
            let outcome = converter.point(kind, stream, &point, state, out);
            left += u64::from(outcome != Outcome::Gone);
            Ok(outcome)
        })
        .map(drop);
        write::uint(out, TEMPORALITY >> 3, C::TEMPORALITY);
    });
    outcome?;
    Ok(match (came, left) {
        (0, _) => Outcome::Same,
        (_, 0) => Outcome::Gone,
        _ => Outcome::Changed,
    })
}

/// Appends a message without the fields of some numbers. The message was checked.
pub fn without(message: &[u8], numbers: &[u32], out: &mut Vec<u8>) {
    for field in Fields::new(message).map_while(Result::ok) {
        if !numbers.contains(&(field.key >> 3)) {
            out.extend_from_slice(field.whole);
        }
    }
}
