//! `enable|disable dynamic-cookie backend` and `set dynamic-cookie-key backend`: values of the
//! persistence cookie that are computed from addresses (management guide §9.3).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use config::dynamic;
use config::model::{Mode, Proxy};

use super::servers::find_backend;
use super::{Asked, Command, Level, Reply, Subjects, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("disable dynamic-cookie backend", "<bk>", Level::Admin, "do not derive cookie values from server addresses", |asked| change(asked, |cookie| cookie.is_on = false)),
    command("enable dynamic-cookie backend", "<bk>", Level::Admin, "derive cookie values from addresses for servers without their own", |asked| change(asked, |cookie| cookie.is_on = true)),
    command("set dynamic-cookie-key backend", "<bk> <value>", Level::Admin, "set the key of dynamic cookie values", set_key),
];

/// Whether the cookie values of a backend's servers are computed, and with which key.
#[derive(Clone, Debug)]
struct DynamicCookie {
    is_on: bool,
    key: Option<Vec<u8>>,
}

impl DynamicCookie {
    /// The settings of the configuration.
    fn of(proxy: &Proxy) -> Self {
        DynamicCookie {
            is_on: proxy.cookie.as_ref().is_some_and(|cookie| cookie.dynamic),
            key: proxy.dynamic_cookie_key.as_deref().map(<[u8]>::to_vec),
        }
    }
}

/// The settings that commands changed, by the indexes of the backends.
#[derive(Debug, Default)]
pub(crate) struct DynamicCookies(Mutex<HashMap<usize, DynamicCookie>>);

fn set_key(asked: &Asked<'_>) -> Reply {
    let key = asked.bytes.get(1).map(|key| key.to_vec());
    // A missing backend is reported before a missing key.
    change_or_refuse(asked, |cookie| match key {
        Some(key) => {
            cookie.key = Some(key);
            Ok(())
        }
        None => Err("String value expected.\n"),
    })
}

fn change(asked: &Asked<'_>, change: impl FnOnce(&mut DynamicCookie)) -> Reply {
    change_or_refuse(asked, |cookie| {
        change(cookie);
        Ok(())
    })
}

fn change_or_refuse(
    asked: &Asked<'_>,
    change: impl FnOnce(&mut DynamicCookie) -> Result<(), &'static str>,
) -> Reply {
    let refused = |text: &str| Reply::Refused(text.to_owned());
    let Some(name) = asked.rest.first() else {
        return refused("A backend name is expected.\n");
    };
    let Some((place, proxy)) = find_backend(asked, name) else {
        return refused("No such backend.\n");
    };
    if proxy.mode == Mode::Log {
        return refused("Not available.\n");
    }
    let cookies = &asked.subjects.dynamic_cookies.0;
    let mut cookies = cookies.lock().unwrap_or_else(PoisonError::into_inner);
    let cookie = cookies
        .entry(place)
        .or_insert_with(|| DynamicCookie::of(proxy));
    if let Err(why) = change(cookie) {
        return refused(why);
    }
    give_values(asked.subjects, place, cookie);
    Reply::Done
}

/// Recomputes the cookie values of a backend's servers after its addresses or servers have changed.
pub(super) fn refresh(asked: &Asked<'_>, backend: usize) {
    let subjects = asked.subjects;
    let cookies = &subjects.dynamic_cookies.0;
    let cookies = cookies.lock().unwrap_or_else(PoisonError::into_inner);
    let configured = DynamicCookie::of(&subjects.runtime_config.config.proxies[backend]);
    let cookie = cookies.get(&backend).unwrap_or(&configured);
    if cookie.is_on {
        give_values(subjects, backend, cookie);
    }
}

/// The caller holds the lock on the cookies, so that no other thread sets values.
fn give_values(subjects: &Subjects, backend: usize, cookie: &DynamicCookie) {
    let tables = subjects.shared.server_tables();
    for (place, server) in tables.servers(backend) {
        if server.cookie.is_some() && !server.has_dynamic_cookie {
            continue;
        }
        let value = match (cookie.is_on, &cookie.key) {
            (false, _) => None,
            (true, None) => continue,
            (true, Some(key)) => match dynamic::cookie_value(&server.address, key) {
                None => continue,
                value => value,
            },
        };
        if server.cookie == value {
            continue;
        }
        let workers = subjects.shared.edit_server(backend, place, |options| {
            options.has_dynamic_cookie = value.is_some();
            options.cookie = value;
        });
        subjects.workers.wake(&workers);
    }
}
