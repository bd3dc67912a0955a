//! `boolean_attribute`: an attribute equals. One that is no boolean reads as false, as in the
//! Collector.

use otlp::scan::Any;

pub fn matches(wanted: bool, value: Any<'_>) -> bool {
    wanted == matches!(value, Any::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_boolean_is_false() {
        assert!(matches(true, Any::Bool(true)) && matches(false, Any::Bool(false)));
        assert!(!matches(true, Any::Bool(false)) && !matches(true, Any::Int(1)));
        assert!(matches(false, Any::Text(b"true")));
    }
}
