//! Why a head or a body was refused.

/// One variant for each rule a peer can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    TooLarge,
    TooManyFields, /* … */
}
