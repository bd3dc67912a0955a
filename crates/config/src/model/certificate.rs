//! The certificates that a line names, and the server names for each (manual §5.1 `crt`,
//! `crt-list`; §12.7).

use super::TlsOptions;
use std::path::PathBuf;
use std::sync::Arc;

/// The files of a certificate. Files with a path here existed when they were searched; none was
/// opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSource {
    /// Its name in the runtime interface: the name in a `crt-store`, otherwise the path.
    pub name: String,
    /// The certificate, its chain and usually its key (PEM).
    pub path: PathBuf,
    /// The key. It replaces one in `path`.
    pub key: Option<PathBuf>,
    /// A file named like `path` with `.key`: the key if `path` has none.
    pub key_beside: Option<PathBuf>,
    /// An OCSP response (DER). The file may be empty.
    pub ocsp: Option<PathBuf>,
    /// The issuer's certificate, if `path` does not contain it.
    pub issuer: Option<PathBuf>,
    /// A list of signed certificate timestamps (RFC 6962).
    pub sctl: Option<PathBuf>,
    /// `ocsp-update`
    pub ocsp_update: Option<bool>,
    /// `jwt`: it verifies tokens.
    pub is_for_jwt: bool,
    /// The line's options with those of the certificate applied; None if it has no own options.
    pub options: Option<Box<TlsOptions>>,
    /// Its server names; if empty, the names in the certificate.
    pub filters: Vec<SniFilter>,
    /// It is one of the default certificates, for names without a match.
    pub is_default: bool,
    /// `file:line` of the place that names it.
    pub origin: String,
    /// The list or the directory that contains it.
    pub list: Option<ListLine>,
}

/// A line of a certificate list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListLine {
    /// The list's name.
    pub list: Arc<str>,
    /// The line's number, from 1 on; 0 in a directory.
    pub line: u32,
}

/// A certificate list (`crt-list`), or a directory that `crt` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrtList {
    /// The file or directory.
    pub name: String,
    /// It is a directory: its entries have no options and no names.
    pub is_directory: bool,
    /// Its lines in order.
    pub entries: Vec<CrtListEntry>,
}

/// See [`CrtList`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrtListEntry {
    /// [`CertificateSource::name`]
    pub certificate: String,
    /// [`ListLine::line`]
    pub line: u32,
    /// The words in the brackets.
    pub options: Vec<String>,
    /// Its server names as written.
    pub filters: Vec<String>,
}

/// A server name in a line of a `crt-list`, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SniFilter {
    /// `www.example.com`
    Exact(Box<str>),
    /// `*.example.com`, stored without the asterisk: matches a name that equals this after its
    /// first label is removed.
    Wildcard(Box<str>),
    /// `!www.example.com`: excludes this name, although a wildcard of the same line matches it.
    Except(Box<str>),
}
