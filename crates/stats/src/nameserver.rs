//! The counters of name servers (management guide §9.3 "show resolvers"; `show stat domain
//! resolvers`), and their writers.

use std::fmt::Write as _;

use serde_json::json;

/// A counter.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Its name in rows of statistics; [`Counter::listed`] is that in `show resolvers`.
    pub name: &'static str,
    /// HAProxy's description.
    pub about: &'static str,
}

/// The number of counters.
pub const COUNT: usize = 15;

const fn counter(name: &'static str, about: &'static str) -> Counter {
    Counter { name, about }
}

/// Every counter, in HAProxy's order.
pub const COUNTERS: [Counter; COUNT] = [
    counter("sent", "Sent"),
    counter("send_error", "Send error"),
    counter("valid", "Valid"),
    counter("update", "Update"),
    counter("cname", "CNAME"),
    counter("cname_error", "CNAME error"),
    counter("any_err", "Any errors"),
    counter("nx", "NX"),
    counter("timeout", "Timeout"),
    counter("refused", "Refused"),
    counter("other", "Other"),
    counter("invalid", "Invalid"),
    counter("too_big", "Too big"),
    counter("truncated", "Truncated"),
    counter("outdated", "Outdated"),
];

impl Counter {
    /// Its name as a metric.
    #[must_use]
    pub fn metric(&self) -> String {
        format!("haproxy_resolver_{}", self.name)
    }

    /// Its name in `show resolvers`.
    #[must_use]
    pub fn listed(&self) -> &'static str {
        match self.name {
            "send_error" => "snd_error",
            name => name,
        }
    }
}

/// A name server of a section `resolvers`.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The section.
    pub section: &'a str,
    /// The name server.
    pub name: &'a str,
    /// The values of [`COUNTERS`].
    pub values: [u64; COUNT],
}

/// The header of the rows as CSV.
pub fn csv_header(out: &mut String) {
    out.push_str("# id,pid");
    for counter in &COUNTERS {
        let _ = write!(out, ",{}", counter.name);
    }
    out.push_str(",\n");
}

impl Row<'_> {
    /// Appends it as CSV.
    pub fn csv(&self, out: &mut String) {
        let _ = write!(out, "{},{}", self.name, self.section);
        for value in self.values {
            let _ = write!(out, ",{value}");
        }
        out.push_str(",\n");
    }

    /// Appends it as typed lines; `place`: its own number. With descriptions if `described`.
    pub fn typed(&self, place: usize, described: bool, out: &mut String) {
        let texts = [("id", self.name), ("pid", self.section)];
        for (pos, (name, text)) in texts.into_iter().enumerate() {
            let _ = write!(out, "N.{place}.{pos}.{name}:CGPV:str:{text}");
            out.push_str(if described { ":\"\"\n" } else { "\n" });
        }
        for ((pos, counter), value) in COUNTERS.iter().enumerate().zip(self.values) {
            let pos = pos + texts.len();
            let _ = write!(out, "N.{place}.{pos}.{}:MGPV:u64:{value}", counter.name);
            if described {
                let _ = write!(out, ":\"{}\"", counter.about);
            }
            out.push('\n');
        }
    }

    /// Appends it as JSON.
    pub fn json(&self, out: &mut String) {
        let field = |pos: usize, name: &str, origin: &str, value: serde_json::Value| {
            json!({
                "field": {"pos": pos, "name": name},
                "tags": {"origin": origin, "nature": "Gauge", "scope": "Process"},
                "value": value,
            })
        };
        let text = |text: &str| json!({"type": "str", "value": text});
        let mut fields = vec![
            field(0, "id", "Config", text(self.name)),
            field(1, "pid", "Config", text(self.section)),
        ];
        for ((pos, counter), value) in COUNTERS.iter().enumerate().zip(self.values) {
            let value = json!({"type": "u64", "value": value});
            fields.push(field(pos + 2, counter.name, "Metric", value));
        }
        let _ = write!(out, "{}", serde_json::Value::Array(fields));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row<'static> {
        let mut values = [0; COUNT];
        (values[0], values[14]) = (7, 9);
        Row {
            section: "dns",
            name: "one",
            values,
        }
    }

    #[test]
    fn rows_in_haproxys_formats() {
        let mut out = String::new();
        csv_header(&mut out);
        row().csv(&mut out);
        assert_eq!(
            out,
            "# id,pid,sent,send_error,valid,update,cname,cname_error,any_err,nx,timeout,refused,other,invalid,too_big,truncated,outdated,\n\
             one,dns,7,0,0,0,0,0,0,0,0,0,0,0,0,0,9,\n"
        );
        out.clear();
        row().typed(3, false, &mut out);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "N.3.0.id:CGPV:str:one");
        assert_eq!(lines[2], "N.3.2.sent:MGPV:u64:7");
        assert_eq!((lines.len(), lines[16]), (17, "N.3.16.outdated:MGPV:u64:9"));
        out.clear();
        row().json(&mut out);
        let read: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(read[2]["value"]["value"], 7);
        assert_eq!(read[16]["field"]["name"], "outdated");
    }
}
