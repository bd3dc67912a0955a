//! TLS in `global` (manual §3.1, §3.2).

use std::time::Duration;

use super::super::address;
use super::super::global::GlobalBuild;
use super::super::line::{Cursor, Line, Parse};
use super::{TlsParser, certificates::Extra, find};
use crate::keywords::Places;
use crate::model::{PassphraseCommand, TlsVerify};

/// `ca-base`, `crt-base`, `key-base`
pub fn base(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    line.need(1, || {
        format!("global statement '{name}' expects a directory path as an argument.")
    })?;
    line.at_most(1)?;
    let tls = &mut build.shared.tls;
    let base = match name {
        "ca-base" => &mut tls.ca_base,
        "crt-base" => &mut tls.crt_base,
        _ => &mut tls.key_base,
    };
    if base.is_some() {
        return Err(line.fault(0, format!("'{name}' already specified.")));
    }
    *base = Some(line.path(1).to_owned());
    Ok(())
}

/// The largest `tune.idletimer`.
const IDLETIMER_MAX: Duration = Duration::from_millis(65_535);
/// The default port of the proxy.
const HTTP_PORT: u16 = 80;
/// The largest file of Diffie-Hellman parameters; one for 8192 bits has less than 3 kB.
const DH_FILE_BYTES_MAX: u64 = 64 << 10;

/// `ssl-dh-param-file <file>`: read and checked as in HAProxy, but not used.
pub fn dh_param_file(cursor: &mut Cursor<'_>) -> Parse {
    let line = cursor.line;
    line.need(cursor.at, || {
        format!("'{}' expects a file path as an argument.", line.keyword())
    })?;
    cursor.take();
    let path = line.path(cursor.at - 1);
    let label = b"-----BEGIN DH PARAMETERS-----";
    let text = files::read(path, DH_FILE_BYTES_MAX);
    if text.is_ok_and(|text| memchr::memmem::find(&text, label).is_some()) {
        Ok(())
    } else {
        Err(cursor.fault(format!(
            "'{}': unable to load DH parameters from file <{}>.",
            line.keyword(),
            path.display()
        )))
    }
}

/// `issuers-chain-path`
pub fn issuers_chain_path(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || {
        "global statement 'issuers-chain-path' expects a directory path as an argument.".into()
    })?;
    line.at_most(1)?;
    build.global.tls.issuers_chain_path = Some(line.path(1).to_owned());
    Ok(())
}

/// `ssl-default-bind-ciphers` and related keywords: an option for the lines, with one value.
pub fn default(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    line.need(1, || {
        format!("global statement '{name}' expects a value as an argument.")
    })?;
    line.at_most(1)?;
    let mut cursor = Cursor { line: *line, at: 1 };
    let of_bind = name.strip_prefix("ssl-default-bind-");
    let word = of_bind.or_else(|| name.strip_prefix("ssl-default-server-"));
    let place = match of_bind {
        Some(_) => Places::BIND,
        None => Places::SERVER,
    };
    let option = word.and_then(|word| find(word, place));
    match option.and_then(|option| option.state.parser()) {
        Some(parser) => apply(build, &mut cursor, parser, place),
        None => Ok(()),
    }
}

/// `ssl-default-bind-options <option> …`
pub fn bind_options(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    options(build, line, Places::BIND_DEFAULTS)
}

/// `ssl-default-server-options <option> …`
pub fn server_options(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    options(build, line, Places::SERVER_DEFAULTS)
}

fn options(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>, place: Places) -> Parse {
    let name = line.keyword();
    line.need(1, || {
        format!("global statement '{name}' expects an option as an argument.")
    })?;
    let mut cursor = Cursor { line: *line, at: 1 };
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let Some(option) = find(word, place) else {
            let message = format!("unknown option '{word}' on global statement '{name}'.");
            return Err(cursor.fault(message));
        };
        match option.state.parser() {
            Some(parser) => apply(build, &mut cursor, parser, place)?,
            None => option.args.check(&mut cursor, word, build.shared)?,
        }
    }
    Ok(())
}

