//! Variables, stick tables and pattern sets.

use super::{first, next};
use sample::VarScope;
use spangate_config::model::Config;
use std::sync::Arc;

fn slots(config: &Config, scope: VarScope) -> String {
    let vars = config.var_names.of(scope);
    let shown = vars.map(|(slot, name)| format!("{name}={slot}"));
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn variables_keep_their_slots() {
    let text = |names: &[&str]| {
        let lines = names.iter();
        let lines = lines.map(|name| format!(" tcp-request session set-var({name}) src\n"));
        "frontend f\n bind 127.0.0.1:81\n".to_owned() + &lines.collect::<String>()
    };
    let one = first(&text(&["sess.a", "sess.b", "txn.a"]));
    let two = next(&one, &text(&["sess.c", "txn.b", "sess.b"]));
    assert_eq!(slots(&two, VarScope::Sess), "a=0 b=1 c=2");
    assert_eq!(slots(&two, VarScope::Txn), "a=0 b=1");
    assert_eq!((two.slots.sess, two.slots.txn), (3, 2));
    let three = next(&two, &text(&["sess.a"]));
    assert_eq!(
        (three.slots, slots(&three, VarScope::Sess)),
        (two.slots, slots(&two, VarScope::Sess))
    );
}

#[test]
fn an_unknown_context_of_a_previous_configuration_gives_no_warning() {
    let front = "frontend f\n bind 127.0.0.1:81\n timeout client 1s\n mode http\n";
    let one = first(&[front, " http-request set-header x %[otel.context(c)]\n"].concat());
    let previous = spangate_config::build::previous::Previous::of(one);
    let (two, diagnostics) =
        crate::common::read_after(Some(Arc::new(previous)), front).expect("valid");
    assert_eq!(two.contexts, ["c"]);
    assert_eq!(diagnostics.iter().count(), 0, "{diagnostics:?}");
}

#[test]
fn tables_of_the_same_definition_keep_their_entries() {
    let text = |table: &str| {
        format!(
            "frontend f\n bind 127.0.0.1:81\n tcp-request connection track-sc0 src table t\n\
             backend t\n stick-table {table}\nbackend u\n stick-table type ip size 10 store gpc0\n"
        )
    };
    let one = first(&text("type ip size 10 expire 1m store gpc0,conn_cur"));
    one.tables[1].with_new(&[1, 2, 3, 4], 0, |_| ());
    let named = |config: &Config, name| {
        let mut tables = config.tables.iter();
        Arc::clone(
            tables
                .find(|it| it.definition().name == name)
                .expect("a table"),
        )
    };
    let mut last = Arc::clone(&one);
    for _ in 0..3 {
        last = next(
            &last,
            &text("type ip size 10 expire 60s store gpc0,conn_cur"),
        );
        assert!(Arc::ptr_eq(&named(&one, "t"), &named(&last, "t")));
        let of_proxy = last.proxies[1].table.as_ref().expect("a table");
        assert!(Arc::ptr_eq(of_proxy, &named(&one, "t")));
    }
    for other in [
        "type ip size 11 expire 1m store gpc0,conn_cur",
        "type ip size 10 expire 2m store gpc0,conn_cur",
        "type ip size 10 expire 1m store conn_cur,gpc0",
        "type ip size 10 expire 1m store gpc0",
        "type ipv6 size 10 expire 1m store gpc0,conn_cur",
        "type ip size 10 expire 1m nopurge store gpc0,conn_cur",
        "type ip size 10 expire 1m srvkey addr store gpc0,conn_cur",
    ] {
        let changed = next(&one, &text(other));
        assert!(
            !Arc::ptr_eq(&named(&one, "t"), &named(&changed, "t")),
            "{other}"
        );
        assert!(Arc::ptr_eq(&named(&one, "u"), &named(&changed, "u")));
    }
}

#[test]
fn maps_keep_edits_unless_their_file_changed() {
    let path = std::env::temp_dir().join(format!("spangate-previous-{}.map", std::process::id()));
    let file = path.to_str().expect("text");
    std::fs::write(&path, "a 1\nb 2\n").expect("a file");
    let text = |converter: &str| {
        format!(
            "frontend f\n bind 127.0.0.1:81\n mode http\n http-request set-map({file}) k v\n \
             http-request set-header x %[path,{converter}({file})]\n"
        )
    };
    let value = |config: &Config, key: &str| {
        let set = config.patterns.find(file).expect("a set");
        set.value_of(key.as_bytes())
            .map(|value| String::from_utf8_lossy(&value).into_owned())
    };
    let one = first(&text("map"));
    let set = one.patterns.find(file).expect("a set");
    set.set(b"a", b"edited").expect("set");
    let two = next(&one, &text("map_beg"));
    assert_eq!(value(&two, "a").as_deref(), Some("edited"));
    assert_eq!(two.patterns.find(file).map(|set| set.id()), Some(set.id()));
    std::fs::write(&path, "a 3\n").expect("a file");
    let three = next(&two, &text("map"));
    assert_eq!(value(&three, "a").as_deref(), Some("3"));
    assert_eq!(value(&two, "a").as_deref(), Some("edited"));
    let _ = std::fs::remove_file(&path);
}
