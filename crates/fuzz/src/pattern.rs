//! Pattern files and what is made of them, and regular expressions.

use sample::pattern::{Columns, lines};
use sample::{Compiler, Place, Value};

/// Ways of comparing that a file is read for.
const CONVERTERS: &[&str] = &[
    "str(),map_str(virt@f)",
    "str(),map_beg(virt@f)",
    "str(),map_end(virt@f)",
    "str(),map_dom(virt@f)",
    "str(),map_dir(virt@f)",
    "str(),map_sub(virt@f)",
    "int(0),map_int(virt@f)",
    "ipv4(0.0.0.0),map_ip(virt@f)",
];

/// Every line of a file of any bytes is an entry or nothing; an entry that a set takes is found by
/// its key, edited and taken out again, and what it refuses changes nothing.
pub fn pattern_file(data: &[u8]) {
    for columns in [Columns::Keys, Columns::KeysAndValues] {
        let mut last = 0;
        for line in lines(data, columns) {
            assert!(line.line > last && !line.key.is_empty());
            let blanks = |byte: &u8| matches!(byte, b' ' | b'\t');
            assert!(columns == Columns::Keys || !line.key.iter().any(blanks));
            assert!(!line.value.first().is_some_and(blanks));
            assert!(![line.key, line.value].concat().contains(&b'\n'));
            last = line.line;
        }
    }
    for converter in CONVERTERS {
        let mut compiler = Compiler::new();
        compiler
            .expr(&[converter], Place::ALL)
            .unwrap_or_else(|error| panic!("{converter}: {error}"));
        let set = compiler.reference("virt@f");
        let mut draft = set.draft(0);
        let mut taken = Vec::new();
        for line in lines(data, Columns::KeysAndValues) {
            if draft.add(line.key, line.value).is_ok() {
                taken.push(line);
            }
        }
        set.commit(draft);
        assert_eq!(set.len(), taken.len());
        set.look_up(0, Value::text(data), |_, _| {});
        for line in &taken {
            assert!(set.value_of(line.key).is_some());
            set.set_or_add(line.key, b"x")
                .expect("a key that was taken");
            assert_eq!(set.value_of(line.key).as_deref(), Some(&b"x"[..]));
        }
        for line in &taken {
            set.remove(line.key).expect("an entry for each line");
        }
        assert!(set.is_empty());
        set.look_up(0, Value::text(data), |_, _| panic!("an entry that is gone"));
    }
}

/// Patterns that are longer say nothing new and take long to compile.
const REGEX_BYTES_MAX: usize = 200;

/// A pattern of any text is compiled or refused, and a match lies in its text.
pub fn regex(data: &[u8]) {
    let data = &data[..data.len().min(REGEX_BYTES_MAX)];
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(regex) = sample::regex::compile(text, data.len().is_multiple_of(2)) else {
        return;
    };
    let all = regex.captures_iter(data);
    let mut end = 0;
    for captures in all.take(64) {
        let found = captures.get(0).expect("a match");
        assert!(found.start() >= end && found.end() <= data.len());
        end = found.end();
    }
    assert_eq!(regex.is_match(data), regex.captures(data).is_some());
}
