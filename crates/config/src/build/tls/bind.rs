//! TLS of `bind` lines (manual §5.1).

use super::super::Shared;
use super::super::line::{Cursor, Fault, Line, Parse};
use super::certificates::{self, Loads, Place};
use super::options::{file, value};
use super::{Words, crt_list};
use crate::diagnostic::Severity;
use crate::model::TlsVerify::{Optional, Required};
use crate::model::{
    Bind, BindTls, CertificateSource, CrtList, CrtListEntry, IgnoredErrors, ListLine, Passphrase,
    TlsOptions,
};
use crate::tree::{Span, Statement};
use std::sync::Arc;

/// The options of a bind line during parsing.
#[derive(Clone, Debug, Default)]
pub struct BindWords {
    /// The options that servers and certificate lists have too.
    pub words: Words,
    tls: BindTls,
    /// The place of `ssl`.
    ssl: Option<Span>,
    certificates: Vec<Pending>,
}

/// A certificate, and the words of its own options.
#[derive(Clone, Debug)]
pub struct Pending {
    source: CertificateSource,
    own: Option<Statement>,
    /// The place of its name.
    span: Span,
}

impl BindWords {
    /// Enables TLS, as if `ssl` were written. Whether it was not.
    pub fn enable(&mut self, line: &Line<'_>, at: usize) -> bool {
        let was_off = self.ssl.is_none();
        self.ssl.get_or_insert_with(|| line.span(at));
        was_off
    }

    /// The result of the options; None if the line does not use TLS. `written` is the line's
    /// addresses.
    pub fn finish(
        self,
        line: &Line<'_>,
        written: &str,
        shared: &mut Shared<'_>,
    ) -> Option<Box<BindTls>> {
        let span = self.ssl.as_ref()?;
        let title = format!("bind '{written}' at [{}]", line.span(0).place());
        let mut tls = self.tls;
        for pending in self.certificates {
            let source = with_options(pending, &self.words, &title, shared);
            tls.certificates.push(Arc::new(source));
        }
        tls.options = self.words.finish(&title, span, shared);
        tls.title = title;
        Some(Box::new(tls))
    }
}

/// A certificate with its own options applied to those of its line.
fn with_options(
    pending: Pending,
    line: &Words,
    title: &str,
    shared: &mut Shared<'_>,
) -> CertificateSource {
    let Pending {
        mut source,
        own,
        span,
    } = pending;
    let words = own.map(|own| line.with_own(&own, shared));
    match words {
        None => {}
        Some(Err(fault)) => shared.settle(Err(fault)),
        Some(Ok(words)) => {
            let options = words.finish(title, &span, shared);
            if lacks_authorities(&options) {
                let message = format!("verify is enabled but no CA file specified for {title}.");
                shared.settle(Err(Fault::new(span, message)));
            }
            source.options = Some(Box::new(options));
        }
    }
    source
}

/// Whether certificates are verified but no authority is configured.
pub(super) fn lacks_authorities(options: &TlsOptions) -> bool {
    matches!(options.verify, Some(Optional | Required))
        && options.ca_file.is_none()
        && options.ca_verify_file.is_none()
}

