//! JSON: `show stat json`, `show schema json`, `;json`.

use std::fmt::Write as _;

use serde_json::json;

use crate::column::Column;
use crate::row::{Row, Value};
use crate::tags::Tags;

/// A row: an array of its fields. Rows are elements of an array, separated by commas.
pub fn row(row: &Row<'_>, out: &mut String) {
    let (iid, sid) = (row.number(Column::Iid), row.number(Column::Sid));
    out.push('[');
    for (place, (column, value)) in row.filled().enumerate() {
        if place > 0 {
            out.push(',');
        }
        // Writing to memory does not fail.
        let _ = write!(
            out,
            "{{\"objType\":\"{}\",\"proxyId\":{iid},\"id\":{sid},",
            row.kind.word()
        );
        field(
            column as usize,
            column.field().name,
            column.tags(row.kind),
            value,
            out,
        );
    }
    out.push(']');
}

/// The rest of an object for a field: its index and name, its properties, its value. Closes the
/// object.
pub fn field(place: usize, name: &str, tags: Tags, value: &Value<'_>, out: &mut String) {
    let (origin, nature, scope) = tags;
    let shown = match value {
        Value::Text(text) => json!(text),
        Value::U32(number) => json!(number),
        Value::S32(number) => json!(number),
        Value::U64(number) => json!(number),
        Value::Float(number) => json!(number),
    };
    // Writing to memory does not fail.
    let _ = write!(
        out,
        "\"field\":{{\"pos\":{place},\"name\":\"{name}\"}},\"processNum\":1,\
         \"tags\":{{\"origin\":\"{}\",\"nature\":\"{}\",\"scope\":\"{}\"}},\
         \"value\":{{\"type\":\"{}\",\"value\":{shown}}}}}",
        origin.word(),
        nature.word(),
        scope.word(),
        value.kind(),
    );
}

/// The schema (draft 4) of the output of `show info json` and `show stat json`.
#[must_use]
pub fn schema() -> String {
    let kinds = ["Frontend", "Backend", "Listener", "Server", "Unknown"];
    let item = |properties: serde_json::Value, required: &[&str]| {
        json!({
            "type": "array",
            "items": {
                "title": "InfoItem",
                "type": "object",
                "properties": properties,
                "required": required,
            },
        })
    };
    let refer = |name: &str| json!({ "$ref": format!("#/definitions/{name}") });
    let info = item(
        json!({
            "field": refer("field"),
            "processNum": refer("processNum"),
            "tags": refer("tags"),
            "value": refer("typedValue"),
        }),
        &["field", "processNum", "tags", "value"],
    );
    let stat = item(
        json!({
            "objType": { "enum": kinds },
            "proxyId": { "type": "integer", "minimum": 0 },
            "id": { "type": "integer", "minimum": 0 },
            "field": refer("field"),
            "processNum": refer("processNum"),
            "tags": refer("tags"),
            "value": refer("typedValue"),
        }),
        &[
            "objType",
            "proxyId",
            "id",
            "field",
            "processNum",
            "tags",
            "value",
        ],
    );
    let titled = |title: &str, mut of: serde_json::Value| {
        of["title"] = json!(title);
        of
    };
    let number = |kind: &str, least: i64, most: u64| {
        json!({
            "type": "object",
            "properties": {
                "type": { "enum": [kind] },
                "value": { "type": "integer", "minimum": least, "maximum": most },
            },
            "required": ["type", "value"],
        })
    };
    let text = json!({
        "type": "object",
        "properties": { "type": { "enum": ["str"] }, "value": { "type": "string" } },
        "required": ["type", "value"],
    });
    let float = json!({
        "type": "object",
        "properties": { "type": { "enum": ["flt"] }, "value": { "type": "number" } },
        "required": ["type", "value"],
    });
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "oneOf": [
            titled("Info", info),
            titled("Stat", json!({ "type": "array", "items": stat })),
            {
                "title": "Error",
                "type": "object",
                "properties": { "errorStr": { "type": "string" } },
                "required": ["errorStr"],
            },
        ],
        "definitions": {
            "field": {
                "type": "object",
                "pos": { "type": "integer", "minimum": 0 },
                "name": { "type": "string" },
                "required": ["pos", "name"],
            },
            "processNum": { "type": "integer", "minimum": 1 },
            "tags": {
                "type": "object",
                "origin": { "type": "string", "enum": ["Metric", "Status", "Key", "Config", "Product", "Unknown"] },
                "nature": {
                    "type": "string",
                    "enum": ["Gauge", "Limit", "Min", "Max", "Rate", "Counter", "Duration", "Age", "Time", "Name", "Output", "Avg", "Unknown"],
                },
                "scope": { "type": "string", "enum": ["Cluster", "Process", "Service", "System", "Unknown"] },
                "required": ["origin", "nature", "scope"],
            },
            "typedValue": {
                "type": "object",
                "oneOf": [
                    number("s32", i64::from(i32::MIN), i32::MAX as u64),
                    number("s64", i64::MIN, i64::MAX as u64),
                    number("u32", 0, u64::from(u32::MAX)),
                    number("u64", 0, u64::MAX),
                    text,
                    float,
                ],
            },
        },
    });
    schema.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Kind;

    #[test]
    fn rows_are_arrays_of_fields() {
        let mut one = Row::new(Kind::Server);
        one.set(Column::Svname, "s\"1");
        one.set(Column::Iid, 3_u32);
        one.set(Column::Sid, 7_u32);
        let mut text = String::new();
        row(&one, &mut text);
        let tree: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(tree[0]["objType"], "Server");
        assert_eq!(tree[0]["proxyId"], 3);
        assert_eq!(tree[0]["id"], 7);
        assert_eq!(tree[0]["field"]["name"], "svname");
        assert_eq!(tree[0]["value"]["value"], "s\"1");
        assert_eq!(tree[1]["tags"]["origin"], "Key");
    }

    #[test]
    fn the_schema_is_json() {
        let tree: serde_json::Value = serde_json::from_str(&schema()).expect("JSON");
        assert_eq!(tree["oneOf"][1]["title"], "Stat");
    }
}
