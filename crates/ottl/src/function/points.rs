//! Functions that ask about the data points of a metric (filterprocessor, "OTTL Functions").

use super::{Build, Function};
use crate::eval::Failure;
use crate::value::Value;
use otlp::scan::{Any, Metric};

pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "HasAttrKeyOnDatapoint",
        params: &["key"],
        build: Build::Points(|metric, values| match values {
            [Value::Text(key), ..] => any(metric, key, |_| true),
            _ => Err(Failure::Type),
        }),
    },
    Function {
        name: "HasAttrOnDatapoint",
        params: &["key", "value|expected_val"],
        build: Build::Points(|metric, values| match values {
            [Value::Text(key), Value::Text(expected), ..] => {
                // A value of another type counts as an empty text, as in the Collector.
                any(metric, key, |value| match value {
                    Any::Text(text) => *text == **expected,
                    _ => expected.is_empty(),
                })
            }
            _ => Err(Failure::Type),
        }),
    },
];

/// Whether any data point has an attribute with this key and such a value.
fn any(
    metric: &Metric<'_>,
    key: &[u8],
    is_wanted: impl Fn(Any<'_>) -> bool,
) -> Result<Value<'static>, Failure> {
    let found = metric.points().filter_map(Result::ok).any(|point| {
        let value = point.attributes().get(key);
        value.is_some_and(&is_wanted)
    });
    Ok(Value::Bool(found))
}
