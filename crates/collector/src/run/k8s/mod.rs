//! Objects of the Kubernetes cluster that this process runs in: they are listed once, and then
//! watched. The balancer's resolver `k8s` and the processor `k8s_attributes` use it.

mod lines;
mod pod;
#[cfg(test)]
pub(in crate::run) mod server;
mod watch;

pub use lines::{Fault, Lines};
pub use pod::{Pod, Question, own_namespace};
pub use watch::{Objects, Watcher};

pub(in crate::run) use lines::{
    Change, Event, NAME_BYTES_MAX, at_most, version, version_of_list, wrong,
};
pub(in crate::run) use pod::bracketed;