/// Applies the following words to the defaults of a side.
fn apply(
    build: &mut GlobalBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    parser: TlsParser,
    place: Places,
) -> Parse {
    let is_bind = place.intersects(Places::BIND.or(Places::BIND_DEFAULTS));
    let shared = &mut *build.shared;
    let mut of_bind = std::mem::take(&mut shared.tls.bind);
    let mut of_server = std::mem::take(&mut shared.tls.server);
    let result = match parser {
        TlsParser::Shared(parser) if is_bind => parser(&mut of_bind.words, cursor, shared),
        TlsParser::Shared(parser) => parser(&mut of_server.words, cursor, shared),
        TlsParser::Bind(parser) => parser(&mut of_bind, cursor, shared),
        TlsParser::Server(parser) => parser(&mut of_server, cursor, shared),
        TlsParser::Nothing => Ok(()),
    };
    shared.tls.bind = of_bind;
    shared.tls.server = of_server;
    result
}

/// `ssl-server-verify none|required`
pub fn server_verify(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let verify = match line.arg(1) {
        "none" => TlsVerify::None,
        "required" => TlsVerify::Required,
        "" => {
            let message =
                "global statement 'ssl-server-verify' expects 'none' or 'required' as an argument.";
            return Err(line.fault(1, message));
        }
        word => {
            return Err(line.fault(
                1,
                format!("'ssl-server-verify' expects 'none' or 'required' but got '{word}'."),
            ));
        }
    };
    line.at_most(1)?;
    build.shared.tls.server.words.options.verify = Some(verify);
    Ok(())
}

/// `ssl-load-extra-files <kind> …`
pub fn load_extra_files(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let expected = "'none', 'all', 'bundle', 'sctl', 'ocsp', 'issuer' or 'key'";
    line.need(1, || {
        format!("'ssl-load-extra-files' expects {expected} as an argument.")
    })?;
    let takes_off_crt = build.shared.tls.extra.takes_off_crt;
    let mut extra = Extra::all(false);
    for at in 1..line.count() {
        match line.arg(at) {
            "none" => extra = Extra::all(false),
            "all" => extra = Extra::all(true),
            "bundle" => extra.bundle = true,
            "sctl" => extra.sctl = true,
            "ocsp" => extra.ocsp = true,
            "issuer" => extra.issuer = true,
            "key" => extra.key = true,
            word => {
                return Err(line.fault(
                    at,
                    format!("'ssl-load-extra-files' expects {expected} but got '{word}'."),
                ));
            }
        }
    }
    build.shared.tls.extra = Extra {
        takes_off_crt,
        ..extra
    };
    Ok(())
}

/// `ssl-load-extra-del-ext`; HAProxy ignores further words.
pub fn load_extra_del_ext(build: &mut GlobalBuild<'_, '_>, _line: &Line<'_>) -> Parse {
    build.shared.tls.extra.takes_off_crt = true;
    Ok(())
}

/// `ssl-skip-self-issued-ca`; HAProxy ignores further words.
pub fn skip_self_issued_ca(build: &mut GlobalBuild<'_, '_>, _line: &Line<'_>) -> Parse {
    build.global.tls.skips_self_issued_ca = true;
    Ok(())
}

/// `tune.ssl.lifetime`
pub fn lifetime(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    line.need(1, || {
        format!("'{name}' expects ssl sessions <lifetime> in seconds as argument.")
    })?;
    line.at_most(1)?;
    let text = line.arg(1);
    // The default unit is the second.
    let time = super::super::values::time_in(text, "s", 1_000_000);
    build.global.tls.lifetime =
        time.map_err(|bad| line.fault(1, super::super::values::time_message(bad, text, name)))?;
    build.shared.note_time(line, 1);
    Ok(())
}

/// Keywords with a number.
macro_rules! counts {
    ($($name:ident $field:ident;)*) => {$(
        #[doc = concat!("Sets the field `", stringify!($field), "`.")]
        pub fn $name(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
            build.global.tls.$field = count(line)?;
            Ok(())
        }
    )*};
}
counts! {
    cachesize cache_blocks;
    ssl_ctx_cache_size cache_made;
    capture_buffer_size capture_bytes;
}

/// `ocsp-update.mode`, `ocsp-update.disable`
pub fn ocsp_update_switch(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    let name = line.keyword();
    let ocsp = &mut build.global.tls.ocsp;
    let switch = match name {
        "ocsp-update.mode" => &mut ocsp.is_default,
        _ => &mut ocsp.is_off,
    };
    match line.arg(1) {
        "on" => *switch = true,
        "off" => *switch = false,
        // HAProxy gives a warning, too.
        _ => {
            let message = format!("'{name}' : expecting <on|off>.");
            build.shared.diagnostics.warning(&line.span(0), message);
        }
    }
    Ok(())
}

