//! Error codes, and why a connection or a message was refused.

macro_rules! codes {
    ($($id:ident = $number:literal,)+) => {
        /// An error code (RFC 9113 §7). Unknown ones are legal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Code(pub u32);

        #[allow(missing_docs, reason = "the names say it; RFC 9113 §7 has the rest")]
        impl Code {
            $(pub const $id: Code = Code($number);)+

            /// The name that RFC 9113 gives it; empty for an unknown code.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Code::$id => stringify!($id),)+
                    Code(_) => "",
                }
            }
        }
    };
}

codes! {
    NO_ERROR = 0,
    PROTOCOL_ERROR = 1,
    INTERNAL_ERROR = 2,
    FLOW_CONTROL_ERROR = 3,
    SETTINGS_TIMEOUT = 4,
    STREAM_CLOSED = 5,
    FRAME_SIZE_ERROR = 6,
    REFUSED_STREAM = 7,
    CANCEL = 8,
    COMPRESSION_ERROR = 9,
    CONNECT_ERROR = 10,
    ENHANCE_YOUR_CALM = 11,
    INADEQUATE_SECURITY = 12,
    HTTP_1_1_REQUIRED = 13,
}

/// A rule that a peer broke: the error code to send, and the rule, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The code in GOAWAY or RST_STREAM.
    pub code: Code,
    /// The rule that was broken.
    pub message: &'static str,
}

impl Error {
    pub(crate) const fn new(code: Code, message: &'static str) -> Error {
        Error { code, message }
    }

    pub(super) const fn protocol(message: &'static str) -> Error {
        Error::new(Code::PROTOCOL_ERROR, message)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.message)
    }
}

impl std::error::Error for Error {}