/// Adds the certificates of the `ssl-f-use` lines to the binds of a proxy, and reports missing
/// ones.
pub fn finish_proxy(proxy: &str, binds: &mut [Bind], uses: &[Pending], shared: &mut Shared<'_>) {
    let mut last = String::new();
    for bind in binds {
        let Some(tls) = bind.tls.as_deref_mut() else {
            continue;
        };
        // The addresses of one line are reported once.
        let is_first = last != tls.title;
        last.clone_from(&tls.title);
        for pending in uses {
            let words = Words {
                options: tls.options.clone(),
                ..Words::default()
            };
            let source = with_options(pending.clone(), &words, &tls.title, shared);
            tls.certificates.push(Arc::new(source));
        }
        if let Some(first) = tls.certificates.first_mut() {
            Arc::make_mut(first).is_default = true;
        }
        if !is_first {
            continue;
        }
        let of = match proxy {
            "" => String::new(),
            name => format!("Proxy '{name}': "),
        };
        let tls = &*tls;
        if tls.certificates.is_empty() {
            let (severity, then) = if tls.strict_sni {
                (Severity::Warning, ", ssl connections will fail")
            } else {
                (Severity::Alert, "")
            };
            let message = format!(
                "{of}no SSL certificate specified for {}{then} (use 'crt').",
                tls.title
            );
            shared.diagnostics.add(severity, None, message);
        }
        if tls.generates && tls.ca_sign_file.is_none() {
            let message = format!(
                "{of}cannot enable certificate generation, no CA certificate file configured for {} (use 'ca-sign-file').",
                tls.title
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
        if lacks_authorities(&tls.options) {
            let message = format!(
                "{of}verify is enabled but no CA file specified for {}.",
                tls.title
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
}

/// `ssl`
pub fn ssl(words: &mut BindWords, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    words.ssl = Some(cursor.line.span(cursor.at - 1));
    Ok(())
}

/// `crt`
pub fn crt(words: &mut BindWords, cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse {
    value(cursor, "missing certificate location")?;
    let mut all = pending(cursor, Loads::default(), shared)?;
    if let Some(directory) = certificates::directory_named(cursor, shared) {
        let name: Arc<str> = directory.into();
        let entries = all.iter_mut().map(|pending| {
            pending.source.list = Some(ListLine {
                list: name.clone(),
                line: 0,
            });
            CrtListEntry {
                certificate: pending.source.name.clone(),
                ..CrtListEntry::default()
            }
        });
        words.tls.crt_lists.push(Arc::new(CrtList {
            entries: entries.collect(),
            name: name.to_string(),
            is_directory: true,
        }));
    }
    words.certificates.extend(all);
    Ok(())
}

/// `default-crt`
pub fn default_crt(
    words: &mut BindWords,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    let first = words.certificates.len();
    crt(words, cursor, shared)?;
    for pending in &mut words.certificates[first..] {
        pending.source.is_default = true;
    }
    Ok(())
}

/// `crt-list`
pub fn crt_list(words: &mut BindWords, cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse {
    value(cursor, "missing certificate location")?;
    let path = cursor.line.path(cursor.at - 1).to_owned();
    let text = match crt_list::read(&path) {
        Ok(text) => text,
        Err(error) => {
            let error = error.to_string();
            let reason = error.split(" (os error ").next().unwrap_or_default();
            let name = cursor.last();
            return Err(cursor.fault(format!(
                "'crt-list' : cannot open file '{name}' : {reason}."
            )));
        }
    };
    let (entries, faults) = crt_list::parse(cursor.last(), text);
    for fault in faults {
        match fault.severity {
            Severity::Notice => shared.tls.notices.push(fault),
            _ => shared.settle(Err(fault.into())),
        }
    }
    let name: Arc<str> = certificates::without_slashes(&path.to_string_lossy()).into();
    let mut list = CrtList {
        name: name.to_string(),
        ..CrtList::default()
    };
    for entry in entries {
        let mut all = match listed(&entry, shared) {
            Ok(all) => all,
            Err(fault) => {
                shared.settle(Err(fault));
                continue;
            }
        };
        let line = entry.certificate.span().line;
        for pending in &mut all {
            pending.source.list = Some(ListLine {
                list: name.clone(),
                line,
            });
            list.entries.push(CrtListEntry {
                certificate: pending.source.name.clone(),
                line,
                options: entry.option_words(),
                filters: entry.names.clone(),
            });
        }
        words.certificates.extend(all);
    }
    words.tls.crt_lists.push(Arc::new(list));
    Ok(())
}

/// The certificates in a line of a list.
fn listed(entry: &crt_list::Entry, shared: &mut Shared<'_>) -> Parse<Vec<Pending>> {
    let loads = match &entry.options {
        Some(options) => {
            let line = Line::new(options);
            let place = Place {
                unknown: |word| format!("unknown ssl keyword {word}."),
                has_options: true,
                crt_base: shared.tls.crt_base.as_ref(),
                key_base: shared.tls.key_base.as_ref(),
            };
            let loads = certificates::loads(&line, 0, &place)?;
            loads.tell(&line, shared);
            loads
        }
        None => Loads::default(),
    };
    let cursor = Cursor {
        line: Line::new(&entry.certificate),
        at: 1,
    };
    let mut all = pending(&cursor, loads, shared)?;
    for pending in &mut all {
        pending.source.filters.clone_from(&entry.filters);
        pending.source.is_default = entry.is_default;
    }
    Ok(all)
}

/// The certificates of the name that the cursor took last, with the files that are named beside
/// them.
fn pending(cursor: &Cursor<'_>, loads: Loads, shared: &Shared<'_>) -> Parse<Vec<Pending>> {
    let mut sources = certificates::named(cursor, shared)?;
    if loads.is_single {
        let [source] = &mut sources[..] else {
            return Err(cursor.fault(format!(
                "Can't load '{}'. Using crt-store keyword is not compatible with multi certificates bundle.",
                cursor.last()
            )));
        };
        let path = std::mem::take(&mut source.path);
        let name = std::mem::take(&mut source.name);
        let origin = std::mem::take(&mut source.origin);
        let found = std::mem::take(source);
        let rest = if loads.is_explicit {
            loads.source
        } else {
            CertificateSource {
                ocsp_update: loads.source.ocsp_update,
                ..found
            }
        };
        *source = CertificateSource {
            path,
            name,
            origin,
            ..rest
        };
    }
    Ok(sources
        .into_iter()
        .map(|source| Pending {
            source,
            own: loads.own.clone(),
            span: cursor.line.span(cursor.at - 1),
        })
        .collect())
}

/// Parses an `ssl-f-use` line.
pub fn ssl_f_use(line: &Line<'_>, shared: &mut Shared<'_>) -> Parse<Vec<Pending>> {
    let place = Place {
        unknown: |word| format!("unknown crt keyword '{word}'."),
        has_options: true,
        crt_base: shared.tls.crt_base.as_ref(),
        key_base: shared.tls.key_base.as_ref(),
    };
    let loads = certificates::loads(line, 1, &place)?;
    loads.tell(line, shared);
    let Some(crt) = loads.crt else {
        let message = "Trying to load a certificate but no 'crt' keyword specified.";
        return Err(line.fault(line.count(), message));
    };
    let cursor = Cursor {
        line: *line,
        at: crt + 1,
    };
    pending(&cursor, loads, shared)
}

/// Options without arguments.
macro_rules! switches {
    ($($name:ident $field:ident = $value:literal;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(words: &mut BindWords, _cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            words.tls.$field = $value;
            Ok(())
        }
    )*};
}
switches! {
    strict_sni strict_sni = true;
    no_strict_sni strict_sni = false;
    prefer_client_ciphers prefer_client_ciphers = true;
    generate_certificates generates = true;
}

/// `tls-ticket-keys`
pub fn tls_ticket_keys(
    words: &mut BindWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.tls.tls_ticket_keys = Some(file(cursor, "missing TLS ticket keys file path", None)?);
    Ok(())
}

/// `ca-sign-file`
pub fn ca_sign_file(
    words: &mut BindWords,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    let base = shared.tls.ca_base.as_ref();
    words.tls.ca_sign_file = Some(file(cursor, "missing CAfile path", base)?);
    Ok(())
}

/// `ca-sign-pass`
pub fn ca_sign_pass(
    words: &mut BindWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    value(cursor, "missing CAkey password")?;
    let bytes = cursor.line.bytes(cursor.at - 1).to_vec();
    words.tls.ca_sign_pass = Some(Passphrase(bytes));
    Ok(())
}

/// `ca-ignore-err`
pub fn ca_ignore_err(
    words: &mut BindWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.tls.ca_ignore_err = ignored(cursor)?;
    Ok(())
}

/// `crt-ignore-err`
pub fn crt_ignore_err(
    words: &mut BindWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.tls.crt_ignore_err = ignored(cursor)?;
    Ok(())
}

/// `all`, or numbers and names of errors, separated by commas.
fn ignored(cursor: &mut Cursor<'_>) -> Parse<IgnoredErrors> {
    let name = cursor.last();
    let list = value(cursor, "missing error IDs list")?;
    let mut ignored = IgnoredErrors::default();
    if list == "all" {
        ignored.all = true;
        return Ok(ignored);
    }
    for word in list.split(',') {
        let number = match word.parse::<u64>() {
            Ok(number) => u8::try_from(number).ok().filter(|number| *number > 0),
            Err(_) => sample::verification_code(word),
        };
        match number {
            Some(number) => ignored.numbers.push(number),
            None if word.parse::<u64>().is_ok() => {
                return Err(cursor.fault(format!(
                    "'{name}' : error ID '{word}' out of range in error IDs list '{list}'."
                )));
            }
            None => {
                return Err(cursor.fault(format!(
                    "'{name}' : error constant '{word}' unknown in error IDs list '{list}'."
                )));
            }
        }
    }
    Ok(ignored)
}
