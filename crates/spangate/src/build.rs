//! What this program reports about itself: `-v`, `-vv`, and the values that conditions ask for.

use config::condition::BuildInfo;

/// The HAProxy version whose configuration language this program implements.
const COMPATIBLE: &str = "3.5-dev5";
/// The date of that version.
pub(crate) const RELEASE_DATE: &str = "2026/08/21";
/// The regular expression engine (cargo feature `pcre2`).
const REGEX: &str = if cfg!(feature = "pcre2") {
    "linear time; PCRE2 for look-around and back-references"
} else {
    "linear time, without look-around and back-references (PCRE2 was not built in)"
};
/// The features by HAProxy's names, with `+` where they are present and `-` where they are absent.
const FEATURES: &str = "+ACCEPT4 +CPU_AFFINITY +EPOLL +GETADDRINFO -FCGI -KQUEUE +LINUX_CAP -LINUX_SPLICE +LINUX_TPROXY -LUA -NS \
                        -OBSOLETE_LINKER +OPENSSL +OPENSSL_AWSLC -OPENSSL_WOLFSSL -OT -PCRE -PCRE2 +PROMEX +QUIC \
                        -QUIC_OPENSSL_COMPAT -SLZ -SPOE +TFO +THREAD +TPROXY -WURFL +ZLIB";

/// The TLS library. Conditions ask for its name and for the versions of its interfaces.
const TLS_LIBRARY: &str = "AWS-LC (rustls)";
/// The version of OpenSSL whose interface AWS-LC implements.
const OPENSSL_API: &str = "1.1.1";
/// The version of AWS-LC's own interface from which HAProxy offers the TLS features that exist
/// here.
const AWSLC_API: i64 = 35;

/// See [`BuildInfo`].
pub(crate) fn info() -> BuildInfo {
    BuildInfo {
        version: COMPATIBLE.to_owned(),
        features: features(),
        openssl_version: Some(OPENSSL_API.to_owned()),
        ssllib_name: Some(TLS_LIBRARY.to_owned()),
        awslc_api: Some(AWSLC_API),
        enabled: ["EPOLL", "GETADDRINFO", "REUSEPORT"]
            .map(str::to_owned)
            .to_vec(),
        fips_mode: false,
    }
}

fn features() -> String {
    if cfg!(feature = "pcre2") {
        FEATURES.replace("-PCRE2", "+PCRE2")
    } else {
        FEATURES.to_owned()
    }
}

/// The text of `-vq`: the version, or with `branch` the part before its dash.
pub(crate) fn bare_version(branch: bool) -> String {
    let version = if branch {
        COMPATIBLE.split('-').next().unwrap_or(COMPATIBLE)
    } else {
        COMPATIBLE
    };
    format!("{version}\n")
}

/// The text of `-v`, or with `details` of `-vv`. Scripts search for the lines `HAProxy version …`
/// and `TARGET = …`.
pub(crate) fn version_text(details: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text =
        format!("HAProxy version {COMPATIBLE}-spangate-{version}\nSpangate version {version}\n");
    if details {
        let bufsize = config::model::Tune::default();
        text.push_str(&format!(
            "Build options :\n  TARGET  = linux-glibc\n\nFeature list : {}\n\nBuilt with TLS library : {TLS_LIBRARY}\nRegular expressions : {REGEX}\nCompression algorithms supported : identity(\"identity\"), gzip(\"gzip\"), deflate(\"deflate\"), raw-deflate(\"deflate\")\n\nDefault settings :\n  bufsize = {}, maxrewrite = {}\n\n\
             Available polling systems :\n      epoll : pref=300,  test result OK\nTotal: 1 (1 usable), will use epoll.\n",
            features(), bufsize.bufsize_bytes, bufsize.maxrewrite_bytes
        ));
    }
    text
}
