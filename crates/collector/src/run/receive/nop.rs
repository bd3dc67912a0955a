//! The receivers `nop` and `proxy`, which open nothing. The proxy hands its records over by itself
//! (`Collector::of_proxy`).

use super::StartReceiver;
use crate::config::components::receivers::nop::NopReceiver;
use crate::config::components::receivers::proxy::ProxyReceiver;

impl StartReceiver for NopReceiver {}

impl StartReceiver for ProxyReceiver {}
