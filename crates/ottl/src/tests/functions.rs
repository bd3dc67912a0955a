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
            r#"ConvertCase("a", "kebab") == "a""#,
            "ConvertCase to \"kebab\" is not supported",
        ),
        (
            r#"ParseCSV("a", "b", "ab") == {}"#,
            "the argument delimiter of ParseCSV must be a single character",
        ),
        (
            r#"ParseCSV("a", "b", mode = "lax") == {}"#,
            "the argument mode of ParseCSV must be",
        ),
        (
            r#"Format(name, [1]) == """#,
            "the argument format of Format must be a text in quotes",
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
    let mut all: Vec<&str> = function_names().collect();
    all.extend(MISSING.iter().map(|(name, _)| name));
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

#[test]
fn formats_of_times() {
    holds(&[
        // 2024-02-29T23:59:58.123456789Z, a Thursday.
        r#"FormatTime(Now(), "%Y-%m-%dT%H:%M:%S.%LZ") == "2024-02-29T23:59:58.123Z""#,
        r#"FormatTime(Now(), "%y %q %e %g %a %A %b %h %B %I %l %p %P") == "24 2 29 29 Thu Thursday Feb Feb February 11 11 PM pm""#,
        r#"FormatTime(Now(), "%S,%f|%S.%s|%D|%x|%F|%T|%X|%r|%R|%n|%t|%%") == "58,123456|58.123456789|02/29/2024|02/29/2024|2024-02-29|23:59:58|23:59:58|11:59:58 pm|23:59|\n|\t|%""#,
        r#"FormatTime(Now(), "%c %z %Z %i %j %k %w") == "Thu Feb 29 23:59:58 2024 +0000 UTC +00 +00:00 +00:00:00 +000000""#,
        // Zeros at the end of a fraction are left out, as Go does.
        r#"FormatTime(Unix(0, 500000000), "%S.%f") == "00.5" and FormatTime(Unix(0), "%S.%f") == "00""#,
        r#"FormatTime(Unix(0), "%e|%l") == " 1|12" and FormatTime(Unix(-1), "%F") == "1969-12-31""#,
        r#"Time("02/04/2023", "%m/%d/%Y", "UTC") == Unix(1675468800)"#,
        r#"Time("Feb 15, 2023", "%b %d, %Y", "UTC") == Unix(1676419200)"#,
        r#"Time("2023-05-26 12:34:56 HST", "%Y-%m-%d %H:%M:%S %Z") == Time("2023-05-26T22:34:56Z", "%FT%TZ")"#,
        r#"Time("1986-10-01T00:17:33 MST", "%Y-%m-%dT%H:%M:%S %Z") == Unix(528535053)"#,
        r#"Time("2012-11-01T22:08:41+0000 EST", "%Y-%m-%dT%H:%M:%S%z %Z") == Unix(1351807721)"#,
        r#"Time("2012-11-01 22:08:41.25-07:30", "%F %T%j") == Time("2012-11-02T05:38:41.25Z", "%FT%TZ")"#,
        r#"Time("friday  MARCH 12 2004 2:03:04 AM", "%A %B %d %Y %l:%M:%S %p", "UTC") == Unix(1079056984)"#,
        r#"Time("12:00:00 am,1", "%I:%M:%S %P,%L", "UTC") == Time("2024-02-29 00:00:00.1Z", "%F %TZ")"#,
        // The year is that of today, or the one before where that is far ahead.
        r#"Time("Mar  7 10:00:00", "%b %e %H:%M:%S", "UTC") == Time("2024-03-07Z10", "%FZ%H", "UTC")"#,
        r#"Year(Time("Mar 8", "%b %e", "UTC")) == 2023 and Day(Time("29", "%d", "UTC")) == 29"#,
        r#"Hour(Time("2023-07-01 12 +0200", "%F %H %z")) == 12 and UnixSeconds(Time("2023-07-01 12 +0200", "%F %H %z")) == 1688205600"#,
        r#"FormatTime(Time("2023-07-01 12 +0200", "%F %H %z") + Duration("1h"), "%H%z") == "13+0200""#,
        r#"FormatTime(TruncateTime(end_time, Duration("1s")), "%T") == "00:00:03""#,
    ]);
    fails(&[
        (r#"Time("2023", "%Y-%m") == 1"#, Failure::Syntax),
        (r#"Time("2023-13", "%Y-%m", "UTC") == 1"#, Failure::Syntax),
        (r#"Time("2023-02-29", "%F", "UTC") == 1"#, Failure::Syntax),
        (r#"Time("2023-02-01x", "%F", "UTC") == 1"#, Failure::Syntax),
        (r#"Time("25", "%H", "UTC") == 1"#, Failure::Syntax),
        (r#"Time("12 PST", "%H %Z", "UTC") == 1"#, Failure::Syntax),
        (r#"Time("9999-01-01", "%F", "UTC") == 1"#, Failure::Math),
        (r#"Time(5, "%F") == 1"#, Failure::Type),
        (r#"FormatTime("a", "%F") == """#, Failure::Type),
    ]);
    for (call, why) in [
        (
            r#"Time(name, "%F", "Nowhere/Town")"#,
            "there is no time zone Nowhere/Town",
        ),
        (
            r#"Time(name, "%F", "", "it-IT")"#,
            "the locale it-IT is not supported",
        ),
        (r#"Time(name, name)"#, "must be a text in quotes"),
        (r#"Time(name, "2006")"#, "may have no digits"),
        (r#"Time(name, "")"#, "there is nothing in it"),
        (r#"FormatTime(start_time, "%E")"#, "%E means nothing"),
        (r#"FormatTime(start_time, "%o")"#, "write %m or %q"),
        (
            r#"FormatTime(start_time, "%S%L")"#,
            "%L must stand behind '.' or ','",
        ),
        (
            r#"FormatTime(start_time, "%H MST")"#,
            "takes MST for a part of a time",
        ),
    ] {
        let error = says(&format!("{call} == 1"), Context::Span).unwrap_err();
        assert!(error.why.contains(why), "{call}: {error}");
    }
}

#[test]
fn times_in_zones() {
    if Zone::named("America/New_York").is_none() {
        // This system has no database of time zones.
        return;
    }
    holds(&[
        r#"Time("2023-05-26 12:34:56", "%Y-%m-%d %H:%M:%S", "America/New_York") == Unix(1685118896)"#,
        r#"Hour(Time("2023-05-26 12:34:56", "%F %T", "America/New_York")) == 12"#,
        r#"FormatTime(Time("2023-05-26 12:34:56", "%F %T", "America/New_York"), "%H %Z %z") == "12 EDT -0400""#,
        r#"Time("2023-05-26 12 EST", "%F %H %Z", "America/New_York") == Time("2023-05-26 17Z", "%F %HZ")"#,
        // Clocks skip this hour, and have that one twice.
        r#"Time("2023-03-12 02:30", "%F %R", "America/New_York") == Time("2023-03-12 07:30Z", "%F %RZ")"#,
        r#"Time("2023-11-05 01:30", "%F %R", "America/New_York") == Time("2023-11-05 05:30Z", "%F %RZ")"#,
    ]);
}

#[test]
fn clocks_and_random_numbers() {
    holds(&[
        "UnixNano(Now()) == 1709251198123456789 and UnixSeconds(Now()) == 1709251198",
        r#"UUID() == "01234567-89ab-4def-8123-456789abcdef""#,
        // The first 48 bits are the milliseconds of the clock.
        r#"UUIDv7() == "018df74f-7cab-7def-8123-456789abcdef""#,
        r#"Now() - start_time > Duration("1h")"#,
    ]);
}

#[test]
fn formats() {
    holds(&[
        r#"Format("%02d", [5]) == "05" and Format("%04d-%02d-%02d", [2024, 2, 29]) == "2024-02-29""#,
        r#"Format("%s|%5s|%-5s|%q|%.2s", ["a", "b", "c", "d\"é", "efg"]) == "a|    b|c    |\"d\\\"é\"|ef""#,
        r#"Format("%x %X %#x %b %o %O %c %U", [255, 255, 255, 5, 8, 8, 65, 65]) == "ff FF 0xff 101 10 0o10 A U+0041""#,
        r#"Format("%6d|%-6d|%06d|%+d|% d|%.3d", [42, 42, -42, 5, 5, 7]) == "    42|42    |-00042|+5| 5|007""#,
        r#"Format("%6.2f|%08.3f|%e|%.1E|%f", [3.14159, -3.14159, 1234.5, 0.00012, 2.5]) == "  3.14|-003.142|1.234500e+03|1.2E-04|2.500000""#,
        r#"Format("%v %v %v %v %v %v", [2.5, 100000.0, 1000000.0, 123456789.0, 0.0001, 0.00001]) == "2.5 100000 1e+06 1.23456789e+08 0.0001 1e-05""#,
        r#"Format("%.3g %.3g %g %v", [100.0, 1234.0, -0.5, 0.0]) == "100 1.23e+03 -0.5 0""#,
        r#"Format("%t %v %5t", [true, false, true]) == "true false  true""#,
        r#"Format("%x % x %s %v %T", ["hi", "hi", 0x6869, 0x01ff, 5]) == "6869 68 69 hi [1 255] int64""#,
        r#"Format("%v %s %v", [nil, [1, "a"], {"k": true}]) == "<nil> [1,\"a\"] {\"k\":true}""#,
        r#"Format("%[2]d %[1]d", [1, 2]) == "2 1" and Format("%*d|%.*f", [5, 42, 1, 2.55]) == "   42|2.5""#,
        r#"Format("%d", ["hi"]) == "%!d(string=hi)" and Format("%s", [5]) == "%!s(int64=5)""#,
        r#"Format("%d", []) == "%!d(MISSING)" and Format("a", [1, "b"]) == "a%!(EXTRA int64=1, string=b)""#,
        r#"Format("100%", []) == "100%!(NOVERB)" and Format("100%%", []) == "100%" and Format("%[3]d %[1]5d", [1]) == "%!d(BADINDEX) %!d(BADINDEX)""#,
        r#"Format("%d", [nil]) == "%!d(<nil>)" and Format("%s/%s", [attributes["tier"], name]) == "gold/GET /cart""#,
    ]);
    fails(&[
        (r#"Format("%s", 5) == """#, Failure::Type),
        (r#"Format("%x", [1.5]) == """#, Failure::Syntax),
    ]);
    let wide = format!(r#"Format("{}", [1]) == """#, "%1000000[1]d".repeat(20));
    assert_eq!(says(&wide, Context::Span), Ok(Err(Failure::Size)));
}

#[test]
fn rows() {
    holds(&[
        r#"ParseCSV("999-999-9999,Joe Smith,joe.smith@example.com", "phone,name,email") == {"phone": "999-999-9999", "name": "Joe Smith", "email": "joe.smith@example.com"}"#,
        r#"ParseCSV("a|\"b|\"\"c\"\"\"", "x|y", delimiter="|") == {"x": "a", "y": "b|\"c\""}"#,
        r#"ParseCSV("a|b", "x,y", delimiter="|", header_delimiter=",") == {"x": "a", "y": "b"}"#,
        r#"ParseCSV("a,b \"c\" d", "x,y", mode="lazyQuotes") == {"x": "a", "y": "b \"c\" d"}"#,
        r#"ParseCSV("\"555,Joe\",joe@example.com", "phone,name,email", mode="ignoreQuotes") == {"phone": "\"555", "name": "Joe\"", "email": "joe@example.com"}"#,
        // Line ends around a row are none, and within it they are part of a field.
        r#"ParseCSV("\naa,b\nb,\"c\nc\"\r\n", "x,y,z") == {"x": "aa", "y": "b\nb", "z": "c\nc"}"#,
        r#"ParseCSV("1,2", "x,x") == {"x": "2"} and ParseCSV(",", "x,y") == {"x": "", "y": ""}"#,
    ]);
    fails(&[
        (r#"ParseCSV("a", "x,y") == {}"#, Failure::Syntax),
        (r#"ParseCSV("a,b\"c", "x,y") == {}"#, Failure::Syntax),
        (r#"ParseCSV("\"a", "x") == {}"#, Failure::Syntax),
        (r#"ParseCSV("", "x") == {}"#, Failure::Syntax),
        (r#"ParseCSV("a", "") == {}"#, Failure::Syntax),
        (r#"ParseCSV(5, "x") == {}"#, Failure::Type),
    ]);
}

#[test]
fn urls() {
    holds(&[
        r#"URL("http://www.example.com") == {"url.original": "http://www.example.com", "url.scheme": "http", "url.domain": "www.example.com", "url.path": ""}"#,
        r#"URL("http://myusername:mypassword@www.example.com:80/foo.gif?key1=val1&key2=val2#fragment") == {
            "url.path": "/foo.gif", "url.fragment": "fragment", "url.extension": "gif", "url.password": "mypassword",
            "url.original": "http://myusername:mypassword@www.example.com:80/foo.gif?key1=val1&key2=val2#fragment",
            "url.scheme": "http", "url.port": 80, "url.user_info": "myusername:mypassword", "url.domain": "www.example.com",
            "url.query": "key1=val1&key2=val2", "url.username": "myusername"}"#,
        r#"URL("/a%20b/c d?x=%20") == {"url.original": "/a%20b/c%20d?x=%20", "url.scheme": "", "url.domain": "", "url.path": "/a b/c d", "url.query": "x=%20"}"#,
        r#"URL("https://[::1]:8443/a")["url.domain"] == "::1" and URL("https://[::1]:8443/a")["url.port"] == 8443"#,
        r#"URL("HTTP://h")["url.original"] == "http://h" and URL("mailto:a@b.c")["url.path"] == """#,
        r#"URL("?a=1&b=2&a=x+y") == {"query": {"a": ["1", "x y"], "b": ["2"]}}"#,
    ]);
    for wrong in [
        ":/x",
        "http://h:port/",
        "http://a b/",
        "http://h/%zz",
        "1a:b",
    ] {
        fails(&[(&format!("URL({wrong:?}) == {{}}"), Failure::Syntax)]);
    }
    fails(&[("URL(5) == {}", Failure::Type)]);
}

#[test]
fn cases_of_names() {
    for (text, snake, camel) in [
        ("myMetric", "my_metric", "MyMetric"),
        ("my_metric_name", "my_metric_name", "MyMetricName"),
        ("MyMetricName", "my_metric_name", "MyMetricName"),
        ("JSONData", "json_data", "Jsondata"),
        (
            "AnyKind of-string.x",
            "any_kind_of_string_x",
            "AnyKindOfStringX",
        ),
        (
            "numbers2and55with",
            "numbers_2_and_55_with",
            "Numbers2And55With",
        ),
        (" ID ", "id", "Id"),
        ("", "", ""),
    ] {
        holds(&[&format!(
            "ToSnakeCase({text:?}) == {snake:?} and ConvertCase({text:?}, \"camel\") == {camel:?} \
             and ToCamelCase({text:?}) == {camel:?} and ConvertCase({text:?}, \"snake\") == {snake:?}"
        )]);
    }
}

#[test]
fn hashes_of_flows_and_texts() {
    holds(&[
        // Published by the Community ID specification.
        r#"CommunityID("128.232.110.120", 34855, "66.35.250.204", 80) == "1:LQU9qZlK+B5F3KDmev6m5PMibrg=""#,
        r#"CommunityID("66.35.250.204", 80, "128.232.110.120", 34855, "TCP", 0) == "1:LQU9qZlK+B5F3KDmev6m5PMibrg=""#,
        r#"CommunityID("192.168.1.52", 54585, "8.8.8.8", 53, "UDP") == "1:d/FP5EW3wiY1vCndhwleRRKHowQ=""#,
        r#"Murmur3Hash("hello") == "47fa8b24" and Murmur3Hash("") == "00000000" and Murmur3Hash("Hello World") == "ce837619""#,
        r#"Murmur3Hash128("hello") == "029bbd41b3a7d8cb191dae486a901e5b" and Murmur3Hash128("Hello World") == "dbc2a0c1ab26631a27b4c09fcf1fe683""#,
        r#"ProfileID(0x00112233445566778899aabbccddeeff) == 0x00112233445566778899aabbccddeeff"#,
    ]);
    fails(&[
        (
            r#"CommunityID("x", 1, "1.2.3.4", 2) == """#,
            Failure::Syntax,
        ),
        (
            r#"CommunityID("1.2.3.4", 0, "1.2.3.4", 2) == """#,
            Failure::Math,
        ),
        (
            r#"CommunityID("1.2.3.4", 1, "1.2.3.4", 2, "IP") == """#,
            Failure::Syntax,
        ),
        (r#"Murmur3Hash(5) == """#, Failure::Type),
    ]);
}

#[test]
fn maps_of_lists() {
    let things = r#"[{"name": "foo", "value": 2}, {"name": "bar", "value": 5}, {"value": 6}, 7]"#;
    for (call, map) in [
        (
            r#"["name"]"#,
            r#"{"foo": {"name": "foo", "value": 2}, "bar": {"name": "bar", "value": 5}}"#,
        ),
        (r#"["name"], ["value"]"#, r#"{"foo": 2, "bar": 5}"#),
        (r#"value_path = ["value"]"#, r#"{"0": 2, "1": 5, "2": 6}"#),
        (r#"["name", "deeper"]"#, "{}"),
    ] {
        holds(&[&format!("SliceToMap({things}, {call}) == {map}")]);
    }
    holds(&[r#"SliceToMap([{"k": "a", "v": 1}, {"k": "a", "v": 2}], ["k"], ["v"]) == {"a": 2}"#]);
    fails(&[(r#"SliceToMap("a", ["k"]) == {}"#, Failure::Type)]);
}

#[test]
fn grok_patterns() {
    holds(&[
        r#"ExtractGrokPatterns("a 17 x", "%{WORD:w} %{NUMBER:n:int} %{DATA}x", true) == {"w": "a", "n": 17}"#,
        // Without `named_captures_only`, each name is a value.
        r#"ExtractGrokPatterns("7", "^%{NUMBER:n:double}$") == {"n": 7.0, "BASE10NUM": "7"}"#,
        r#"ExtractGrokPatterns("smith:pass123:1001:1000", "%{USERNAME:user.name}:%{PASSWORD:user.password}:%{USERINFO}", true,
            ["PASSWORD=%{WORD}", "USERINFO=%{GREEDYDATA}"]) == {"user.name": "smith", "user.password": "pass123"}"#,
        r#"ExtractGrokPatterns("GIT_SHA=ab12", "GIT_SHA=(?P<sha>\\w+)") == {"sha": "ab12"} and ExtractGrokPatterns("x", "(?P<sha>\\d)") == {}"#,
        r#"ExtractGrokPatterns("true 2.5", "%{BOOL:b:boolean} %{NUMBER:f:float}", true) == {"b": true, "f": 2.5}"#,
        // Empty parts are left out, and of several the last one counts.
        r#"ExtractGrokPatterns("a b", "%{WORD:x} %{WORD:x}%{SPACE:s}", true) == {"x": "b"}"#,
        r#"ExtractGrokPatterns("http://user@example.com:80/a/b?q=1", "%{URI:uri}", true) == {"uri": "http://user@example.com:80/a/b?q=1"}"#,
        r#"ExtractGrokPatterns("09-12-2023 10:20:30 EST postgres c1 4711", "%{DATESTAMP:timestamp} %{TZ:event.timezone} %{DATA:user.name} %{WORD:id} %{POSINT:process.pid:int}", true)
            == {"timestamp": "09-12-2023 10:20:30", "event.timezone": "EST", "user.name": "postgres", "id": "c1", "process.pid": 4711}"#,
        r#"ExtractGrokPatterns("Mar  7 10:00:01 web-1 sshd[12]: hello", "%{SYSLOGBASE} %{GREEDYDATA:message}", true)
            == {"timestamp": "Mar  7 10:00:01", "host.hostname": "web-1", "message": "hello"}"#,
    ]);
    for address in [
        "::1",
        "::",
        "fe80::1%eth0",
        "1:2:3:4:5:6:7:8",
        "1::8",
        "1:2:3:4:5:6:7::",
        "::ffff:10.1.2.3",
        "1:2:3:4:5:6:10.1.2.3",
        "10.1.2.255",
    ] {
        holds(&[&format!(
            "ExtractGrokPatterns({address:?}, \"^%{{IP:ip}}$\", true) == {{\"ip\": {address:?}}}"
        )]);
    }
    for wrong in ["1:2", ":::", "1:2:3:4:5:6:7:8:9", "10.1.2.256", "1.2.3"] {
        holds(&[&format!(
            "ExtractGrokPatterns({wrong:?}, \"^%{{IP:ip}}$\", true) == {{}}"
        )]);
    }
    fails(&[
        (
            r#"ExtractGrokPatterns("99999999999999999999", "%{INT:n:int}", true) == {}"#,
            Failure::Syntax,
        ),
        (r#"ExtractGrokPatterns(5, "%{INT:n}") == {}"#, Failure::Type),
    ]);
    for (call, why) in [
        (
            r#"ExtractGrokPatterns(name, name)"#,
            "the argument pattern of ExtractGrokPatterns must be a text in quotes",
        ),
        (
            r#"ExtractGrokPatterns(name, "%{NOPE}")"#,
            "the grok pattern NOPE is not built in",
        ),
        (
            r#"ExtractGrokPatterns(name, "%{INT:n:date}")"#,
            "date is no type",
        ),
        (
            r#"ExtractGrokPatterns(name, "%{INT}", true)"#,
            "has no group with a name",
        ),
        (
            r#"ExtractGrokPatterns(name, "%{A}", false, ["A=%{B}", "B=%{A}"])"#,
            "does one name itself?",
        ),
        (
            r#"ExtractGrokPatterns(name, "%{A}", false, ["A"])"#,
            "is no pattern definition",
        ),
        (r#"ExtractGrokPatterns(name, "(")"#, "regular expression"),
    ] {
        let error = says(&format!("{call} == {{}}"), Context::Span).unwrap_err();
        assert!(error.why.contains(why), "{call}: {error}");
    }
    let wide = "%{X}".repeat(50);
    let bomb = format!(
        r#"ExtractGrokPatterns(name, "{wide}", false, ["X={}", "Y={}", "Z={}"]) == {{}}"#,
        wide.replace('X', "Y"),
        wide.replace('X', "Z"),
        wide.replace('X', "INT")
    );
    let error = says(&bomb, Context::Span).unwrap_err();
    assert!(error.why.contains("names written out"), "{error}");
}

#[test]
fn maps_of_xml() {
    holds(&[
        r#"ParseXML("<Log><User><ID>00001</ID><Name type=\"first\">Joe</Name></User><Text>User did a thing</Text></Log>") == {
            "tag": "Log", "children": [
                {"tag": "User", "children": [
                    {"tag": "ID", "content": "00001"},
                    {"tag": "Name", "content": "Joe", "attributes": {"type": "first"}}]},
                {"tag": "Text", "content": "User did a thing"}]}"#,
        // Parts of a text are trimmed and joined; comments, instructions and directives are nothing.
        r#"ParseXML("<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE a [<!ENTITY b \">\">]> <a> x <!-- y -->\r\nz <![CDATA[ <&> ]]><?p q?></a>") == {"tag": "a", "content": "xz<&>"}"#,
        r#"ParseXML("<n:a xmlns:n='u' b='&lt;&amp;&gt;&apos;&quot;&#65;&#x42;' n:b='2'/>") == {"tag": "a", "attributes": {"n": "u", "b": "2"}}"#,
        r#"ParseXML("<a b='&lt;&amp;&gt;&apos;&quot;&#65;&#x42;'></a >")["attributes"]["b"] == "<&>'\"AB""#,
        r#"ParseSimplifiedXML("<event><id>1</id><user x='y'>jane</user><details><time>12</time><cause> why </cause></details></event>") == {
            "event": {"id": "1", "user": "jane", "details": {"time": "12", "cause": " why "}}}"#,
        // Texts beside elements are left out, and so is what is empty; those of one name are a list.
        r#"ParseSimplifiedXML("<a>x<b>1</b>y<c/><b>2</b><b><d>3</d></b><e><f/></e><g><!-- h --></g></a>") == {"a": {"b": ["1", "2", {"d": "3"}]}}"#,
        r#"ParseSimplifiedXML("<a>1</a><b><![CDATA[<2>]]></b>") == {"a": "1", "b": "<2>"}"#,
        r#"ParseSimplifiedXML("<a><b><c/></b><b/></a>") == {"a": {"b": []}} and ParseSimplifiedXML("text") == {}"#,
    ]);
    for wrong in [
        "",
        "text",
        "<a>",
        "<a></b>",
        "</a>",
        "<a/> ",
        "<a/><b/>",
        "<a b></a>",
        "<a b=c></a>",
        "<a b='<'/>",
        "<a>]]></a>",
        "<a>&b;</a>",
        "<a>&#0;</a>",
        "<a>&#x+1;</a>",
        "<a>& </a>",
        "<a:b:c/>",
        "<1/>",
        "< a/>",
        "<a><!-- -- --></a>",
        "<a><![CDATA[</a>",
        "<!DOCTYPE a",
        "<?xml version='1.1'?><a/>",
        "<?xml version='1.0' encoding='latin1'?><a/>",
    ] {
        let condition = format!("ParseXML({wrong:?}) == {{}}");
        fails(&[(&condition, Failure::Syntax)]);
    }
    let nested = |depth: usize| ["<a>".repeat(depth), "</a>".repeat(depth)].concat();
    let length = |text: &str| format!("Len(ParseXML(\"{text}\")) == 2");
    holds(&[&length(&nested(24))]);
    fails(&[(&length(&nested(25)), Failure::Depth)]);
}
