//! Sessions with each other, through memory.

mod certificates;
mod pairs;
mod records;
mod trust;
