//! Load of proxies, servers, the stream and the machine (manual §7.3.2).

use net::CpuOf;

use super::{Fetch, INTERNAL, fetch, stream_of};
use crate::args::ArgKind::{Backend, Frontend, Server};
use crate::args::{Arg, NONE, spec};
use crate::facts::Rate;
use crate::{Kind, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "fe_sess_rate",
        spec(1, &[Frontend]),
        Kind::Int,
        &INTERNAL,
        "a frontend's new connections a second",
        |args, scope, _| proxy_rate(args, scope, Rate::FrontendSessions),
    ),
    fetch(
        "fe_req_rate",
        spec(1, &[Frontend]),
        Kind::Int,
        &INTERNAL,
        "a frontend's HTTP requests a second",
        |args, scope, _| proxy_rate(args, scope, Rate::FrontendRequests),
    ),
    fetch(
        "be_sess_rate",
        spec(1, &[Backend]),
        Kind::Int,
        &INTERNAL,
        "a backend's new streams a second",
        |args, scope, _| proxy_rate(args, scope, Rate::BackendSessions),
    ),
    fetch(
        "srv_sess_rate",
        spec(1, &[Server]),
        Kind::Int,
        &INTERNAL,
        "a server's new streams a second",
        |args, scope, _| match args.first() {
            Some(Arg::Server { backend, server }) => {
                let rate = scope.world.rate(Rate::ServerSessions(*backend, *server));
                Some(Value::Int(rate.into()))
            }
            _ => None,
        },
    ),
    fetch(
        "cpu_calls",
        NONE,
        Kind::Int,
        &INTERNAL,
        "how often this stream was worked on",
        |_, scope, _| Some(Value::Int(stream_of(scope)?.turns.into())),
    ),
    fetch(
        "cpu_ns_avg",
        NONE,
        Kind::Int,
        &INTERNAL,
        "processor time of that, on average: 0, nothing is profiled",
        |_, scope, _| not_profiled(scope),
    ),
    fetch(
        "cpu_ns_tot",
        NONE,
        Kind::Int,
        &INTERNAL,
        "processor time of that: 0, nothing is profiled",
        |_, scope, _| not_profiled(scope),
    ),
    fetch(
        "lat_ns_avg",
        NONE,
        Kind::Int,
        &INTERNAL,
        "delay before that, on average: 0, nothing is profiled",
        |_, scope, _| not_profiled(scope),
    ),
    fetch(
        "lat_ns_tot",
        NONE,
        Kind::Int,
        &INTERNAL,
        "delay before that: 0, nothing is profiled",
        |_, scope, _| not_profiled(scope),
    ),
    fetch(
        "cpu_usage_thr",
        NONE,
        Kind::Int,
        &INTERNAL,
        "processor use of this worker, percent",
        |_, scope, _| Some(Value::Int(scope.world.cpu_usage(CpuOf::Thread).into())),
    ),
    fetch(
        "cpu_usage_grp",
        NONE,
        Kind::Int,
        &INTERNAL,
        "as cpu_usage_proc: there is one group",
        |_, scope, _| Some(Value::Int(scope.world.cpu_usage(CpuOf::Process).into())),
    ),
    fetch(
        "cpu_usage_proc",
        NONE,
        Kind::Int,
        &INTERNAL,
        "processor use of the workers on average, percent",
        |_, scope, _| Some(Value::Int(scope.world.cpu_usage(CpuOf::Process).into())),
    ),
];

fn proxy_rate<'a>(args: &[Arg], scope: &Scope<'_>, of: fn(u32) -> Rate) -> Option<Value<'a>> {
    match args.first() {
        Some(Arg::Proxy(index)) => Some(Value::Int(scope.world.rate(of(*index)).into())),
        _ => None,
    }
}

/// HAProxy's answer with its default `profiling.tasks`, while it is not overloaded.
fn not_profiled<'a>(scope: &Scope<'_>) -> Option<Value<'a>> {
    stream_of(scope).map(|_| Value::Int(0))
}

#[cfg(test)]
mod tests {
    use crate::testing::Facts;

    #[test]
    fn rates_by_name() {
        let mut facts = Facts::new();
        facts.txn.turns = 4;
        for (expr, wanted) in [
            ("fe_sess_rate", "10"),
            ("fe_sess_rate(www)", "10"),
            ("fe_req_rate(www)", "20"),
            ("be_sess_rate(static)", "31"),
            ("srv_sess_rate(static/srv2)", "42"),
            ("cpu_calls", "4"),
            ("cpu_ns_tot", "0"),
            ("cpu_usage_thr", "25"),
            ("cpu_usage_proc", "12"),
        ] {
            assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
        }
    }
}