/// `ssl-passphrase-cmd <program> <argument>…`
pub fn passphrase_cmd(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.count() < 2 {
        // HAProxy gives a warning, too.
        let message = "global statement 'ssl-passphrase-cmd' expects a command line to a \
                       passphrase-providing tool (script/binary...) and its arguments.";
        return Err(line.fault(0, message).as_warning());
    }
    let word = |at: usize| line.path(at).as_os_str().to_owned();
    build.global.tls.passphrase_cmd = Some(PassphraseCommand {
        program: word(1),
        arguments: (2..line.count()).map(word).collect(),
    });
    Ok(())
}

/// `tune.ssl.keylog`
pub fn keylog(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    build.global.tls.keylog = match line.arg(1) {
        "on" => true,
        "off" => false,
        _ => {
            let message = format!("'{}' expects either 'on' or 'off'.", line.keyword());
            return Err(line.fault(1, message));
        }
    };
    Ok(())
}

/// `ocsp-update.mindelay`, `tune.ssl.ocsp-update.mindelay`
pub fn ocsp_update_mindelay(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let seconds = count(line)?;
    let ocsp = &mut build.global.tls.ocsp;
    if seconds > ocsp.delay_max_s {
        let name = line.keyword();
        let message = format!("'{name}' can not be higher than ocsp-update.maxdelay.");
        return Err(line.fault(1, message));
    }
    ocsp.delay_min_s = seconds;
    Ok(())
}

/// `ocsp-update.maxdelay`, `tune.ssl.ocsp-update.maxdelay`
pub fn ocsp_update_maxdelay(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let seconds = count(line)?;
    let ocsp = &mut build.global.tls.ocsp;
    if seconds < ocsp.delay_min_s {
        let name = line.keyword();
        let message = format!("'{name}' can not be lower than ocsp-update.mindelay.");
        return Err(line.fault(1, message));
    }
    ocsp.delay_max_s = seconds;
    Ok(())
}

/// `ocsp-update.httpproxy <address>[:port]`; the default port is 80.
pub fn ocsp_update_httpproxy(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let text = line.need(1, || {
        "'ocsp-update.httpproxy' expects <address>[:port].".to_owned()
    })?;
    line.at_most(1)?;
    let title = format!("'ocsp-update.httpproxy {text}'");
    let written = address::resolved(line, 1, build.shared, &title)?;
    let fault = |message: String| line.fault(1, format!("{title} : {message}."));
    let (mut proxy, range) = address::single(&written).map_err(fault)?;
    if range.is_some() {
        return Err(fault("port range not allowed here".to_owned()));
    }
    if let net::Addr::Inet(addr) = &mut proxy
        && addr.port() == 0
    {
        addr.set_port(HTTP_PORT);
    }
    build.global.tls.ocsp.http_proxy = Some(proxy);
    Ok(())
}

/// Keywords with a limit; 0 means none.
macro_rules! bounds {
    ($($name:ident $field:ident;)*) => {$(
        #[doc = concat!("Sets the field `", stringify!($field), "`.")]
        pub fn $name(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
            build.global.tls.$field = Some(count(line)?).filter(|count| *count > 0);
            Ok(())
        }
    )*};
}
bounds! {
    hard_maxrecord hard_maxrecord_bytes;
    maxrecord maxrecord_bytes;
    maxsslconn maxsslconn;
    maxsslrate maxsslrate;
}

/// `tune.idletimer <time>`
pub fn idletimer(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    line.need(1, || {
        format!("'{name}' expects a timer value between 0 and 65535 ms.")
    })?;
    line.at_most(1)?;
    let time = build.shared.time(line, 1, name)?;
    if time > IDLETIMER_MAX {
        let message = format!("'{name}' expects a timer value between 0 and 65535 ms.");
        return Err(line.fault(1, message));
    }
    build.global.tls.idletimer = time;
    Ok(())
}

/// A number, parsed like C's `atoi`.
fn count(line: &Line<'_>) -> Parse<u32> {
    let name = line.keyword();
    let text = line.need(1, || format!("'{name}' expects an integer argument."))?;
    line.at_most(1)?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().map_err(|_| {
        line.fault(
            1,
            format!("'{name}' expects a positive numeric value, got '{text}'."),
        )
    })
}
