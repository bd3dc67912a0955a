//! Sans-IO HTTP/2 (RFC 9113) with header compression (RFC 7541).
mod hpack;
