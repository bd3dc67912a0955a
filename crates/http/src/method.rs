//! Request methods.

macro_rules! methods {
    ($($(#[$attr:meta])* $id:ident = $text:literal,)+) => {
        /// A request method (RFC 9110 §9).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $text, "`")] $(#[$attr])* $id,)+
            /// Any other token: its bytes are in the head.
            Other,
        }

        impl Method {
            /// The method with this text; methods are case-sensitive (RFC 9110 §9.1).
            #[must_use]
            pub fn from_bytes(text: &[u8]) -> Method {
                $(if text == $text.as_bytes() { return Method::$id; })+
                Method::Other
            }

            /// The method's text; empty for [`Method::Other`].
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Method::$id => $text,)+
                    Method::Other => "",
                }
            }
        }
    };
}

methods! {
    #[default]
    Get = "GET",
    Head = "HEAD",
    Post = "POST",
    Put = "PUT",
    Delete = "DELETE",
    Connect = "CONNECT",
    Options = "OPTIONS",
    Trace = "TRACE",
    Patch = "PATCH",
}

impl Method {
    /// Whether a request may be sent twice without harm (RFC 9110 §9.2.2).
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        use Method::{Delete, Get, Head, Options, Put, Trace};
        matches!(self, Get | Head | Put | Delete | Options | Trace)
    }

    /// Whether a request asks only to read (RFC 9110 §9.2.1).
    #[must_use]
    pub const fn is_safe(self) -> bool {
        use Method::{Get, Head, Options, Trace};
        matches!(self, Get | Head | Options | Trace)
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn methods_are_case_sensitive() {
        assert_eq!(Method::from_bytes(b"GET"), Method::Get);
        assert_eq!(Method::from_bytes(b"get"), Method::Other);
        assert_eq!(Method::from_bytes(b""), Method::Other);
        assert_eq!(
            Method::from_bytes(Method::Connect.as_str().as_bytes()),
            Method::Connect
        );
    }
}
