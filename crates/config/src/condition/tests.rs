//! The results come from HAProxy 3.5-dev5 with `-cc` (0 true, 1 false, 2 error), those of the first
//! table from its `check_condition` test. One differs: HAProxy reads the patch level of its own
//! OpenSSL 3 from the wrong bits, so 3.0.22 is "before 3.0.1"; not here.
use super::*;

fn build() -> BuildInfo {
    BuildInfo {
        version: "3.5-dev5-50872d-2".into(),
        features: "+ACCEPT4 -51DEGREES +OPENSSL -OPENSSL_AWSLC -LUA +EPOLL +LINUX_SPLICE".into(),
        openssl_version: Some("3.0.22".into()),
        ssllib_name: Some("OpenSSL 3.0.22 25 Aug 2026".into()),
        awslc_api: None,
        enabled: ["EPOLL", "SPLICE"].map(String::from).to_vec(),
        fips_mode: false,
    }
}

fn ask(argument: &str) -> Option<bool> {
    let mut environment = Environment::new();
    environment.set("TESTVAR", "1");
    environment.set("EMPTY", "");
    evaluate_argument(argument.as_bytes(), &build(), &environment).ok()
}

fn check(cases: &[(&str, Option<bool>)]) {
    for (argument, expected) in cases {
        assert_eq!(ask(argument), *expected, "{argument}");
    }
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
const ERROR: Option<bool> = None;

#[test]
fn haproxys_own_test_of_conditions() {
    check(&[
        ("version_atleast(2.4)", YES),
        ("version_atleast(1024)", NO),
        ("streq(foo,'foo')", YES),
        ("streq(\"foo bar\",'foo bar')", YES),
        ("streq(foo,bar)", NO),
        ("version_atleast(2.5-dev2)", YES),
        ("defined(TESTVAR) && streq(\"$TESTVAR\",\"1\")", YES),
        ("feature(OPENSSL) || !feature(OPENSSL)", YES),
        ("1&&!0&&!((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", YES),
        (
            "1   &&!   0&&    !((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))",
            YES,
        ),
        (
            "1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,a))",
            YES,
        ),
        (
            "1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,b))",
            NO,
        ),
        (
            "1 && !0 && !((streq(a,a) || !streq(a,a) && 1) || strneq(a,a))",
            NO,
        ),
        ("", NO),
        ("-1000 && 200", YES),
        ("200rrr", ERROR),
        ("!(0))", ERROR),
        ("streq(a,\"a)", ERROR),
    ]);
}

#[test]
fn numbers_and_operators() {
    check(&[
        ("0", NO),
        ("00", NO),
        ("0x0", NO),
        ("0x1", YES),
        ("+5", YES),
        ("99999999999999999999999", YES),
        ("08", ERROR),
        ("0x", ERROR),
        ("!!1", YES),
        ("! ! ! 1", NO),
        ("!", ERROR),
        ("1 &&", ERROR),
        ("&& 1", ERROR),
        ("1 || ", ERROR),
        ("1 | 1", ERROR),
        ("1 & 1", ERROR),
        ("0 && 1 || 1", YES),
        ("1 || 0 && 0", YES),
        ("1 && (0 || 1)", YES),
        ("()", ERROR),
        ("(1", ERROR),
        ("( 1 )", YES),
        ("1 1", ERROR),
        ("foo", ERROR),
        ("foo(1)", ERROR),
        ("''", NO),
    ]);
}

#[test]
fn predicates() {
    check(&[
        ("defined(TESTVAR)", YES),
        ("defined(EMPTY)", YES),
        ("defined(NONE)", NO),
        ("defined( TESTVAR )", NO),
        ("defined", NO),
        ("defined(TESTVAR", ERROR),
        ("defined(A,B)", ERROR),
        ("feature(OPENSSL)", YES),
        ("feature(LUA)", NO),
        ("feature(OPEN)", NO),
        ("feature(SSL)", NO),
        ("feature(NONSUCH)", NO),
        ("streq", ERROR),
        ("streq(a)", ERROR),
        ("streq(a,a,a)", ERROR),
        ("streq(,)", YES),
        ("streq(a, a)", NO),
        ("streq('a,b',\"a\\\\,b\")", ERROR),
        ("streq(\\\"a,b\\\",\\'a,b\\')", YES),
        ("streq(\\\"a)\\\",a\\\\))", ERROR),
        ("strneq(a,b)", YES),
        ("strstr(abc,b)", YES),
        ("strstr(abc,)", YES),
        ("strstr(abc,d)", NO),
        ("enabled(EPOLL)", YES),
        ("enabled(KQUEUE)", NO),
        ("enabled(nonsuch)", NO),
        ("fips_mode", NO),
        ("fips_mode()", NO),
        ("!fips_mode()", YES),
        ("fips_mode(1)", ERROR),
        ("ssllib_name_startswith(OpenSSL)", YES),
        ("ssllib_name_startswith(AWS-LC)", NO),
        ("ssllib_name_startswith()", YES),
        ("awslc_api_atleast(35)", ERROR),
        ("1 || awslc_api_atleast(35)", YES),
        ("0 && awslc_api_before(35)", NO),
    ]);
    let aws = BuildInfo {
        awslc_api: Some(35),
        ssllib_name: Some("AWS-LC 1.40.0".into()),
        ..build()
    };
    let ask = |text: &str| evaluate(text.as_bytes(), &aws, &Environment::new()).ok();
    assert_eq!(
        ask("ssllib_name_startswith(AWS-LC) && awslc_api_atleast(35) && !awslc_api_atleast(36)"),
        YES
    );
    assert_eq!(ask("awslc_api_before(36) && !awslc_api_before(35)"), YES);
    assert_eq!(ask("awslc_api_before(x)"), ERROR);
}

#[test]
fn versions() {
    check(&[
        ("version_atleast(3.5-dev4)", YES),
        ("version_atleast(3.5-dev5)", YES),
        ("version_atleast(3.5-dev5-50872d-2)", YES),
        ("version_atleast(3.5-dev5-50872d-3)", NO),
        ("version_atleast(3.5-dev6)", NO),
        ("version_atleast(3.5-rc1)", NO),
        ("version_atleast(3.5)", NO),
        ("version_before(3.5)", YES),
        ("version_before(3.5-dev5)", NO),
        ("version_before(3.4.99)", NO),
        ("version_atleast(3)", YES),
        ("version_before(4)", YES),
        ("version_atleast(abc)", YES),
        ("version_before(abc)", NO),
        ("openssl_version_atleast(1.1.1)", YES),
        ("openssl_version_atleast(3.0.22)", YES),
        ("openssl_version_before(3.5.0)", YES),
        ("openssl_version_atleast(3.5.0-beta1)", NO),
        ("openssl_version_before(1.1.1w)", NO),
        ("openssl_version_atleast(abc)", ERROR),
        ("openssl_version_atleast(3)", ERROR),
    ]);
    assert_eq!(version::haproxy("1.3.16-rc1"), Some([1, 3, 16, 0, 2, 1, 0]));
    assert_eq!(version::haproxy("1.2.10.1"), Some([1, 2, 10, 1, 3, 0, 0]));
    assert_eq!(
        version::haproxy("2.4-dev18-f6818d-20"),
        Some([2, 4, 0, 0, 1, 18, 20])
    );
    assert_eq!(version::haproxy("1.5-43"), Some([1, 5, 0, 0, 3, 0, 43]));
    assert_eq!(version::haproxy(""), None);
    assert!(
        version::openssl("1.1.1w") > version::openssl("1.1.1a")
            && version::openssl("1.1.1a") > version::openssl("1.1.1")
    );
    assert!(
        version::openssl("3.0.0") > version::openssl("3.0.0-beta2")
            && version::openssl("3.0.0-beta2") > version::openssl("3.0.0-dev")
    );
}

#[test]
fn errors_tell_the_place() {
    let error = |text: &str| evaluate(text.as_bytes(), &build(), &Environment::new()).unwrap_err();
    assert_eq!(
        error("(1"),
        ConditionError {
            offset: 0,
            message: "expected ')' after conditional expression '(1'".into()
        }
    );
    assert_eq!(error("200rrr").offset, 3);
    assert_eq!(error("1 && foo(2)").offset, 5);
    assert!(
        error("streq(a")
            .message
            .starts_with("missing arguments (got 1/2)"),
        "{}",
        error("streq(a").message
    );
}

#[test]
fn deep_and_long_conditions_are_bounded() {
    let answer = |text: &str| evaluate(text.as_bytes(), &build(), &Environment::new());
    let nested = |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(answer(&nested(MAX_CONDITION_DEPTH)), Ok(true));
    assert!(answer(&nested(MAX_CONDITION_DEPTH + 1)).is_err());
    assert!(answer(&"(".repeat(100_000)).is_err());
    assert_eq!(answer(&format!("{}1", "1 && ".repeat(100_000))), Ok(true));
    assert_eq!(answer(&format!("{}1", "!".repeat(100_000))), Ok(true));
}

#[test]
fn texts_are_compared_byte_by_byte() {
    let mut environment = Environment::new();
    environment.set(b"caf\xe9", "");
    for (text, holds) in [
        (&b"streq(caf\xe9,caf\xe9)"[..], true),
        (b"streq(caf\xe9,caf\xe8)", false),
        (b"strstr(caf\xe9,\xe9)", true),
        (b"strstr(caf\xe9,\xc3\xa9)", false),
        (b"defined(caf\xe9)", true),
        (b"feature(caf\xe9)", false),
    ] {
        let answer = evaluate(text, &build(), &environment);
        assert_eq!(answer, Ok(holds), "{}", text.escape_ascii());
    }
    let error = evaluate(b"1 \xe9", &build(), &environment).unwrap_err();
    assert!(error.message.contains("'\\xe9'"), "{}", error.message);
}
