//! Statements: what is read, and what is refused by name.

use super::super::*;

fn fault(statement: &str) -> String {
    match Statement::parse(statement, Context::SpanEvent, false) {
        Ok(_) => panic!("{statement} is taken"),
        Err(error) => error.why,
    }
}

#[test]
fn editors_and_conditions_are_read() {
    for statement in [
        r#"set(attributes["a"], 1)"#,
        r#"set(span.status.code, STATUS_CODE_ERROR) where span.attributes["a"] != nil and not IsRootSpan()"#,
        r#"set(span.trace_state["svc"], "x")"#,
        r#"set(resource.attributes, {"a": [1]})"#,
        r#"set(cache["a"]["b"], ParseJSON(name)["k"])"#,
        r#"delete_key(attributes, "k")"#,
        r#"delete_key(attributes["map"], Concat(["a", "b"], ""))"#,
        r#"delete_matching_keys(attributes, "(?i).*password.*")"#,
        r#"keep_matching_keys(attributes, "^a")"#,
        r#"keep_keys(attributes, ["a", "b"])"#,
        r#"limit(attributes, 2, ["a"])"#,
        r#"truncate_all(attributes, 10, truncation_marker = "...")"#,
        r#"replace_pattern(name, "a(b)", "$1", SHA256, "x%s")"#,
        r#"replace_match(name, "/user/*/list/*", "/user/{userId}")"#,
        r#"replace_all_patterns(attributes, "key", "^kube_", "k8s.")"#,
        r#"replace_all_matches(attributes, "{a,b}[!c-d]?", span.name, function = SHA1)"#,
        r#"merge_maps(attributes, ParseJSON("{}"), "upsert")"#,
        r#"append(attributes["tags"], values = ["a", 1])"#,
        r#"delete_index(attributes["tags"], 0, 3)"#,
        r#"flatten(attributes, "p", depth=2, resolveConflicts=false)"#,
        "stringify_all(attributes)",
    ] {
        let parsed = Statement::parse(statement, Context::SpanEvent, false);
        assert!(parsed.is_ok(), "{statement}: {:?}", parsed.err());
    }
}

#[test]
fn what_is_refused_is_named() {
    for (statement, why) in [
        ("", "an editor is expected"),
        ("name == 1", "the editor name is not supported"),
        (r#"Concat(["a"], "")"#, "Concat changes nothing"),
        (
            "limitt(attributes, 1, [])",
            "the editor limitt is not supported",
        ),
        (r#"set("a", 1)"#, "must be a path"),
        ("set(event_index, 1)", "cannot be written"),
        ("set(span.links, [])", "cannot be written"),
        (
            "set(otelcol.client.metadata[\"a\"], \"b\")",
            "cannot be written",
        ),
        ("set(name, otelcol.client.metadata)", "name one key of it"),
        (
            "set(name, otelcol.client.metadata[name])",
            "name one key of it",
        ),
        (
            "set(name, otelcol.client.auth.attributes)",
            "name one key of it",
        ),
        ("set(name, otelcol.client.addr[\"a\"])", "has no such key"),
        (
            "set(name, otelcol.grpc.metadata[\"a\"][0])",
            "the same is in otelcol.client.metadata",
        ),
        ("set(name, otelcol.other)", "is not supported"),
        ("set(name)", "takes 2 arguments"),
        (r#"set(name, "a") when true"#, "`when` is not expected"),
        (r#"set(name, "a") where name"#, "a comparison is expected"),
        (r#"delete_key(name, "a")"#, "must be a map"),
        (
            r#"delete_matching_keys(attributes, "(")"#,
            "regular expression",
        ),
        (
            r#"delete_matching_keys(attributes, name)"#,
            "a text in quotes",
        ),
        (r#"limit(attributes, -1, [])"#, "a number from 0"),
        (r#"limit(attributes, 1, ["a", "b"])"#, "more priority keys"),
        (
            r#"truncate_all(attributes, 2, true, "...")"#,
            "the marker is longer",
        ),
        (
            r#"merge_maps(attributes, cache, "replace")"#,
            "the strategy is",
        ),
        (r#"append(attributes["a"])"#, "there is no value"),
        (r#"append(name, "a")"#, "must be a list"),
        (
            r#"flatten(attributes, resolveConflicts=true)"#,
            "resolve_conflicts is not supported",
        ),
        (r#"replace_pattern(name, "a", "b", Nope)"#, "function Nope"),
        (
            r#"replace_pattern(name, "a", "b", Concat)"#,
            "Concat takes no text alone",
        ),
        (r#"replace_pattern(name, "a", "b", SHA256, "x")"#, "one %s"),
        (r#"replace_match(name, "[a", "b")"#, "has no ]"),
        (
            r#"replace_all_patterns(attributes, "values", "a", "b")"#,
            "the mode is",
        ),
        (
            "set_semconv_span_name(\"1.37.0\")",
            "set_semconv_span_name is not supported",
        ),
    ] {
        let fault = fault(statement);
        assert!(fault.contains(why), "{statement}: {fault}");
    }
}
