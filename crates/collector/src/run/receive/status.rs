//! What senders are told (OTLP specification, "Failures").

use std::time::Duration;

use export::rpc::Status;

use crate::run::auth::Denied;
use crate::run::consume::{NoRoom, Refusal};
use crate::run::origin::{FIELDS_BYTES_MAX, FIELDS_MAX, TooMuch};

/// Why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It cannot be understood.
    Invalid(String),
    /// It is larger than is allowed.
    TooLarge(String),
    /// It has an encoding that is not taken.
    Encoding(String),
    /// Nobody takes this signal or path.
    NotThere(String),
    /// No room now.
    Busy(NoRoom),
    /// It was taken, and could not be written or sent on.
    Failed(Duration),
    /// The collector ends.
    Closing,
    /// It did not come in time.
    Slow,
    /// Its sender is not known.
    Stranger,
}

/// When whoever was not looked at may come again.
const LOOKED_AT_AFTER: Duration = Duration::from_secs(1);

impl From<Denied> for Fault {
    fn from(denied: Denied) -> Fault {
        match denied {
            Denied::Missing | Denied::Wrong => Fault::Stranger,
            Denied::Busy => {
                let why = "too many credentials are being checked";
                Refusal::busy(LOOKED_AT_AFTER, &why.into()).into()
            }
        }
    }
}

impl From<TooMuch> for Fault {
    fn from(_: TooMuch) -> Fault {
        Fault::TooLarge(format!(
            "of header fields that are kept, no more than {FIELDS_MAX} and {FIELDS_BYTES_MAX} bytes are taken"
        ))
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        match refusal {
            Refusal::Busy(no_room) => Fault::Busy(no_room),
            Refusal::Closing => Fault::Closing,
            Refusal::Malformed(reason) => Fault::Invalid(reason),
        }
    }
}

/// Codes of gRPC (`google/rpc/code.proto`).
pub(super) mod code {
    pub const CANCELLED: i32 = 1;
    pub const INVALID_ARGUMENT: i32 = 3;
    pub const DEADLINE_EXCEEDED: i32 = 4;
    pub const NOT_FOUND: i32 = 5;
    pub const RESOURCE_EXHAUSTED: i32 = 8;
    pub const UNIMPLEMENTED: i32 = 12;
    pub const UNAVAILABLE: i32 = 14;
    pub const UNAUTHENTICATED: i32 = 16;
}

impl Fault {
    /// How many kinds are told in the log.
    pub(super) const KINDS: usize = 8;

    /// Its kind, by a number; none where it is not told.
    pub(super) fn kind(&self) -> Option<usize> {
        Some(match self {
            Fault::Invalid(_) => 0,
            Fault::TooLarge(_) => 1,
            Fault::Encoding(_) => 2,
            Fault::NotThere(_) => 3,
            Fault::Busy(_) => 4,
            Fault::Failed(_) => 5,
            Fault::Slow => 6,
            Fault::Stranger => 7,
            Fault::Closing => return None,
        })
    }

    /// Why, for the operator.
    pub(super) fn reason(&self) -> String {
        match self {
            Fault::Busy(no_room) => no_room.why.to_string(),
            fault => fault.status().message,
        }
    }

    /// The status; one that may be tried again says when.
    pub(super) fn status(&self) -> Status {
        let (code, message) = match self {
            Fault::Invalid(reason) => (code::INVALID_ARGUMENT, reason.clone()),
            Fault::TooLarge(reason) => (code::RESOURCE_EXHAUSTED, reason.clone()),
            Fault::Encoding(reason) | Fault::NotThere(reason) => {
                (code::UNIMPLEMENTED, reason.clone())
            }
            Fault::Busy(_) => (code::RESOURCE_EXHAUSTED, "no room now: try again".into()),
            Fault::Failed(_) => (
                code::UNAVAILABLE,
                "it cannot be written or sent on now: try again".into(),
            ),
            Fault::Closing => (code::UNAVAILABLE, "the collector ends".into()),
            Fault::Stranger => (
                code::UNAUTHENTICATED,
                "the credentials are missing or wrong".into(),
            ),
            Fault::Slow => (
                code::DEADLINE_EXCEEDED,
                "the request came too slowly".into(),
            ),
        };
        Status {
            code,
            message,
            retry_after: match self {
                Fault::Busy(NoRoom { after, .. }) | Fault::Failed(after) => Some(*after),
                _ => None,
            },
        }
    }

    /// The status of HTTP.
    pub(super) fn http_code(&self) -> u16 {
        match self {
            Fault::Invalid(_) => 400,
            Fault::TooLarge(_) => 413,
            Fault::Encoding(_) => 415,
            Fault::NotThere(_) => 404,
            Fault::Busy(_) => 429,
            Fault::Failed(_) | Fault::Closing => 503,
            Fault::Slow => 408,
            Fault::Stranger => 401,
        }
    }

    /// `Retry-After`, in seconds, at least one.
    pub(super) fn retry_after_s(&self) -> Option<u64> {
        match self {
            Fault::Busy(NoRoom { after, .. }) | Fault::Failed(after) => {
                Some(after.as_millis().div_ceil(1000).clamp(1, 3600) as u64)
            }
            Fault::Closing => Some(1),
            _ => None,
        }
    }
}
