//! Cookies of responses: removes, rewrites or prefixes the server's own persistence cookie, inserts
//! ours, and implements `capture cookie` and `option checkcache`.

use config::model::{Cookie, CookieMode, Proxy, Server};
use http::{FieldId, Method, Name};

use super::pairs::{Pair, Pairs};
use super::request::{DATE_START, PREFIX_END};
use super::{OF_SERVER, cacheable, dates, next_field};
use crate::evaluation::Eval;
use crate::ids::ServerId;
use crate::runtime_config::RuntimeConfig;
use crate::stream::Stream;

/// Removes the cookie of a client whose server has no cookie value.
const REMOVAL: &[u8] = b"=; Expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/";

/// Whether a proxy of the stream reads the cookies of responses.
#[inline]
pub(crate) fn watches_responses(runtime_config: &RuntimeConfig, stream: &Stream) -> bool {
    let backend = runtime_config.proxy(stream.backend);
    backend.cookie.is_some()
        || backend.options.checkcache
        || runtime_config
            .proxy(stream.frontend)
            .capture_cookie
            .is_some()
}

/// Reads and changes the cookies of a server's response. Returns whether the response may pass.
pub(crate) fn response_cookies(eval: &mut Eval<'_>, stream: &mut Stream) -> bool {
    let frontend = eval.runtime_config.proxy(stream.frontend);
    let backend = eval.runtime_config.proxy(stream.backend);
    let checks = backend.options.checkcache;
    let sets_cookies = stream.response.has(Name::SetCookie);
    let server = stream
        .txn
        .server
        .map(|server| ServerId::at(stream.backend, server as usize))
        .map(|server| &**eval.servers.at(server));
    let mut text = std::mem::take(eval.text);
    if sets_cookies {
        each_cookie(stream, (frontend, backend), server, &mut text);
    }
    let wants_facts = checks || backend.cookie.as_ref().is_some_and(|cookie| cookie.nocache);
    let mut may_be_cached = cacheable::Cacheable::default();
    if wants_facts {
        may_be_cached = cacheable::of(stream.txn.method, &stream.response);
    }
    let now_s = eval.now.wall_ns / 1_000_000_000;
    if let (Some(cookie), Some(server)) = (&backend.cookie, server)
        && insert(stream, cookie, server, now_s, &mut text)
        && cookie.nocache
        && may_be_cached.response
    {
        stream.response.append(b"cache-control", b"private");
        may_be_cached = cacheable::Cacheable::default();
    }
    text.clear();
    *eval.text = text;
    !(checks && sets_cookies && may_be_cached.response && may_be_cached.cookies)
}

/// Handles the server's cookies, one per field.
fn each_cookie(
    stream: &mut Stream,
    (frontend, backend): (&Proxy, &Proxy),
    server: Option<&Server>,
    text: &mut Vec<u8>,
) {
    let mut from = None;
    while let Some(field) = next_field(&stream.response, Name::SetCookie, from) {
        from = Some(field);
        let line = stream
            .response
            .field(field)
            .map_or(&[][..], |(_, line)| line);
        let Some(mut pair) = Pairs::of_response(line).filter(|pair| pair.has_value) else {
            continue;
        };
        if pair.is_loose() {
            text.clear();
            text.extend_from_slice(&line[..pair.name.1]);
            text.push(b'=');
            text.extend_from_slice(&line[pair.value.0..]);
            stream.response.set_value(field, text);
            pair = Pairs::of_response(text).unwrap_or_default();
        }
        let line = stream
            .response
            .field(field)
            .map_or(&[][..], |(_, line)| line);
        if let Some(capture) = &frontend.capture_cookie
            && stream.txn.captured_response_cookie.get().is_none()
            && line[pair.name.0..pair.value.1].starts_with(capture.prefix.as_bytes())
        {
            let kept = &line[pair.name.0..pair.value.1];
            let kept = &kept[..kept.len().min(capture.len)];
            stream.txn.captured_response_cookie.set(kept);
        }
        let ours = backend.cookie.as_ref().filter(|cookie| {
            !stream.route.persist.ignored
                && line[pair.name.0..pair.name.1] == *cookie.name.as_bytes()
        });
        let Some(cookie) = ours else { continue };
        let own = server.and_then(|server| server.cookie.as_ref());
        let state = match (cookie.mode, own) {
            _ if cookie.preserve => b'P',
            (CookieMode::Insert, _) if server.is_some() => remove(stream, field),
            _ if cookie.indirect && stream.route.persist.direct => remove(stream, field),
            (CookieMode::Rewrite, Some(own)) => {
                splice(stream, field, pair, &[own.as_bytes()], pair.value.1, text)
            }
            (CookieMode::Prefix, Some(own)) => {
                let parts = [own.as_bytes(), &[PREFIX_END]];
                splice(stream, field, pair, &parts, pair.value.0, text)
            }
            _ => b'P',
        };
        stream.mark_cookie(OF_SERVER, state);
    }
}

fn remove(stream: &mut Stream, field: FieldId) -> u8 {
    stream.response.remove(field);
    b'D'
}

/// Replaces the start of the cookie's value, up to `rest`, with `parts`.
fn splice(
    stream: &mut Stream,
    field: FieldId,
    pair: Pair,
    parts: &[&[u8]],
    rest: usize,
    text: &mut Vec<u8>,
) -> u8 {
    let Some((_, line)) = stream.response.field(field) else {
        return b'P';
    };
    text.clear();
    text.extend_from_slice(&line[..pair.value.0]);
    for part in parts {
        text.extend_from_slice(part);
    }
    text.extend_from_slice(&line[rest..]);
    stream.response.set_value(field, text);
    b'R'
}

/// Mode `insert`: sets the cookie if the client does not have it or its dates are outdated. Whether
/// it was set.
fn insert(
    stream: &mut Stream,
    cookie: &Cookie,
    server: &Server,
    now_s: u64,
    text: &mut Vec<u8>,
) -> bool {
    let persist = stream.route.persist;
    let (last_s, first_s) = (persist.last_s, persist.first_s);
    let kept = cookie.preserve && stream.txn.termination[OF_SERVER] == b'P';
    let stale = (cookie.maxidle_s > 0 || last_s > 0) && (last_s == 0 || last_s < now_s);
    // The date of the first visit is missing, or no longer configured.
    let dated = (cookie.maxlife_s > 0) != (first_s > 0);
    let due = !persist.direct || stale || dated;
    let is_post = stream.txn.method == Method::Post;
    if cookie.mode != CookieMode::Insert
        || kept
        || !due
        || (cookie.postonly && !is_post)
        || persist.ignored
    {
        return false;
    }
    text.clear();
    text.extend_from_slice(cookie.name.as_bytes());
    match &server.cookie {
        None => text.extend_from_slice(REMOVAL),
        Some(value) => {
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            if cookie.maxidle_s > 0 || cookie.maxlife_s > 0 {
                text.push(DATE_START);
                dates::append(now_s, text);
            }
            if cookie.maxlife_s > 0 {
                text.push(DATE_START);
                dates::append(if first_s > 0 { first_s } else { now_s }, text);
            }
            text.extend_from_slice(b"; path=/");
        }
    }
    text.extend_from_slice(cookie.attributes.as_bytes());
    stream.response.append(b"set-cookie", text);
    let same = server.cookie.is_some() && persist.direct;
    stream.mark_cookie(OF_SERVER, if same { b'U' } else { b'I' });
    true
}
