//! Timeouts and retries: those of the proxies, and those of one stream (manual §7.3.3).
//! Milliseconds; 0 for none.

use super::proxies::backend;
use super::{BACKEND, FRONTEND, Fetch, PROXY, fetch};
use crate::args::NONE;
use crate::{Kind, Scope, Value};

/// A timeout of the proxy to which the expression refers.
macro_rules! of_proxy {
    ($name:literal, $source:ident, $proxy:ident, $field:ident, $doc:literal) => {
        fetch($name, NONE, Kind::Int, &$source, $doc, |_, scope, _| {
            let value = scope.world.timeouts($proxy(scope)?)?.$field;
            Some(Value::Int(value as i64))
        })
    };
}

/// The timeout that applies to the stream.
macro_rules! current {
    ($name:literal, $source:ident, $proxy:ident, $field:ident, $own:ident, $doc:literal) => {
        fetch($name, NONE, Kind::Int, &$source, $doc, |_, scope, _| {
            let own = scope.txn?.timeouts.$own.map(i64::from);
            let of_proxy = scope.world.timeouts($proxy(scope)?)?.$field as i64;
            Some(Value::Int(own.unwrap_or(of_proxy)))
        })
    };
}

pub(crate) const FETCHES: &[Fetch] = &[
    of_proxy!(
        "fe_client_timeout",
        FRONTEND,
        front,
        client_ms,
        "the frontend's timeout client"
    ),
    of_proxy!(
        "fe_tarpit_timeout",
        FRONTEND,
        front,
        tarpit_ms,
        "the frontend's timeout tarpit"
    ),
    of_proxy!(
        "be_connect_timeout",
        BACKEND,
        back,
        connect_ms,
        "the backend's timeout connect"
    ),
    of_proxy!(
        "be_max_retries",
        BACKEND,
        back,
        retries,
        "the backend's retries"
    ),
    of_proxy!(
        "be_queue_timeout",
        BACKEND,
        back,
        queue_ms,
        "the backend's timeout queue"
    ),
    of_proxy!(
        "be_server_timeout",
        BACKEND,
        back,
        server_ms,
        "the backend's timeout server"
    ),
    of_proxy!(
        "be_tarpit_timeout",
        BACKEND,
        back,
        tarpit_ms,
        "the backend's timeout tarpit"
    ),
    of_proxy!(
        "be_tunnel_timeout",
        BACKEND,
        back,
        tunnel_ms,
        "the backend's timeout tunnel"
    ),
    current!(
        "cur_client_timeout",
        FRONTEND,
        front,
        client_ms,
        client,
        "the stream's timeout client"
    ),
    current!(
        "cur_connect_timeout",
        BACKEND,
        back,
        connect_ms,
        connect,
        "the stream's timeout connect"
    ),
    fetch(
        "cur_max_retries",
        NONE,
        Kind::Int,
        &BACKEND,
        "the stream's retries",
        |_, scope, _| {
            let own = scope.txn?.retries_max;
            let of_backend = scope.world.timeouts(back(scope)?)?.retries;
            Some(Value::Int(own.unwrap_or(of_backend).into()))
        },
    ),
    current!(
        "cur_queue_timeout",
        BACKEND,
        back,
        queue_ms,
        queue,
        "the stream's timeout queue"
    ),
    current!(
        "cur_server_timeout",
        BACKEND,
        back,
        server_ms,
        server,
        "the stream's timeout server"
    ),
    current!(
        "cur_tarpit_timeout",
        PROXY,
        back,
        tarpit_ms,
        tarpit,
        "the stream's timeout tarpit"
    ),
    current!(
        "cur_tunnel_timeout",
        BACKEND,
        back,
        tunnel_ms,
        tunnel,
        "the stream's timeout tunnel"
    ),
];

fn front(scope: &Scope<'_>) -> Option<u32> {
    Some(scope.session.frontend)
}

fn back(scope: &Scope<'_>) -> Option<u32> {
    scope.txn.map(|_| backend(scope))
}

#[cfg(test)]
mod tests {
    use crate::testing::Facts;

    #[test]
    fn of_the_proxies_and_of_the_stream() {
        let mut facts = Facts::new();
        facts.txn.backend = Some(1);
        for (expr, wanted) in [
            ("fe_client_timeout", "1000"),
            ("fe_tarpit_timeout", "0"),
            ("be_connect_timeout", "2000"),
            ("be_server_timeout", "3000"),
            ("be_queue_timeout", "4000"),
            ("be_tarpit_timeout", "5000"),
            ("be_tunnel_timeout", "0"),
            ("be_max_retries", "3"),
            ("cur_client_timeout", "1000"),
            ("cur_server_timeout", "3000"),
            ("cur_tarpit_timeout", "5000"),
            ("cur_max_retries", "3"),
        ] {
            assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
        }
        facts.txn.timeouts.server = Some(7);
        facts.txn.retries_max = Some(0);
        assert_eq!(facts.text("cur_server_timeout").as_deref(), Some("7"));
        assert_eq!(facts.text("be_server_timeout").as_deref(), Some("3000"));
        assert_eq!(facts.text("cur_max_retries").as_deref(), Some("0"));
    }
}
