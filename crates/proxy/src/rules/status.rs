//! Responses of our own: their start line, the built-in error pages, the reason phrases of
//! statuses.

use http::{Head, Version};

/// A built-in page, for a status that HAProxy sends itself (manual §1.3.1).
struct Page {
    status: u16,
    text: &'static str,
}

const PAGES: &[Page] = &[
    Page {
        status: 200,
        text: "Service ready.",
    },
    Page {
        status: 400,
        text: "Your browser sent an invalid request.",
    },
    Page {
        status: 401,
        text: "You need a valid user and password to access this content.",
    },
    Page {
        status: 403,
        text: "Request forbidden by administrative rules.",
    },
    Page {
        status: 404,
        text: "The resource could not be found.",
    },
    Page {
        status: 405,
        text: "Method not allowed.",
    },
    Page {
        status: 407,
        text: "You need a valid user and password to access this content.",
    },
    Page {
        status: 408,
        text: "Your browser didn't send a complete request in time.",
    },
    Page {
        status: 410,
        text: "The resource is no longer available and will not be available again.",
    },
    Page {
        status: 413,
        text: "The request entity exceeds the maximum allowed.",
    },
    Page {
        status: 414,
        text: "The request line is longer than this server accepts.",
    },
    Page {
        status: 421,
        text: "Request sent to a non-authoritative server.",
    },
    Page {
        status: 422,
        text: "The request was well-formed but cannot be processed.",
    },
    Page {
        status: 425,
        text: "Your browser sent early data.",
    },
    Page {
        status: 429,
        text: "You have sent too many requests in a given amount of time.",
    },
    Page {
        status: 431,
        text: "The header fields are larger than this server accepts.",
    },
    Page {
        status: 500,
        text: "An internal server error occurred.",
    },
    Page {
        status: 501,
        text: "The server does not support the functionality required by the request.",
    },
    Page {
        status: 502,
        text: "The server returned an invalid or incomplete response.",
    },
    Page {
        status: 503,
        text: "No server is available to handle this request.",
    },
    Page {
        status: 504,
        text: "The server didn't respond in time.",
    },
];

/// The text of the built-in page for a status; none for a status without a page.
pub(crate) fn text(status: u16) -> Option<&'static str> {
    PAGES
        .iter()
        .find(|page| page.status == status)
        .map(|page| page.text)
}

/// The reason phrase on a built-in page.
pub(crate) fn page_reason(status: u16) -> &'static str {
    match status {
        400 => "Bad request",
        407 => "Unauthorized",
        413 => "Payload Too Large",
        414 => "URI Too Long",
        502 => "Bad Gateway",
        _ => http::reason(status),
    }
}

/// Begins a response with this status; discards the previous content of the head.
pub(crate) fn begin_response(response: &mut Head, status: u16) {
    response.clear();
    response.set_version(Version::Http11);
    response.set_status(status, http::reason(status).as_bytes());
}

/// Whether responses with this status never have a body (RFC 9110 §6.4.1).
pub(crate) fn is_bodiless(status: u16) -> bool {
    status < 200 || status == 204 || status == 304
}
