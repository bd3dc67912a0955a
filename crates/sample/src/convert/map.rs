//! Maps: values by keys that match (manual §7.3.1 map).

use super::{Convert, convert};
use crate::args::ArgKind::{Int, Map, Str};
use crate::args::{Arg, spec};
use crate::cast::ip_of;
use crate::pattern::Output;
use crate::pattern::method::Method;
use crate::{Bytes, Kind, Scope, Value};

/// The four converters of a matching method: its name, the method, the type of the compared sample.
macro_rules! maps {
    ($($name:literal $method:ident $from:ident;)*) => {
        pub(crate) const CONVERTERS: &[Convert] = &[
            converter!("map", Str, Str, Str, Str, "the value of the key that is equal"),
            converter!("map_regm", Reg, Str, Groups, Str, "the value of the expression that matches, with its groups filled in"),
            $(
                converter!($name, $method, $from, Str, Str, "the value of the key that matches"),
                converter!(concat!($name, "_int"), $method, $from, Int, Int, "the number of the key that matches"),
                converter!(concat!($name, "_ip"), $method, $from, Ip, Addr, "the address of the key that matches"),
                converter!(concat!($name, "_key"), $method, $from, Key, Str, "the key that matches"),
            )*
        ];
    };
}

/// One converter: name, matching method, input type, output of the lookup, output type, line for
/// the reference.
macro_rules! converter {
    ($name:expr, $method:ident, $from:ident, $output:ident, $to:ident, $doc:literal) => {
        convert(
            $name,
            match Output::$output {
                Output::Int => spec(1, &[Map(Method::$method, Output::Int), Int]),
                Output::Key => spec(1, &[Map(Method::$method, Output::Key)]),
                _ => spec(1, &[Map(Method::$method, Output::$output), Str]),
            },
            Kind::$from,
            Kind::$to,
            $doc,
            look_up,
        )
        .checked(default_address)
        .scoped()
    };
}

maps! {
    "map_beg" Beg Str;
    "map_dir" Dir Str;
    "map_dom" Dom Str;
    "map_end" End Str;
    "map_int" Int Int;
    "map_ip" Ip Addr;
    "map_reg" Reg Str;
    "map_str" Str Str;
    "map_sub" Sub Str;
}

/// The map's value, otherwise the default.
fn look_up<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let Some(Arg::Map(map)) = args.first() else {
        return None;
    };
    if let Some(found) = map.lookup.output(map.output, value) {
        return found;
    }
    Some(match args.get(1)? {
        Arg::Str(text) => Value::Str(Bytes::from(&**text)),
        Arg::Int(number) => Value::Int(*number),
        Arg::Ipv4(ip) => Value::Ipv4(*ip),
        Arg::Ipv6(ip) => Value::Ipv6(*ip),
        _ => return None,
    })
}

/// The default of a map of addresses must be an address.
fn default_address(args: &mut [Arg]) -> Result<(), String> {
    let [Arg::Map(map), default @ Arg::Str(_)] = args else {
        return Ok(());
    };
    let Arg::Str(text) = default else {
        return Ok(());
    };
    if map.output != Output::Ip {
        return Ok(());
    }
    let text = String::from_utf8_lossy(text).into_owned();
    *default = match ip_of(text.as_bytes()) {
        Some(std::net::IpAddr::V4(ip)) => Arg::Ipv4(ip),
        Some(std::net::IpAddr::V6(ip)) => Arg::Ipv6(ip),
        None => return Err(format!("map: cannot parse default ip <{text}>.")),
    };
    Ok(())
}
