//! Every compiled form gives the same result as a linear search of a list, before and after edits.

use std::path::Path;

use super::method::Method;
use super::*;
use crate::testing::{Facts, compiler};
use crate::{Compiler, Place};
use syntax::hex;

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }

    fn joined(&mut self, from: &[&str], most: usize) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| self.pick(from)).collect()
    }
}

/// A valid pattern for the method. There are few different ones, so that they collide.
fn key(method: Method, random: &mut Random) -> String {
    match method {
        Method::Int | Method::Len => match random.below(4) {
            0 => format!("{}:", random.below(20)),
            1 => format!(":{}", random.below(20)),
            2 => format!("{0}:{1}", random.below(9), 9 + random.below(9)),
            _ => random.below(20).to_string(),
        },
        Method::Ip => match random.below(6) {
            0 => format!("10.{}.0.0/255.0.255.0", random.below(3)),
            1 => format!("2001:db8:{:x}::/{}", random.below(3), 30 + random.below(20)),
            2 => format!(
                "::ffff:10.{}.0.0/{}",
                random.below(3),
                96 + random.below(33)
            ),
            _ => {
                let (second, third) = (random.below(3), random.below(3));
                format!(
                    "10.{second}.{third}.{}/{}",
                    random.below(3),
                    random.below(33)
                )
            }
        },
        Method::Bin => random.joined(&["00", "aB", "Ab", "ff"], 3),
        Method::Reg => random.joined(&["a", "b", ".", "[ab]", "A"], 3),
        _ => {
            // A file cannot contain an empty pattern.
            let text = random.joined(&["a", "b", "B", ".", "/", "?", "ab.b", "aaaaaaaaa"], 5);
            if text.is_empty() { "a".into() } else { text }
        }
    }
}

fn value(method: Method, random: &mut Random) -> Value<'static> {
    match method {
        Method::Int => Value::Int(random.below(22) as i64 - 1),
        Method::Ip => match random.below(4) {
            0 => {
                let text = format!("2001:db8:{:x}:{:x}::1", random.below(4), random.below(3));
                Value::Ipv6(text.parse().expect("an address"))
            }
            1 => {
                let text = format!("::ffff:10.{}.0.{}", random.below(4), random.below(3));
                Value::Ipv6(text.parse().expect("an address"))
            }
            _ => {
                let last = [random.below(4), random.below(4), random.below(4)];
                let [second, third, fourth] = last.map(|number| number as u8);
                Value::Ipv4([10, second, third, fourth].into())
            }
        },
        Method::Bin => {
            let text = random.joined(&["00", "ab", "ff"], 3);
            let bytes = hex::decode(text.as_bytes()).expect("digits");
            Value::Bin(Bytes::from(&bytes[..]).detach())
        }
        _ => {
            let text = random.joined(&["a", "b", "B", ".", "/", "?", "ab.b", "aaaaaaaaa", "c"], 8);
            Value::text(text.as_str()).detach()
        }
    }
}

use crate::Bytes;

/// Whether one pattern alone matches, and how specific it is if the most specific one decides
/// instead of the first.
fn fits(how: How, one: &inline::Matcher, key: &str, value: &Value<'_>) -> Option<u64> {
    if how.method != Method::Ip {
        let quality = match how.method {
            Method::Beg if !how.ignore_case => key.len() as u64,
            _ => 0,
        };
        return one.matches(value).then_some(quality);
    }
    // The family of the sample first, then the other one, then masks with holes.
    let network = parse::Network::read(key, false).expect("a network");
    let mapped = |ip: std::net::Ipv4Addr| u128::from(ip.to_ipv6_mapped());
    let v4 = |ip: u32| match network {
        parse::Network::V4 { address, mask } if ip & mask == address => {
            let bits = parse::length_of(mask);
            Some(bits.map_or(0, |bits| u64::from(bits) + 1))
        }
        _ => None,
    };
    let v6 = |ip: u128| match network {
        parse::Network::V6 { address, bits } if ip & parse::prefix6(bits) == address => {
            Some(u64::from(bits) + 1)
        }
        _ => None,
    };
    match value {
        Value::Ipv4(ip) => v4((*ip).into())
            .map(|good| if good > 0 { good + 1000 } else { 0 })
            .or_else(|| v6(mapped(*ip))),
        Value::Ipv6(ip) => v6((*ip).into())
            .map(|good| good + 1000)
            .or_else(|| v4(crate::cast::embedded_ipv4(*ip)?.into())),
        _ => None,
    }
}

