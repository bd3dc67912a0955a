//! The fuzz targets over their kept inputs.

mod collector_yaml;
mod corpus;
mod otel_cfg;
