//! The predicates of conditions: one table entry each.

use super::BuildInfo;
use super::version;
use crate::environment::Environment;
use std::cmp::Ordering;
use syntax::octets::Octets;

/// A question with a fixed number of arguments.
pub(super) struct Predicate {
    pub name: &'static str,
    pub arity: usize,
    answer: fn(&[Octets], &BuildInfo, &Environment) -> Option<bool>,
}

impl Predicate {
    /// Evaluates the predicate; an error if an argument is not valid.
    pub fn holds(
        &self,
        args: &[Octets],
        build: &BuildInfo,
        environment: &Environment,
    ) -> Result<bool, String> {
        (self.answer)(args, build, environment).ok_or_else(|| {
            let arg = args.first().cloned().unwrap_or_default();
            format!(
                "invalid argument to conditional expression predicate '{}': '{arg}'",
                self.name
            )
        })
    }
}

/// `args` has as many elements as the entry says. An error: the argument cannot be parsed, or the
/// fact does not exist.
static PREDICATES: &[Predicate] = &[
    Predicate {
        name: "defined",
        arity: 1,
        answer: |args, _, env| Some(env.get(&args[0]).is_some()),
    },
    Predicate {
        name: "feature",
        arity: 1,
        answer: |args, build, _| Some(feature(&build.features, text(&args[0]))),
    },
    Predicate {
        name: "streq",
        arity: 2,
        answer: |args, _, _| Some(args[0] == args[1]),
    },
    Predicate {
        name: "strneq",
        arity: 2,
        answer: |args, _, _| Some(args[0] != args[1]),
    },
    Predicate {
        name: "strstr",
        arity: 2,
        answer: |args, _, _| Some(memchr::memmem::find(&args[0], &args[1]).is_some()),
    },
    Predicate {
        name: "version_atleast",
        arity: 1,
        answer: |args, build, _| Some(version_cmp(build, text(&args[0])).is_ge()),
    },
    Predicate {
        name: "version_before",
        arity: 1,
        answer: |args, build, _| Some(version_cmp(build, text(&args[0])).is_lt()),
    },
    Predicate {
        name: "openssl_version_atleast",
        arity: 1,
        answer: |args, build, _| openssl_cmp(build, text(&args[0])).map(Ordering::is_ge),
    },
    Predicate {
        name: "openssl_version_before",
        arity: 1,
        answer: |args, build, _| openssl_cmp(build, text(&args[0])).map(Ordering::is_lt),
    },
    Predicate {
        name: "ssllib_name_startswith",
        arity: 1,
        answer: |args, build, _| {
            Some(
                build
                    .ssllib_name
                    .as_ref()
                    .is_some_and(|name| name.as_bytes().starts_with(&args[0])),
            )
        },
    },
    Predicate {
        name: "awslc_api_atleast",
        arity: 1,
        answer: |args, build, _| awslc_cmp(build, text(&args[0])).map(Ordering::is_ge),
    },
    Predicate {
        name: "awslc_api_before",
        arity: 1,
        answer: |args, build, _| awslc_cmp(build, text(&args[0])).map(Ordering::is_lt),
    },
    Predicate {
        name: "enabled",
        arity: 1,
        answer: |args, build, _| Some(build.enabled.iter().any(|name| args[0] == **name)),
    },
    Predicate {
        name: "fips_mode",
        arity: 0,
        answer: |_, build, _| Some(build.fips_mode),
    },
];

/// An argument that is a name or a version; an argument that is not text equals none of them.
fn text(arg: &Octets) -> &str {
    std::str::from_utf8(arg).unwrap_or_default()
}

/// The predicate of that name.
pub(super) fn find(name: &[u8]) -> Option<&'static Predicate> {
    PREDICATES
        .iter()
        .find(|predicate| predicate.name.as_bytes() == name)
}

/// Whether the list has `name` with a `+`.
fn feature(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace()
        .any(|entry| entry.strip_prefix('+') == Some(name))
}

/// Compares our version with `asked`. As in HAProxy, an invalid one counts as older.
fn version_cmp(build: &BuildInfo, asked: &str) -> Ordering {
    match (version::haproxy(&build.version), version::haproxy(asked)) {
        (Some(ours), Some(asked)) => ours.cmp(&asked),
        _ => Ordering::Greater,
    }
}

fn openssl_cmp(build: &BuildInfo, asked: &str) -> Option<Ordering> {
    let ours = version::openssl(build.openssl_version.as_ref()?)?;
    Some(ours.cmp(&version::openssl(asked)?))
}

fn awslc_cmp(build: &BuildInfo, asked: &str) -> Option<Ordering> {
    Some(build.awslc_api?.cmp(&asked.parse().ok()?))
}