/// The value of the matching entry, found by a linear search.
fn naive(
    how: How,
    singles: &[inline::Matcher],
    entries: &[(String, String)],
    value: &Value<'_>,
) -> Option<String> {
    let mut best: Option<(u64, &str)> = None;
    for ((key, found), one) in entries.iter().zip(singles) {
        if let Some(quality) = fits(how, one, key, value)
            && best.is_none_or(|(known, _)| quality > known)
        {
            best = Some((quality, found));
        }
    }
    best.map(|(_, found)| found.to_owned())
}

fn compare(how: How, lookup: &Lookup, entries: &[(String, String)], random: &mut Random) {
    let single = |(key, _): &(String, String)| {
        inline::Matcher::new(how, std::slice::from_ref(key)).expect("a pattern")
    };
    let singles: Vec<_> = entries.iter().map(single).collect();
    for _ in 0..40 {
        let value = value(how.method, random);
        let folded = inline::folded(&value, how.folds()).unwrap_or(value.clone());
        let found = lookup.content.output(lookup.number, Output::Str, &folded);
        let found = found.map(|found| match found {
            Some(Value::Str(text)) => String::from_utf8_lossy(&text).into_owned(),
            other => panic!("{other:?}"),
        });
        let wanted = naive(how, &singles, entries, &value);
        assert_eq!(found, wanted, "{how:?} {value:?} in {entries:?}");
        assert_eq!(lookup.matches(&value), wanted.is_some());
    }
}

#[test]
fn compiled_sets_answer_as_lists_do() {
    use Method::{Beg, Bin, Dir, Dom, End, Int, Ip, Len, Reg, Str, Sub};
    let mut random = Random(0x5eed);
    for method in [Beg, Bin, Dir, Dom, End, Int, Ip, Len, Reg, Str, Sub] {
        for round in 0..12 {
            let how = How {
                method,
                ignore_case: method.may_ignore_case() && round % 2 == 1,
                strict_addresses: method == Ip,
            };
            let wanted = Wanted {
                columns: Columns::KeysAndValues,
                how,
                values: ValueKinds::default(),
            };
            let mut references = References::default();
            let source = Source::default();
            let lookup = references
                .lookup(b"virt@set", wanted, &source)
                .expect("a set");
            let set = lookup.reference.clone();
            let mut entries: Vec<(String, String)> = Vec::new();
            for step in 0..120 {
                edit(method, &set, &mut entries, step, &mut random);
                if step % 6 == 5 {
                    compare(how, &lookup, &entries, &mut random);
                }
            }
            let mut listed = Vec::new();
            set.for_each(|key, value| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                listed.push((text(key), text(value)));
            });
            assert_eq!(listed, entries);
            // A use that is added later finds the existing entries.
            let how = How {
                ignore_case: !how.ignore_case && method.may_ignore_case(),
                ..how
            };
            let later = references.lookup(b"virt@set", Wanted { how, ..wanted }, &source);
            compare(how, &later.expect("a set"), &entries, &mut random);
        }
    }
}

fn edit(
    method: Method,
    set: &Reference,
    entries: &mut Vec<(String, String)>,
    step: usize,
    random: &mut Random,
) {
    let (key, value) = (key(method, random), step.to_string());
    let at = entries.iter().position(|(known, _)| *known == key);
    match random.below(12) {
        0..6 => {
            set.add(key.as_bytes(), value.as_bytes()).expect("added");
            entries.push((key, value));
        }
        6 => {
            set.add_if_new(key.as_bytes(), value.as_bytes())
                .expect("there");
            if at.is_none() {
                entries.push((key, value));
            }
        }
        7 | 8 => {
            set.set_or_add(key.as_bytes(), value.as_bytes())
                .expect("set");
            match at {
                Some(_) => entries
                    .iter_mut()
                    .filter(|(known, _)| *known == key)
                    .for_each(|(_, old)| old.clone_from(&value)),
                None => entries.push((key, value)),
            }
        }
        9 | 10 => {
            let key = match entries.len() {
                0 => key,
                some => entries[random.below(some)].0.clone(),
            };
            let at = entries.iter().position(|(known, _)| *known == key);
            assert_eq!(set.remove(key.as_bytes()).is_ok(), at.is_some());
            at.map(|at| entries.remove(at));
        }
        _ if step.is_multiple_of(5) => {
            // Sometimes enough of them for an automaton.
            let kept = [3, 25][random.below(2)];
            let mut draft = set.draft(kept);
            entries.truncate(kept);
            for (key, value) in &*entries {
                draft.add(key.as_bytes(), value.as_bytes()).expect("added");
            }
            set.commit(draft);
        }
        _ => {}
    }
}

