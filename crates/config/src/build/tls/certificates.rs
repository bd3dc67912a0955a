//! Certificate files: the files for a name in a line (manual §3.1 `ssl-load-extra-files`, §5.1
//! `crt`, §12.7.1).

use super::super::Shared;
use super::super::line::{Cursor, Line, Parse};
use crate::keywords::{Places, Why};
use crate::model::CertificateSource;
use crate::tree::{Prefix, Statement};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Most files in a directory of certificates.
const DIRECTORY_FILES_MAX: usize = 200_000;

/// The key types of the files in a bundle. HAProxy also knows `dsa`, which TLS no longer has.
const BUNDLE: [&str; 2] = ["rsa", "ecdsa"];

/// Extensions of files in a directory that are not certificates.
const RESERVED: [&str; 4] = ["issuer", "ocsp", "sctl", "key"];

/// The files that are searched beside a certificate: `ssl-load-extra-files` and
/// `ssl-load-extra-del-ext`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Extra {
    pub bundle: bool,
    pub sctl: bool,
    pub ocsp: bool,
    pub issuer: bool,
    pub key: bool,
    /// The certificate's extension `.crt` is removed before the extension of the extra file is
    /// added.
    pub takes_off_crt: bool,
}

impl Extra {
    /// All kinds, or none.
    pub fn all(is_on: bool) -> Extra {
        Extra {
            bundle: is_on,
            sctl: is_on,
            ocsp: is_on,
            issuer: is_on,
            key: is_on,
            takes_off_crt: false,
        }
    }
}

impl Default for Extra {
    fn default() -> Self {
        Extra::all(true)
    }
}

/// Resolves a relative name from `base`.
pub fn from_base(path: &Path, base: Option<&PathBuf>) -> PathBuf {
    match base {
        Some(base) if path.is_relative() => base.join(path),
        _ => path.to_owned(),
    }
}

/// A name with an extension added.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// The certificates for the name that the cursor took last: one of a store, a file, the files of a
/// directory, or a bundle.
pub fn named(cursor: &Cursor<'_>, shared: &Shared<'_>) -> Parse<Vec<CertificateSource>> {
    let word = cursor.line.path(cursor.at - 1);
    let origin = cursor.line.span(cursor.at - 1).place();
    if let Some(known) = shared.tls.stores.get(cursor.last()) {
        return Ok(vec![known.clone()]);
    }
    let path = if cursor.last().starts_with('@') {
        word.to_owned()
    } else {
        from_base(word, shared.tls.crt_base.as_ref())
    };
    if let Some(known) = path.to_str().and_then(|path| shared.tls.stores.get(path)) {
        return Ok(vec![known.clone()]);
    }
    let extra = shared.tls.extra;
    let found = match files::info(&path) {
        Ok(file) if file.is_dir => directory(&path),
        Ok(_) => Ok(vec![path.clone()]),
        Err(error) => match bundle(&path, extra) {
            files if files.is_empty() => Err(error),
            files => Ok(files),
        },
    };
    let files = found.map_err(|error| cursor.fault(unreadable(&path, &error)))?;
    let source = |path: PathBuf| CertificateSource {
        origin: origin.clone(),
        ..beside(path, extra)
    };
    Ok(files.into_iter().map(source).collect())
}

/// The name that the cursor took last, if it is a directory.
pub fn directory_named(cursor: &Cursor<'_>, shared: &Shared<'_>) -> Option<String> {
    let word = cursor.line.path(cursor.at - 1);
    if shared.tls.stores.contains_key(cursor.last()) || cursor.last().starts_with('@') {
        return None;
    }
    let path = from_base(word, shared.tls.crt_base.as_ref());
    let name = path.to_str().filter(|_| files::is_dir(&path))?;
    Some(without_slashes(name).to_owned())
}

/// A name of a list or directory without the slashes at its end, as in the runtime interface.
pub fn without_slashes(name: &str) -> &str {
    name.trim_end_matches('/')
}

/// The message for a missing file.
pub fn unreadable(path: &Path, error: &io::Error) -> String {
    let error = error.to_string();
    let reason = error.split(" (os error ").next().unwrap_or_default();
    format!(
        "unable to stat SSL certificate from file '{}' : {reason}.",
        path.display()
    )
}

/// The certificates of a directory in the order of their names.
fn directory(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in files::names(path)? {
        let extension = Path::new(&name).extension().and_then(OsStr::to_str);
        let is_reserved = extension.is_some_and(|extension| RESERVED.contains(&extension));
        let file = path.join(&name);
        if is_reserved || name.as_bytes().starts_with(b".") || !files::info(&file)?.is_file {
            continue;
        }
        if found.len() == DIRECTORY_FILES_MAX {
            let message = format!("more than {DIRECTORY_FILES_MAX} files in the directory");
            return Err(io::Error::other(message));
        }
        found.push(file);
    }
    found.sort();
    Ok(found)
}

/// The existing files of a bundle.
fn bundle(path: &Path, extra: Extra) -> Vec<PathBuf> {
    if !extra.bundle {
        return Vec::new();
    }
    let possible = BUNDLE.iter().map(|kind| with_extension(path, kind));
    possible.filter(|file| files::is_file(file)).collect()
}

