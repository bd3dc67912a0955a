//! `share` in a `stick-table` line, beyond HAProxy's: a store through which several proxies share
//! the counters of the table.
//!
//! `share <url> [db <number>] [user <name>] [password <password>] [every <time>] [prefix <name>]`

use tables::{Definition, Password, Share, Store, StoreAddress};

use super::line::{Cursor, Parse};
use super::values::{self, Bad};

/// The port of a store without one in its address.
const PORT: u16 = 6379;
/// The time between two exchanges where no `every` says so, milliseconds.
const EVERY_MS: u32 = 100;
/// The shortest `every`, milliseconds.
const EVERY_MS_MIN: u32 = 10;
/// The longest `every`, milliseconds.
const EVERY_MS_MAX: u32 = 10_000;
/// The prefix of names in the store where no `prefix` says so.
const PREFIX: &str = "spangate";
/// The highest number of a database.
const DATABASE_MAX: u32 = 65_535;

const EXPECTED: &str = "expects redis://<host>[:<port>][/<database>] or redis+unix://<path>";

/// Reads what follows `share`.
pub fn read(cursor: &mut Cursor<'_>) -> Parse<Share> {
    let mut share = Share {
        store: store(cursor)?,
        every_ms: EVERY_MS,
        prefix: PREFIX.to_owned(),
    };
    loop {
        match cursor.peek() {
            "db" => {
                let number = argument(cursor)?.parse().ok();
                let number = number.filter(|number| *number <= DATABASE_MAX);
                share.store.database = number.ok_or_else(|| {
                    cursor.fault(format!(
                        "share: 'db' expects a number from 0 to {DATABASE_MAX}."
                    ))
                })?;
            }
            "user" => share.store.user = Some(argument(cursor)?.to_owned()),
            "password" => {
                let password = argument(cursor)?.to_owned();
                share.store.password = Some(Password(password));
            }
            "every" => share.every_ms = every(cursor)?,
            "prefix" => share.prefix = prefix(cursor)?,
            _ => break,
        }
    }
    if share.store.user.is_some() && share.store.password.is_none() {
        return Err(cursor.fault("share: 'user' needs a 'password'."));
    }
    Ok(share)
}

/// Checks a table that is to be shared, after its whole line, and shares it.
pub fn apply(definition: &mut Definition, share: Share) -> Result<(), &'static str> {
    if definition.peers.is_some() || definition.write_to.is_some() || definition.receives_only {
        return Err(
            "'share' cannot be used with 'peers', 'write-to' and 'recv-only': a table has one way to be shared.",
        );
    }
    if definition.expire_ms.is_none() {
        return Err("'share' needs 'expire': without it, the store would keep every entry.");
    }
    definition.set_share(share);
    if definition.shared_fields().is_empty() {
        return Err(
            "'share' needs a counter, a rate or a tag to share: 'conn_cur' and remembered servers are not shared.",
        );
    }
    Ok(())
}

fn argument<'a>(cursor: &mut Cursor<'a>) -> Parse<&'a str> {
    let name = cursor.take();
    match cursor.take() {
        "" => Err(cursor.fault(format!("share: missing argument after '{name}'."))),
        text => Ok(text),
    }
}

fn store(cursor: &mut Cursor<'_>) -> Parse<Store> {
    let url = cursor.take();
    if let Some(scheme) = ["rediss:", "valkeys:"]
        .iter()
        .find(|scheme| url.starts_with(**scheme))
    {
        return Err(cursor.fault(format!(
            "share: '{scheme}//' is not supported: use a 'listen' section in mode tcp whose server has 'ssl', and share through its address."
        )));
    }
    let (address, database) = if let Some(path) = url.strip_prefix("redis+unix://") {
        let path = path.starts_with('/').then(|| path.to_owned());
        (path.map(StoreAddress::Unix), Some(0))
    } else {
        let schemes = ["redis://", "valkey://"];
        let rest = schemes
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme))
            .unwrap_or("");
        if rest.contains('@') {
            return Err(cursor.fault(
                "share: write a user and a password as 'user <name>' and 'password <password>'.",
            ));
        }
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        (inet(place), number_of(database))
    };
    match (address, database) {
        (Some(address), Some(database)) => Ok(Store {
            address,
            database,
            user: None,
            password: None,
        }),
        _ => Err(cursor.fault(format!("share: '{url}': {EXPECTED}."))),
    }
}

/// The number of a database; 0 without one.
fn number_of(text: &str) -> Option<u32> {
    if text.is_empty() {
        return Some(0);
    }
    text.parse().ok().filter(|number| *number <= DATABASE_MAX)
}

/// `<host>[:<port>]`
fn inet(text: &str) -> Option<StoreAddress> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            let port = match behind {
                "" => None,
                behind => Some(behind.strip_prefix(':')?),
            };
            (host, port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_of_host) {
        return None;
    }
    let port = match port {
        None => PORT,
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
    };
    Some(StoreAddress::Inet {
        host: host.to_owned(),
        port,
    })
}

fn every(cursor: &mut Cursor<'_>) -> Parse<u32> {
    let ms = match values::time(argument(cursor)?) {
        Ok(time) => u32::try_from(time.as_millis()).ok(),
        Err(Bad::Character(_) | Bad::Overflow | Bad::Underflow) => None,
    };
    let ms = ms.filter(|ms| (EVERY_MS_MIN..=EVERY_MS_MAX).contains(ms));
    ms.ok_or_else(|| {
        cursor.fault(format!(
            "share: 'every' expects a time from {EVERY_MS_MIN} ms to {} s.",
            EVERY_MS_MAX / 1000
        ))
    })
}

fn prefix(cursor: &mut Cursor<'_>) -> Parse<String> {
    let text = argument(cursor)?;
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if text.bytes().all(is_of_name) {
        Ok(text.to_owned())
    } else {
        Err(cursor.fault("share: a prefix has letters, digits and the characters '-_.:' only."))
    }
}
