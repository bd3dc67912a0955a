//! What `script.lua` does, for tests without a store.

use std::collections::BTreeMap;

use redis::{Arg, Cmd, Value};

type Fields = BTreeMap<String, String>;

/// The data of a store.
#[derive(Clone, Debug, Default)]
pub struct FakeStore {
    entries: BTreeMap<Vec<u8>, Fields>,
    processes: BTreeMap<Vec<u8>, u64>,
}

/// The words of a command.
struct Words(std::vec::IntoIter<Vec<u8>>);

impl Words {
    fn bytes(&mut self) -> Vec<u8> {
        self.0.next().expect("a word")
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).expect("text")
    }

    fn number(&mut self) -> u64 {
        self.text().parse().expect("a number")
    }
}

impl FakeStore {
    /// Runs a command at this time.
    pub fn answer(&mut self, command: &Cmd, now_ms: u64) -> Value {
        let words: Vec<Vec<u8>> = command
            .args_iter()
            .map(|arg| match arg {
                Arg::Simple(bytes) => bytes.to_vec(),
                _ => panic!("a plain word"),
            })
            .collect();
        let mut words = Words(words.into_iter());
        assert_eq!(
            (words.text(), words.text()),
            ("EVALSHA".into(), "sha".into())
        );
        let keys = words.number();
        let process = words.bytes();
        let keys: Vec<Vec<u8>> = (1..keys).map(|_| words.bytes()).collect();
        let (number, after) = (words.number(), words.number());
        assert!(words.number() > 0 && words.number() > 0);
        let count = words.number();
        let names: Vec<String> = (0..count).map(|_| words.text()).collect();
        let kinds: Vec<String> = (0..count).map(|_| words.text()).collect();

        let last = self.processes.get(&process).copied();
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        match last {
            None if after > 0 => return Value::Array(vec![bulk("lost")]),
            Some(last) if last != after && (last < after || last < number) => {
                return Value::Array(vec![bulk("last"), Value::Int(last as i64)]);
            }
            _ => {}
        }
        let is_new = number > last.unwrap_or(0);
        if is_new {
            self.processes.insert(process, number);
        }
        let mut answer = vec![bulk("ok"), bulk(&now_ms.to_string())];
        for key in keys {
            let changes = words.text();
            let changes = if is_new && changes != "+" {
                &*changes
            } else {
                ""
            };
            let fields = self.entries.entry(key.clone()).or_default();
            let values = exchange(fields, changes, &names, &kinds, now_ms);
            let is_empty = fields.is_empty();
            if is_empty {
                self.entries.remove(&key);
            }
            answer.push(if is_empty { Value::Nil } else { bulk(&values) });
        }
        assert!(words.0.next().is_none());
        Value::Array(answer)
    }

    /// The sum of a field of an entry of the table `t`.
    pub fn sum(&self, key: &[u8], field: &str) -> i64 {
        let entry = &self.entries[&[b"p/t/k/", key].concat()];
        entry[field].parse().expect("a number")
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    pub fn forget_processes(&mut self) {
        self.processes.clear();
    }
}

fn exchange(
    fields: &mut Fields,
    changes: &str,
    names: &[String],
    kinds: &[String],
    now_ms: u64,
) -> String {
    let mut changes = changes.split(' ').filter(|change| !change.is_empty());
    let values = names.iter().zip(kinds).map(|(name, kind)| {
        let change = changes.next().unwrap_or("-");
        let old = fields.get(name).cloned();
        match kind.as_str() {
            "s" => {
                let change: i64 = change.parse().unwrap_or(0);
                let old: i64 = old.map_or(0, |old| old.parse().expect("a sum"));
                if change != 0 {
                    fields.insert(name.clone(), (old + change).to_string());
                }
                (old + change).to_string()
            }
            "t" if change == "-" => old.unwrap_or_else(|| "-".to_owned()),
            "t" => {
                fields.insert(name.clone(), change.to_owned());
                change.to_owned()
            }
            period => {
                let period: u64 = period.parse().expect("a period");
                let window = now_ms / period;
                let mut parts = [0; 3];
                if let Some(old) = old {
                    for (part, text) in parts.iter_mut().zip(old.split(':')) {
                        *part = text.parse().expect("a number");
                    }
                }
                let [began, mut current, mut previous] = parts;
                if began + 1 == window {
                    (current, previous) = (0, current);
                } else if began != window {
                    (current, previous) = (0, 0);
                }
                let events: u64 = change.parse().unwrap_or(0);
                if events > 0 {
                    current += events;
                    fields.insert(name.clone(), format!("{window}:{current}:{previous}"));
                }
                format!("{current},{previous}")
            }
        }
    });
    values.collect::<Vec<String>>().join(" ")
}