/// A certificate with the existing files beside it.
fn beside(path: PathBuf, extra: Extra) -> CertificateSource {
    let stem = match path.extension() {
        Some(extension) if extra.takes_off_crt && extension == "crt" => path.with_extension(""),
        _ => path.clone(),
    };
    let look = |is_on: bool, extension: &str| {
        let file = with_extension(&stem, extension);
        (is_on && files::is_file(&file)).then_some(file)
    };
    CertificateSource {
        name: path.to_string_lossy().into_owned(),
        key_beside: look(extra.key, "key"),
        ocsp: look(extra.ocsp, "ocsp"),
        issuer: look(extra.issuer, "issuer"),
        sctl: look(extra.sctl, "sctl"),
        path,
        ..CertificateSource::default()
    }
}

/// The words of `load` lines of a store, of `ssl-f-use`, and in the brackets of a `crt-list`.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    /// The place of the value of `crt`.
    pub crt: Option<usize>,
    /// The files.
    pub source: CertificateSource,
    /// `alias`
    pub alias: Option<String>,
    /// Files are named beside the certificate: no others are searched.
    pub is_explicit: bool,
    /// The words apply to one certificate, and not to a bundle.
    pub is_single: bool,
    /// TLS options.
    pub own: Option<Statement>,
    /// The places of words without an effect.
    pub no_effect: Vec<usize>,
}

impl Loads {
    /// Reports the words without an effect.
    pub fn tell(&self, line: &Line<'_>, shared: &mut Shared<'_>) {
        for at in &self.no_effect {
            let why = "timestamps of certificates are not sent";
            let name = format!("certificate … {}", line.arg(*at));
            shared.has_no_effect(&name, &line.span(*at), Why::Foreign(why));
        }
    }
}

/// The words that a line may have, and the base directories of relative names.
pub struct Place<'a> {
    /// The message for an unknown word.
    pub unknown: fn(&str) -> String,
    /// Whether the line has TLS options instead of the words of a store.
    pub has_options: bool,
    /// The base directory of certificates.
    pub crt_base: Option<&'a PathBuf>,
    /// The base directory of keys.
    pub key_base: Option<&'a PathBuf>,
}

/// Parses the words from `at` on.
pub fn loads(line: &Line<'_>, at: usize, place: &Place<'_>) -> Parse<Loads> {
    let mut loads = Loads::default();
    let mut own = Vec::new();
    let mut cursor = Cursor { line: *line, at };
    while !cursor.peek().is_empty() {
        let first = cursor.at;
        let word = cursor.take();
        let path = |cursor: &mut Cursor<'_>, base: Option<&PathBuf>| {
            cursor.value("a file name")?;
            let path = from_base(cursor.line.path(cursor.at - 1), base);
            Parse::Ok(Some(path))
        };
        let option = super::find(word, Places::CRT_LIST).filter(|_| place.has_options);
        let source = &mut loads.source;
        loads.is_explicit |= matches!(word, "key" | "ocsp" | "issuer" | "sctl");
        loads.is_single |= loads.is_explicit || word == "ocsp-update";
        match word {
            "crt" => {
                source.path = path(&mut cursor, place.crt_base)?.unwrap_or_default();
                loads.crt = Some(cursor.at - 1);
            }
            "key" => source.key = path(&mut cursor, place.key_base)?,
            "ocsp" => source.ocsp = path(&mut cursor, place.crt_base)?,
            "issuer" => source.issuer = path(&mut cursor, place.crt_base)?,
            "sctl" => {
                source.sctl = path(&mut cursor, place.crt_base)?;
                loads.no_effect.push(first);
            }
            "ocsp-update" => match cursor.value("'on' or 'off'")? {
                "on" => source.ocsp_update = Some(true),
                "off" => source.ocsp_update = Some(false),
                value => {
                    return Err(cursor.fault(format!(
                        "cannot parse 'ocsp-update' value '{value}', 'on' or 'off' is expected."
                    )));
                }
            },
            "jwt" if !place.has_options => match cursor.value("'on' or 'off'")? {
                "on" => source.is_for_jwt = true,
                "off" => source.is_for_jwt = false,
                value => {
                    return Err(cursor.fault(format!(
                        "cannot parse 'jwt' value '{value}', 'on' or 'off' is expected."
                    )));
                }
            },
            "alias" if !place.has_options => {
                loads.alias = Some(cursor.value("a name")?.to_owned());
            }
            "acme" if !place.has_options => {
                cursor.value("a name")?;
                return Err(cursor
                    .line
                    .fault(first, super::super::not_yet("load … acme")));
            }
            // These have a meaning only for ACME.
            "domains" | "ips" if !place.has_options => {
                cursor.value("a list")?;
            }
            _ => match option {
                Some(option) => {
                    for _ in 0..option.args.words() {
                        cursor.value("an argument")?;
                    }
                    own.extend_from_slice(&line.words()[first..cursor.at]);
                }
                None => return Err(cursor.fault((place.unknown)(word))),
            },
        }
    }
    loads.own = (!own.is_empty()).then_some(Statement {
        words: own,
        prefix: Prefix::None,
    });
    Ok(loads)
}
