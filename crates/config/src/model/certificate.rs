//! Which certificates a line names, and for which names each is shown (manual §5.1 `crt`, `crt-list`; §12.7).

use super::TlsOptions;
use std::path::PathBuf;
use std::sync::Arc;

/// The files of a certificate. Those that are named exist as far as it was looked for; none was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSource {
    /// What the runtime interface calls it: its name in a `crt-store`, else its path.
    pub name: String,
    /// The certificate, its chain and usually its key (PEM).
    pub path: PathBuf,
    /// The key. It replaces one in `path`.
    pub key: Option<PathBuf>,
    /// A file named like `path` and `.key`: the key where `path` has none.
    pub key_beside: Option<PathBuf>,
    /// An OCSP response (DER). The file may be empty.
    pub ocsp: Option<PathBuf>,
    /// The issuer's certificate, where `path` does not have it.
    pub issuer: Option<PathBuf>,
    /// A list of signed certificate timestamps (RFC 6962).
    pub sctl: Option<PathBuf>,
    /// `ocsp-update`
    pub ocsp_update: Option<bool>,
    /// `jwt`: tokens are verified by it.
    pub is_for_jwt: bool,
    /// The line's options with those of the certificate over them; none where it has none of its own.
    pub options: Option<Box<TlsOptions>>,
    /// The names that it is shown for; the certificate's own names where there are none.
    pub filters: Vec<SniFilter>,
    /// One of those that are shown where no name fits.
    pub is_default: bool,
    /// `file:line` of where it is named.
    pub origin: String,
    /// The list or the directory that it stands in.
    pub list: Option<ListLine>,
}

/// A line of a list of certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListLine {
    /// The list's name.
    pub list: Arc<str>,
    /// The line's number, from 1 on; 0 in a directory.
    pub line: u32,
}

/// A list of certificates (`crt-list`), or a directory that `crt` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrtList {
    /// The file or directory.
    pub name: String,
    /// It is a directory: its entries have neither options nor names.
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
    /// The words between the brackets.
    pub options: Vec<String>,
    /// The names that it is shown for, as they are written.
    pub filters: Vec<String>,
}

/// A name of a line of a `crt-list`, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SniFilter {
    /// `www.example.com`
    Exact(Box<str>),
    /// `*.example.com`, without the asterisk: a name whose first label is taken off ends in this, and is this.
    Wildcard(Box<str>),
    /// `!www.example.com`: not this name, although a wildcard of the same line fits it.
    Except(Box<str>),
}
