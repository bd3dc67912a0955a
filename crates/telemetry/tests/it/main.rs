//! Settings, environment variables and queues from outside.

mod environment;
mod queue;
mod settings;
