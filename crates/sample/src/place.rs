//! The place of an expression, which determines the available facts.

use std::ops::BitOr;

/// A set of phases in a stream's life: for an expression, those in which it is evaluated; for a
/// fetch, those in which its data exists. A rule of a `listen` section belongs to the phase of the
/// frontend and to that of the backend: combine them with `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

/// One row: the phase's constant, its bit, and its name in HAProxy's messages.
macro_rules! places {
    ($($name:ident $bit:literal $text:literal;)*) => {
        impl Place {
            $(#[doc = concat!("HAProxy's \"", $text, "\".")] pub const $name: Place = Place(1 << $bit);)*
            const NAMES: &[(Place, &str)] = &[$((Place::$name, $text),)*];
        }
    };
}

places! {
    FE_TCP_CONNECTION 0 "frontend tcp-request connection rule";
    FE_TCP_SESSION 1 "frontend tcp-request session rule";
    FE_TCP_REQUEST 2 "frontend tcp-request content rule";
    FE_HTTP_REQUEST 3 "frontend http-request header rule";
    FE_HTTP_REQUEST_BODY 4 "frontend http-request body rule";
    FE_USE_BACKEND 5 "frontend use-backend rule";
    BE_TCP_REQUEST 6 "backend tcp-request content rule";
    BE_HTTP_REQUEST 7 "backend http-request header rule";
    BE_HTTP_REQUEST_BODY 8 "backend http-request body rule";
    BE_USE_SERVER 9 "backend use-server, balance or stick-match rule";
    BE_SERVER_SOURCE 10 "server source selection";
    BE_TCP_RESPONSE 11 "backend tcp-response content rule";
    BE_HTTP_RESPONSE 12 "backend http-response header rule";
    BE_HTTP_RESPONSE_BODY 13 "backend http-response body rule";
    BE_STICK_STORE 14 "backend stick-store rule";
    FE_TCP_RESPONSE 15 "frontend tcp-response content rule";
    FE_HTTP_RESPONSE 16 "frontend http-response header rule";
    FE_HTTP_RESPONSE_BODY 17 "frontend http-response body rule";
    LOG 18 "logs";
    CHECK 19 "backend tcp-check rule";
    CONFIG 20 "configuration parser";
    CLI 21 "CLI parser";
}

impl Place {
    /// Every phase.
    pub const ALL: Place = Place((1 << 22) - 1);

    /// Every phase from the first to the last of two, in the order above.
    pub(crate) const fn span(first: Place, last: Place) -> Place {
        Place((last.0 << 1).wrapping_sub(first.0))
    }

    /// The union of both sets, for constants.
    pub(crate) const fn with(self, other: Place) -> Place {
        Place(self.0 | other.0)
    }

    /// Whether the two sets share a phase.
    #[must_use]
    pub const fn meets(self, other: Place) -> bool {
        self.0 & other.0 != 0
    }

    /// Each phase with its name in HAProxy's listings, in order.
    pub fn moments() -> impl ExactSizeIterator<Item = (Place, &'static str)> {
        Place::NAMES.iter().copied()
    }

    /// The name of the first phase in HAProxy's messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        Place::NAMES
            .iter()
            .find(|(place, _)| place.meets(self))
            .map_or("unknown place", |(_, name)| name)
    }
}

impl BitOr for Place {
    type Output = Place;

    fn bitor(self, other: Place) -> Place {
        self.with(other)
    }
}