#[test]
fn an_edit_that_does_not_suit_a_use_changes_nothing() {
    let mut compiler = compiler();
    compiler
        .expr(&["int(1),map_int_int(virt@m,7)"], Place::ALL)
        .expect("a map");
    let set = compiler.reference("virt@m");
    let refused = |message: &str| Err(EditError::Refused(message.to_owned()));
    assert_eq!(set.add(b"x", b"1"), refused("'x' is not a number"));
    assert_eq!(set.add(b"1", b"x"), refused("unable to parse 'x'"));
    assert_eq!(set.set(b"1", b"1"), Err(EditError::NotFound));
    assert_eq!(set.add(b"1", b"1"), Ok(()));
    assert_eq!(set.set(b"1", b"x"), refused("unable to parse 'x'"));
    assert_eq!(set.set_or_add(b"1", b"x"), refused("unable to parse 'x'"));
    assert_eq!(set.value_of(b"1"), Some(b"1".to_vec()));
    assert!(set.draft(0).add(b"1", b"x").is_err());
    set.clear();
    assert!(set.is_empty());
    assert_eq!(set.remove(b"1"), Err(EditError::NotFound));
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &str)]) -> Folder {
        let path = std::env::temp_dir().join(format!("spangate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        for (name, text) in files {
            std::fs::write(path.join(name), text).expect("a file");
        }
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that remains does not affect other tests.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn compiler_in(folder: &Folder) -> Compiler {
    let mut compiler = compiler();
    compiler.enter_line("test.cfg", 1, &folder.0);
    compiler
}

fn text(compiler: &mut Compiler, expr: &str) -> Option<String> {
    let (compiled, _) = compiler
        .expr(&[expr], Place::ALL)
        .unwrap_or_else(|error| panic!("{expr}: {error}"));
    let facts = Facts::new();
    compiled.eval(&facts.scope())?;
    let mut out = Vec::new();
    compiled.append_text(&facts.scope(), &mut out);
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn map_converters() {
    let folder = Folder::with(
        "maps",
        &[
            (
                "hosts",
                "first.d.tld first\nd.tld domain\nsecond.d.tld second\nfirst.d.tld again\n",
            ),
            (
                "paths",
                "/ root\n/img images\n/img/big  big one\t\n/empty\n",
            ),
            (
                "nets",
                "10.0.0.0/8 ten\n10.1.0.0/16 one\n2001:db8::/32 doc\n",
            ),
            ("numbers", "/a 5\n/b -7\n/c\n"),
            ("addresses", "/a 10.0.0.1\n/b ::1\n"),
            ("codes", "200:299 fine\n404 lost\n400: broken\n"),
            (
                "groups",
                "^(.*)\\.(.*)$ \\1_AND_\\2\n^x$ \\x41\\0\\9\n^y$ bad\\\n",
            ),
            ("dirs", "img i\ncss c\n"),
        ],
    );
    let mut compiler = compiler_in(&folder);
    for (expr, wanted) in [
        ("str(first.d.tld),map_dom(hosts)", Some("first")),
        ("str(second.d.tld),map_dom(hosts)", Some("domain")),
        ("str(first.d.tld),map_str(hosts)", Some("first")),
        ("str(first.d.tld),map(file@hosts)", Some("first")),
        ("str(FIRST.d.tld),map(hosts,none)", Some("none")),
        ("str(x.second.d.tld),map_end(opt@hosts)", Some("domain")),
        ("str(x.second.d.tld),map_end_key(hosts)", Some("d.tld")),
        ("str(x-d.tld-y),map_sub(hosts)", Some("domain")),
        ("str(/img/big/1),map_beg(paths)", Some("big one")),
        ("str(/img/small),map_beg(paths)", Some("images")),
        ("str(/img/small),map_beg_key(paths)", Some("/img")),
        ("str(/empty),map(paths,default)", Some("")),
        ("str(nothing),map_beg(paths)", None),
        ("ipv4(10.1.2.3),map_ip(nets)", Some("one")),
        ("str(10.2.2.3),map_ip(nets)", Some("ten")),
        ("ipv6(2001:db8::1),map_ip_key(nets)", Some("2001:db8::/32")),
        ("ipv4(11.0.0.1),map_ip(nets,other)", Some("other")),
        ("str(/a),map_str_int(numbers),add(1)", Some("6")),
        ("str(/b),map_str_int(numbers)", Some("-7")),
        ("str(/c),map_str_int(numbers,9)", Some("0")),
        ("str(/d),map_str_int(numbers,9)", Some("9")),
        ("str(/a),map_beg_ip(addresses)", Some("10.0.0.1")),
        ("str(/b),map_beg_ip(addresses,::2)", Some("::1")),
        ("str(/z),map_beg_ip(addresses,::2)", Some("::2")),
        ("int(204),map_int(codes)", Some("fine")),
        ("int(404),map_int(codes)", Some("lost")),
        ("int(503),map_int(codes)", Some("broken")),
        ("str(404),map_int(codes)", Some("lost")),
        ("int(100),map_int(codes,other)", Some("other")),
        (
            "str(www.example.org),map_regm(groups)",
            Some("www.example_AND_org"),
        ),
        ("str(x),map_regm(groups)", Some("Ax")),
        ("str(y),map_regm(groups)", None),
        ("str(www.example.org),map_reg(groups)", Some("\\1_AND_\\2")),
        ("str(nothing),map_regm(groups,unknown)", Some("unknown")),
        ("str(/a/img/b),map_dir(dirs)", Some("i")),
        ("str(/a/css?b),map_dir_key(dirs)", Some("css")),
        ("str(a),map(virt@empty)", None),
        ("str(a),map(opt@missing,d)", Some("d")),
    ] {
        assert_eq!(text(&mut compiler, expr).as_deref(), wanted, "{expr}");
    }
}

#[test]
fn faults_of_files_are_told_with_their_lines() {
    let folder = Folder::with(
        "faults",
        &[
            ("numbers", "# one\n1 a\nx b\n"),
            ("values", "/a 1\n/b one\n"),
            ("regexes", "a b\n(/c 1\n"),
            ("other", "a b\n"),
        ],
    );
    let mut compiler = compiler_in(&folder);
    text(&mut compiler, "str(a),map(other)");
    for (expr, message) in [
        (
            "int(1),map_int(numbers)",
            "invalid args in converter 'map_int' : 'x' is not a number at line 3 of file 'numbers'",
        ),
        (
            "str(a),map_int_int(file@numbers)",
            "invalid args in converter 'map_int_int' : 'x' is not a number at line 3 of file 'file@numbers'",
        ),
        (
            "str(a),map_beg_int(values)",
            "invalid args in converter 'map_beg_int' : unable to parse 'one' at line 2 of file 'values'",
        ),
        (
            "str(a),map_beg_ip(values)",
            "invalid args in converter 'map_beg_ip' : unable to parse '1' at line 1 of file 'values'",
        ),
        (
            "str(a),map_reg(regexes)",
            "invalid args in converter 'map_reg' : regex '(/c' is invalid (error=missing closing parenthesis, erroffset=3) at line 2 of file 'regexes'",
        ),
        (
            "str(a),map_str_int(virt@v,x)",
            "invalid arg 2 in converter 'map_str_int' : failed to parse 'x' as type 'integer' at position 2",
        ),
        (
            "str(a),map_str_ip(virt@v,x)",
            "invalid args in converter 'map_str_ip' : map: cannot parse default ip <x>.",
        ),
        (
            "str(a),map_str_key(virt@v,x)",
            "invalid arg 2 in converter 'map_str_key' : expected ')' before ',x)'",
        ),
        (
            "str(a),map(missing)",
            "invalid args in converter 'map' : failed to open pattern file <missing>",
        ),
        (
            "str(a),map",
            "invalid args in converter 'map' : failed to open pattern file <>",
        ),
    ] {
        let error = compiler.expr(&[expr], Place::ALL).expect_err(expr);
        assert_eq!(error.message, message);
    }
    let words = ["{", "path", "-f", "other", "}"];
    let error = compiler.condition(&crate::Acls::default(), &words, false, Place::ALL);
    assert_eq!(
        error.expect_err("two columns").message,
        "The file \"other\" is already used as two column file and cannot be used by as one column file."
    );
}

#[test]
fn references_are_listed_by_number_and_found_by_name() {
    let folder = Folder::with("listed", &[("one", "a\nb\n"), ("two", "a 1\n")]);
    let mut compiler = compiler_in(&folder);
    let mut acls = crate::Acls::default();
    for (line, words) in [
        "path -f one -f opt@none",
        "path -i -f file@one",
        "path -u 1 /x /y",
        "path -M -m beg -f two",
        "src -f virt@nets",
    ]
    .iter()
    .enumerate()
    {
        compiler.enter_line("test.cfg", line + 1, &folder.0);
        let words: Vec<&str> = words.split(' ').collect();
        compiler
            .acl(&mut acls, "acl", &words, Place::ALL)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
    let twice = ["path", "-u", "1", "/x"];
    compiler.enter_line("test.cfg", 9, &folder.0);
    let error = compiler.acl(&mut acls, "acl", &twice, Place::ALL);
    assert_eq!(error.expect_err("taken").message, "the id is already used");
    compiler.reference("virt@nobody");
    let (references, unread) = compiler.take_references();
    assert_eq!(unread, ["virt@nobody"]);
    let listed: Vec<_> = references
        .iter()
        .map(|reference| {
            (
                reference.id(),
                reference.name(),
                reference.len(),
                reference.columns(),
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            (0, Some("one"), 2, Columns::Keys),
            (1, None, 2, Columns::Keys),
            (2, Some("none"), 0, Columns::Keys),
            (3, Some("two"), 1, Columns::KeysAndValues),
            (4, Some("virt@nets"), 0, Columns::Keys),
        ]
    );
    let usages: Vec<_> = references
        .iter()
        .map(|reference| reference.usage())
        .collect();
    assert!(usages[0].acl && !usages[0].map && !usages[1].map && usages[3].map);
    assert_eq!(
        usages[0].text,
        "pattern loaded from file 'one' used by acl at file 'test.cfg' line 1, by acl at file 'test.cfg' line 2"
    );
    assert_eq!(usages[1].text, "acl 'path' file 'test.cfg' line 3");
    let name = |written: &str| references.find(written).map(|found| found.id());
    assert_eq!(
        [name("#1"), name("opt@one"), name("virt@nets")],
        [Some(1), Some(0), Some(4)]
    );
    assert_eq!([name("nets"), name("#9"), name("#x")], [None; 3]);
}

#[test]
fn entries_that_come_and_go_are_counted() {
    let mut compiler = compiler();
    compiler
        .expr(&["str(key),map(virt@m)"], Place::ALL)
        .expect("a map");
    let set = compiler.reference("virt@m");
    let counted = || (set.added(), set.removed(), set.len());
    for key in [b"a", b"b", b"c"] {
        set.add(key, b"0").expect("added");
    }
    assert_eq!(counted(), (3, 0, 3));
    set.set(b"a", b"1").expect("set");
    set.set_or_add(b"d", b"1").expect("added");
    set.remove(b"b").expect("removed");
    assert!(set.remove(b"b").is_err());
    assert_eq!(counted(), (4, 1, 3));
    let mut draft = set.draft(2);
    draft.add(b"x", b"0").expect("added");
    draft.add(b"y", b"0").expect("added");
    assert_eq!(counted(), (4, 1, 3), "a draft is not in use yet");
    set.commit(draft);
    assert_eq!(counted(), (6, 4, 2));
    set.clear();
    assert_eq!(counted(), (6, 6, 0));
}

#[test]
fn readers_and_writers_on_different_threads_agree() {
    let mut compiler = compiler();
    let (expr, _) = compiler
        .expr(&["str(key),map_beg(virt@m)"], Place::ALL)
        .expect("a map");
    let set = compiler.reference("virt@m");
    set.add(b"k", b"0").expect("added");
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            for round in 0..2_000 {
                let text = round.to_string();
                set.set_or_add(b"k", text.as_bytes()).expect("set");
                set.add(text.as_bytes(), b"other").expect("added");
                set.remove(text.as_bytes()).expect("removed");
            }
        });
        let facts = Facts::new();
        let mut last = 0;
        while !writer.is_finished() {
            let value = expr.eval(&facts.scope()).and_then(Value::into_int);
            let value = value.expect("there is always one");
            assert!(value >= last);
            last = value;
        }
    });
    assert_eq!(set.value_of(b"k"), Some(b"1999".to_vec()));
    assert_eq!(set.len(), 1);
}

#[test]
fn relative_names_count_from_the_folder() {
    let folder = Folder::with("relative", &[("file", "a 1\n")]);
    let mut compiler = compiler();
    compiler.enter_line("x.cfg", 1, Path::new("/nowhere"));
    assert!(compiler.expr(&["str(a),map(file)"], Place::ALL).is_err());
    let mut compiler = compiler_in(&folder);
    assert_eq!(
        text(&mut compiler, "str(a),map(file)").as_deref(),
        Some("1")
    );
}
