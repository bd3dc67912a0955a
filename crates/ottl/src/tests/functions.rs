//! What functions, lists, maps and keys give, worked out by hand.

use super::super::*;
use super::says;

fn holds(conditions: &[&str]) {
    for condition in conditions {
        assert_eq!(says(condition, Context::Span), Ok(Ok(true)), "{condition}");
    }
}

fn fails(conditions: &[(&str, Failure)]) {
    for (condition, failure) in conditions {
        let said = says(condition, Context::Span);
        assert_eq!(said, Ok(Err(*failure)), "{condition}");
    }
}

#[test]
fn lists_maps_and_keys() {
    holds(&[
        r#"attributes["list"] == ["first", 2]"#,
        r#"attributes["list"] != ["first", 3] and attributes["list"] != ["first"]"#,
        r#"attributes["map"] == {"in": "side"}"#,
        r#"attributes["map"] != {"in": "side", "b": 1}"#,
        r#"{"a": 1, "b": [2, {}]} == {"b": [2, {}], "a": 1}"#,
        r#"{"a": attributes["tier"]} == {"a": "gold"}"#,
        r#"attributes[Concat(["ti", "er"], "")] == "gold""#,
        r#"attributes[attributes["pointer"]] == "gold""#,
        r#"attributes["list"][1 - 1] == "first""#,
        r#"attributes["none"]["deeper"] == nil"#,
        r#"Split(name, " ")[1] == "/cart""#,
        r#"ParseJSON("{\"a\":[1,{\"b\":2.5}]}")["a"][1]["b"] == 2.5"#,
        "dropped_attributes_count + 1 == 4 and resource.dropped_attributes_count == 0",
        r#"cache["x"] == nil and resource.attributes != {}"#,
        r#"trace_state[attributes["letter"]] == "v""#,
    ]);
    fails(&[
        (r#"attributes[attributes["none"]] == 1"#, Failure::Type),
        (r#"Split(name, " ")[2] == """#, Failure::Index),
        (r#"Split(name, " ")["a"] == """#, Failure::Type),
        (r#"[start_time] == 1"#, Failure::Type),
    ]);
}

#[test]
fn texts() {
    holds(&[
        r#"Concat(["a", 1, true, 1.5, 0x0aff, [1], nil], "|") == "a|1|true|1.5|0aff|<nil>""#,
        r#"ConvertCase(name, "lower") == "get /cart" and ConvertCase("a", "upper") == "A""#,
        r#"Split("a,b,,c", ",") == ["a", "b", "", "c"] and Split("éa", "") == ["é", "a"]"#,
        r#"String([1, {"a": "<"}]) == "[1,{\"a\":\"<\"}]" and String(nil) == nil"#,
        r#"Substring("123456789", 3, 2) == "45" and Substring("一二三", 0, 4, true) == "一""#,
        r#"Trim("  a ") == "a" and Trim("xxaxx", "x") == "a""#,
        r#"TrimPrefix("ingest_a", "ingest_") == "a" and TrimSuffix("a_b", "_b") == "a""#,
        r#"IsMatch(attributes["list"], "^\\[\"first\",2\\]$") and IsMatch(attributes["raw"], "^01ff$")"#,
        r#"Len({"a": 1}) == 1 and Index("hello world", "world") == 6 and Index(["a", 2], 2) == 1"#,
        r#"Index(["a"], "b") == -1"#,
    ]);
    fails(&[
        (r#"Substring("abc", 1, 3) == """#, Failure::Index),
        (r#"Substring("abc", -1, 1) == """#, Failure::Index),
        (r#"Split(5, ",") == [""]"#, Failure::Type),
        (r#"ConvertCase("a", name) == "a""#, Failure::Syntax),
    ]);
}

#[test]
fn numbers_and_encodings() {
    holds(&[
        r#"Bool("T") == true and Bool("0") == false and Bool("x") == nil and Bool(0.5) == true"#,
        r#"Double("2.5") == 2.5 and Double(true) == 1 and Double("x") == nil and Int("x") == nil"#,
        r#"Log(1) == 0 and ParseInt("ff", 16) == 255 and ParseInt("-0x1f", 0) == -31"#,
        r#"Hex(12) == "000000000000000c" and Hex("1") == "31" and Hex(1.1) == "3ff199999999999a""#,
        r#"Base64Encode("hello world") == "aGVsbG8gd29ybGQ=" and Base64Decode("aGk=") == "hi""#,
        r#"Base64Encode("??>", "base64-raw-url") == "Pz8-" and Decode("Pz8-", "base64-raw-url") == "??>""#,
        r#"Decode("é", "utf-8") == "é""#,
        r#"TraceID("abababababababababababababababab") == trace_id"#,
        // FNV-1a: the published test value of an empty text, and of "a".
        r#"FNV("") == -3750763034362895579 and FNV("a") == -5808556873153909620"#,
        r#"MD5("") == "d41d8cd98f00b204e9800998ecf8427e""#,
        r#"SHA1("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d""#,
        r#"SHA256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
        r#"HasPrefix(SHA512("abc"), "ddaf35a193617aba")"#,
        r#"XXH3("") == "2d06800538d394c2" and XXH128("") == "99aa06d3014798d86001c324468d497f""#,
    ]);
    fails(&[
        (r#"Log(0) == 1"#, Failure::Type),
        (r#"ParseInt("z", 10) == 1"#, Failure::Syntax),
        (r#"Decode("a", name) == """#, Failure::Syntax),
        (r#"Base64Decode("*") == """#, Failure::Syntax),
        (r#"SHA256(5) == """#, Failure::Type),
    ]);
}

#[test]
fn what_is_asked_of_values() {
    holds(&[
        r#"IsEmpty("") and IsEmpty(nil) and IsEmpty({}) and IsEmpty(0) and not IsEmpty([1])"#,
        r#"IsEmpty(parent_span_id) and not IsEmpty(span_id)"#,
        r#"ContainsValue(["GET", 2], 2.0) and not ContainsValue(attributes["list"], "second")"#,
        r#"IsValidLuhn("17893729974") and not IsValidLuhn(17893729975)"#,
        r#"IsInCIDR("10.1.2.3", ["192.168.0.0/16", "10.0.0.0/8"])"#,
        r#"not IsInCIDR("11.1.2.3", ["10.0.0.0/8"]) and IsInCIDR("::1", ["::/0"])"#,
        r#"Keys({"k1": 1, "k2": 2}) == ["k1", "k2"] and Values({"k1": [1]}) == [[1]]"#,
        r#"Coalesce([attributes["none"], attributes["tier"], "x"]) == "gold" and Coalesce([]) == nil"#,
        r#"Sort([3, 1.5, 2]) == [1.5, 2, 3] and Sort(["b", "a"], "desc") == ["b", "a"]"#,
        r#"Sort([10, "9", true]) == ["10", "9", "true"]"#,
    ]);
    fails(&[
        (r#"IsInCIDR("x", [])"#, Failure::Syntax),
        (r#"IsInCIDR("1.2.3.4", ["1.2.3.4/33"])"#, Failure::Syntax),
        (r#"Keys("a") == []"#, Failure::Type),
        (r#"Sort([1], "up") == [1]"#, Failure::Syntax),
    ]);
}

#[test]
fn times() {
    holds(&[
        // 2024-02-29T23:59:58.000000007Z, a Thursday.
        "Year(Unix(1709251198, 7)) == 2024 and Month(Unix(1709251198)) == 2 and Day(Unix(1709251198)) == 29",
        "Hour(Unix(1709251198)) == 23 and Minute(Unix(1709251198)) == 59 and Second(Unix(1709251198)) == 58",
        "Nanosecond(Unix(1709251198, 7)) == 7 and Weekday(Unix(1709251198)) == 4",
        // The last second before 1970, a Wednesday.
        "Year(Unix(-1)) == 1969 and Month(Unix(-1)) == 12 and Day(Unix(-1)) == 31 and Weekday(Unix(-1)) == 3",
        "UnixNano(start_time) == start_time_unix_nano and UnixMilli(end_time) == 3500 and UnixSeconds(end_time) == 3",
        "UnixMicro(Unix(1, 5000)) == 1000005",
        r#"Hours(Duration("90m")) == 1.5 and Minutes(Duration("90s")) == 1.5 and Seconds(Duration("1500ms")) == 1.5"#,
        r#"Milliseconds(Duration("1.5s")) == 1500 and Microseconds(Duration("1ms")) == 1000 and Nanoseconds(Duration("1us")) == 1000"#,
        r#"TruncateTime(end_time, Duration("1s")) == Unix(3) and end_time + Duration("1s") == Duration("1s") + end_time"#,
    ]);
    fails(&[
        (r#"Duration("1 day") == 1"#, Failure::Syntax),
        ("Year(5) == 5", Failure::Type),
        ("Unix(9223372036854775807) == 1", Failure::Math),
    ]);
}

#[test]
fn texts_that_hold_values() {
    holds(&[
        r#"ParseJSON("[null,true,1,1.5e3]") == [nil, true, 1, 1500.0]"#,
        r#"ParseKeyValue("k1=v1 k2='v 2'  k3=\"v=3\"") == {"k1": "v1", "k2": "v 2", "k3": "v=3"}"#,
        r#"ParseKeyValue("a:1,b:2", ":", ",") == {"a": "1", "b": "2"}"#,
        r#"ToKeyValueString({"b": "v=2", "a": {"c": 1}}, sort_output = true) == "a={\"c\":1} b=\"v=2\"""#,
        r#"ExtractPatterns(name, "^(?P<verb>\\w+) /(?P<rest>.*)$") == {"verb": "GET", "rest": "cart"}"#,
        r#"ExtractPatterns(name, "^(?P<verb>\\d+)") == {}"#,
    ]);
    fails(&[
        (r#"ParseJSON("{") == 1"#, Failure::Syntax),
        (r#"ParseKeyValue("k") == 1"#, Failure::Syntax),
        (r#"ParseKeyValue("k='v") == 1"#, Failure::Syntax),
    ]);
    let deep = format!("ParseJSON(\"{}{}\") == 1", "[".repeat(40), "]".repeat(40));
    assert_eq!(says(&deep, Context::Span), Ok(Err(Failure::Depth)));
    let error = says(r#"ExtractPatterns(name, "a") == 1"#, Context::Span).unwrap_err();
    assert!(error.why.contains("no group with a name"), "{error}");
}

#[test]
fn what_would_always_fail_is_refused() {
    for (condition, why) in [
        (
            r#"ConvertCase("a", "snake") == "a""#,
            "ConvertCase to \"snake\" is not supported",
        ),
        (
            r#"Decode("a", "latin-9") == "a""#,
            "Decode of \"latin-9\" is not supported",
        ),
    ] {
        let error = says(condition, Context::Span).unwrap_err();
        assert!(error.why.contains(why), "{error}");
    }
}

#[test]
fn functions_have_one_entry_each() {
    let mut all: Vec<&str> = function_names().chain(MISSING.iter().copied()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn paths_of_contexts() {
    let said = |text: &str, context| {
        Condition::prefixed(text, context)
            .err()
            .map(|error| error.why)
    };
    for context in Context::ALL {
        assert_eq!(said(r#"resource.attributes["a"] == 1"#, context), None);
    }
    assert_eq!(said(r#"scope.name == "a""#, Context::Scope), None);
    let why = said(r#"span.name == "a""#, Context::Scope).unwrap();
    assert!(
        why.contains("span.name is not supported with the context scope"),
        "{why}"
    );
    let why = said(r#"name == "a""#, Context::Span).unwrap();
    assert!(why.contains("write resource.name"), "{why}");
    let why = said("IsRootSpan()", Context::Resource).unwrap();
    assert!(why.contains("asks about a span"), "{why}");
}
