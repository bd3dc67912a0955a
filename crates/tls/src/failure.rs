//! Why a session cannot continue: its kind for decisions, and the error of the TLS library with the
//! numbers and names of AWS-LC (`ssl.h`), which HAProxy's users know from `ssl_fc_err`.

use std::fmt;

use crate::verify::RefusedClient;
use rustls::{CertificateError, Error, InvalidMessage, PeerIncompatible};

/// The number of the library's part for TLS, in the place where an error has it.
const LIBRARY: u32 = 16 << 24;
/// The reason for an alert from the peer is its code and this number.
const ALERTS: u16 = 1000;
/// Enough bytes to tell a request of plain HTTP.
pub(crate) const HTTP_METHOD_BYTES: usize = 5;

/// Whether a client speaks plain HTTP, as AWS-LC tells it by these methods.
pub(crate) fn is_http(first: &[u8; HTTP_METHOD_BYTES]) -> bool {
    let methods: [&[u8]; 5] = [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"CONNE"];
    methods.iter().any(|method| first.starts_with(method))
}

/// Why a session cannot continue. An alert for the peer was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The reason with the number and the name of AWS-LC; none where it has no such error.
    pub reason: Option<Reason>,
    /// The failure as text.
    pub text: String,
}

/// The kind of a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The peer violates the protocol, or negotiation failed.
    Protocol,
    /// The peer's certificate is not trusted.
    Certificate,
    /// An authority of the peer's certificate is not trusted. For a server's certificate: no
    /// trusted authority issued it.
    Authority,
    /// The certificate is not valid for the requested name.
    Name,
    /// The peer sent an alert with this code (RFC 8446 §6).
    Alert(u8),
}

