//! The predicates of conditions: one table entry each.

use super::BuildInfo;
use super::version;
use crate::environment::Environment;
use crate::tree::bytes_of;
use std::cmp::Ordering;

/// A question with a fixed number of arguments.
pub(super) struct Predicate {
    pub name: &'static str,
    pub arity: usize,
    answer: fn(&[String], &BuildInfo, &Environment) -> Option<bool>,
}

impl Predicate {
    /// The answer, or that an argument makes no sense here.
    pub fn holds(
        &self,
        args: &[String],
        build: &BuildInfo,
        environment: &Environment,
    ) -> Result<bool, String> {
        (self.answer)(args, build, environment).ok_or_else(|| {
            let arg = args.first().map_or("", String::as_str);
            format!(
                "invalid argument to conditional expression predicate '{}': '{arg}'",
                self.name
            )
        })
    }
}

/// `args` always has as many elements as the entry says. No answer: the argument cannot be read, or there is nothing to ask.
static PREDICATES: &[Predicate] = &[
    Predicate {
        name: "defined",
        arity: 1,
        answer: |args, _, env| Some(env.get(bytes_of(&args[0])).is_some()),
    },
    Predicate {
        name: "feature",
        arity: 1,
        answer: |args, build, _| Some(feature(&build.features, &args[0])),
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
        answer: |args, _, _| Some(args[0].contains(&args[1])),
    },
    Predicate {
        name: "version_atleast",
        arity: 1,
        answer: |args, build, _| Some(version_cmp(build, &args[0]).is_ge()),
    },
    Predicate {
        name: "version_before",
        arity: 1,
        answer: |args, build, _| Some(version_cmp(build, &args[0]).is_lt()),
    },
    Predicate {
        name: "openssl_version_atleast",
        arity: 1,
        answer: |args, build, _| openssl_cmp(build, &args[0]).map(Ordering::is_ge),
    },
    Predicate {
        name: "openssl_version_before",
        arity: 1,
        answer: |args, build, _| openssl_cmp(build, &args[0]).map(Ordering::is_lt),
    },
    Predicate {
        name: "ssllib_name_startswith",
        arity: 1,
        answer: |args, build, _| {
            Some(
                build
                    .ssllib_name
                    .as_ref()
                    .is_some_and(|name| name.starts_with(&args[0])),
            )
        },
    },
    Predicate {
        name: "awslc_api_atleast",
        arity: 1,
        answer: |args, build, _| awslc_cmp(build, &args[0]).map(Ordering::is_ge),
    },
    Predicate {
        name: "awslc_api_before",
        arity: 1,
        answer: |args, build, _| awslc_cmp(build, &args[0]).map(Ordering::is_lt),
    },
    Predicate {
        name: "enabled",
        arity: 1,
        answer: |args, build, _| Some(build.enabled.contains(&args[0])),
    },
    Predicate {
        name: "fips_mode",
        arity: 0,
        answer: |_, build, _| Some(build.fips_mode),
    },
];

/// The predicate of that name.
pub(super) fn find(name: &str) -> Option<&'static Predicate> {
    PREDICATES.iter().find(|predicate| predicate.name == name)
}

/// Whether `name` stands in the list with a `+`.
fn feature(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace()
        .any(|entry| entry.strip_prefix('+') == Some(name))
}

/// How our version stands to `asked`. One that cannot be read counts as older, as in HAProxy.
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