/// One row: the variant, AWS-LC's number and its name.
macro_rules! reasons {
    ($($variant:ident $number:literal $name:literal;)*) => {
        /// A reason that AWS-LC has a number for (`SSL_R_*`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Reason {
            const ALL: &[Reason] = &[$(Reason::$variant,)*];

            fn reason(self) -> u16 {
                match self {
                    $(Reason::$variant => $number,)*
                }
            }

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Reason::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    BadSignature 114 "BAD_SIGNATURE";
    CertificateVerifyFailed 125 "CERTIFICATE_VERIFY_FAILED";
    DecodeError 137 "DECODE_ERROR";
    DecryptionFailed 139 "DECRYPTION_FAILED_OR_BAD_RECORD_MAC";
    EncryptedLengthTooLong 146 "ENCRYPTED_LENGTH_TOO_LONG";
    ExcessiveMessageSize 150 "EXCESSIVE_MESSAGE_SIZE";
    HttpRequest 156 "HTTP_REQUEST";
    NoSharedCipher 184 "NO_SHARED_CIPHER";
    NoCertificate 192 "PEER_DID_NOT_RETURN_A_CERTIFICATE";
    UnexpectedMessage 223 "UNEXPECTED_MESSAGE";
    UnsupportedProtocol 240 "UNSUPPORTED_PROTOCOL";
    WrongVersionNumber 247 "WRONG_VERSION_NUMBER";
    NoCommonSignatureAlgorithms 253 "NO_COMMON_SIGNATURE_ALGORITHMS";
    NoSharedGroup 266 "NO_SHARED_GROUP";
    NoApplicationProtocol 307 "NO_APPLICATION_PROTOCOL";
    AlertUnexpectedMessage 1010 "SSLV3_ALERT_UNEXPECTED_MESSAGE";
    AlertBadRecordMac 1020 "SSLV3_ALERT_BAD_RECORD_MAC";
    AlertRecordOverflow 1022 "TLSV1_ALERT_RECORD_OVERFLOW";
    AlertHandshakeFailure 1040 "SSLV3_ALERT_HANDSHAKE_FAILURE";
    AlertBadCertificate 1042 "SSLV3_ALERT_BAD_CERTIFICATE";
    AlertUnsupportedCertificate 1043 "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE";
    AlertCertificateRevoked 1044 "SSLV3_ALERT_CERTIFICATE_REVOKED";
    AlertCertificateExpired 1045 "SSLV3_ALERT_CERTIFICATE_EXPIRED";
    AlertCertificateUnknown 1046 "SSLV3_ALERT_CERTIFICATE_UNKNOWN";
    AlertIllegalParameter 1047 "SSLV3_ALERT_ILLEGAL_PARAMETER";
    AlertUnknownCa 1048 "TLSV1_ALERT_UNKNOWN_CA";
    AlertAccessDenied 1049 "TLSV1_ALERT_ACCESS_DENIED";
    AlertDecodeError 1050 "TLSV1_ALERT_DECODE_ERROR";
    AlertDecryptError 1051 "TLSV1_ALERT_DECRYPT_ERROR";
    AlertProtocolVersion 1070 "TLSV1_ALERT_PROTOCOL_VERSION";
    AlertInsufficientSecurity 1071 "TLSV1_ALERT_INSUFFICIENT_SECURITY";
    AlertInternalError 1080 "TLSV1_ALERT_INTERNAL_ERROR";
    AlertInappropriateFallback 1086 "TLSV1_ALERT_INAPPROPRIATE_FALLBACK";
    AlertUserCancelled 1090 "TLSV1_ALERT_USER_CANCELLED";
    AlertNoRenegotiation 1100 "TLSV1_ALERT_NO_RENEGOTIATION";
    AlertUnsupportedExtension 1110 "TLSV1_ALERT_UNSUPPORTED_EXTENSION";
    AlertUnrecognizedName 1112 "TLSV1_ALERT_UNRECOGNIZED_NAME";
    AlertBadStatusResponse 1113 "TLSV1_ALERT_BAD_CERTIFICATE_STATUS_RESPONSE";
    AlertUnknownPskIdentity 1115 "TLSV1_ALERT_UNKNOWN_PSK_IDENTITY";
    AlertCertificateRequired 1116 "TLSV1_ALERT_CERTIFICATE_REQUIRED";
    AlertNoApplicationProtocol 1120 "TLSV1_ALERT_NO_APPLICATION_PROTOCOL";
}

impl Reason {
    /// AWS-LC's number for the error, with that of its part for TLS.
    #[must_use]
    pub fn number(self) -> u32 {
        LIBRARY | u32::from(self.reason())
    }

    /// AWS-LC's text for the error.
    #[must_use]
    pub fn text(self) -> String {
        format!(
            "error:{:08x}:SSL routines:OPENSSL_internal:{}",
            self.number(),
            self.name()
        )
    }

    fn of_alert(code: u8) -> Option<Reason> {
        let wanted = ALERTS + u16::from(code);
        let mut all = Reason::ALL.iter().copied();
        all.find(|reason| reason.reason() == wanted)
    }

    /// The reason for an error of the library.
    fn of(error: &Error) -> Option<Reason> {
        Some(match error {
            Error::AlertReceived(alert) => return Reason::of_alert(u8::from(*alert)),
            Error::InvalidCertificate(_) => Reason::CertificateVerifyFailed,
            Error::NoCertificatesPresented => Reason::NoCertificate,
            Error::NoApplicationProtocol => Reason::NoApplicationProtocol,
            Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
                Reason::UnexpectedMessage
            }
            Error::DecryptError => Reason::DecryptionFailed,
            Error::PeerSentOversizedRecord => Reason::EncryptedLengthTooLong,
            Error::PeerIncompatible(why) => match why {
                PeerIncompatible::NoCipherSuitesInCommon => Reason::NoSharedCipher,
                PeerIncompatible::NoKxGroupsInCommon => Reason::NoSharedGroup,
                PeerIncompatible::NoSignatureSchemesInCommon
                | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => {
                    Reason::NoCommonSignatureAlgorithms
                }
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::SupportedVersionsExtensionRequired
                | PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled => Reason::UnsupportedProtocol,
                _ => return None,
            },
            Error::InvalidMessage(why) => match why {
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion => {
                    Reason::WrongVersionNumber
                }
                InvalidMessage::MessageTooLarge => Reason::EncryptedLengthTooLong,
                InvalidMessage::HandshakePayloadTooLarge
                | InvalidMessage::CertificatePayloadTooLarge => Reason::ExcessiveMessageSize,
                InvalidMessage::UnexpectedMessage(_) => Reason::UnexpectedMessage,
                _ => Reason::DecodeError,
            },
            _ => return None,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    pub(crate) fn after_another() -> Failure {
        Failure::protocol("the session has failed", None)
    }

    /// The peer's certificates were refused.
    pub(crate) fn set_refused(&mut self, refused: &RefusedClient) {
        self.kind = if refused.is_for_issuer {
            FailureKind::Authority
        } else {
            FailureKind::Certificate
        };
    }

    pub(crate) fn protocol(text: &str, reason: Option<Reason>) -> Failure {
        Failure {
            kind: FailureKind::Protocol,
            reason,
            text: text.to_owned(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::AlertReceived(alert) => FailureKind::Alert(u8::from(*alert)),
            Error::InvalidCertificate(why) => match why {
                CertificateError::UnknownIssuer => FailureKind::Authority,
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => FailureKind::Name,
                _ => FailureKind::Certificate,
            },
            _ => FailureKind::Protocol,
        };
        Failure {
            kind,
            reason: Reason::of(&error),
            text: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::AlertDescription;

    #[test]
    fn errors_have_the_numbers_and_texts_of_aws_lc() {
        let cases = [
            (
                Error::NoCertificatesPresented,
                "error:100000c0:SSL routines:OPENSSL_internal:PEER_DID_NOT_RETURN_A_CERTIFICATE",
            ),
            (
                Error::InvalidCertificate(CertificateError::Revoked),
                "error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED",
            ),
            (
                Error::AlertReceived(AlertDescription::BadCertificate),
                "error:10000412:SSL routines:OPENSSL_internal:SSLV3_ALERT_BAD_CERTIFICATE",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon),
                "error:1000010a:SSL routines:OPENSSL_internal:NO_SHARED_GROUP",
            ),
        ];
        for (error, text) in cases {
            let failure = Failure::from(error);
            assert_eq!(failure.reason.map(Reason::text).as_deref(), Some(text));
        }
        let unknown = Error::AlertReceived(AlertDescription::Unknown(255));
        assert_eq!(Failure::from(unknown).reason, None);
    }
}
